//! Vector clocks: what a rank knows of the others.

use std::rc::Rc;

/// One entry for each rank: how much of its history is known. 0 is nothing, not even its entry.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    rank: usize,
    times: Vec<u32>,
}

/// A moment in the history of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) rank: u32,
    pub(super) time: u32,
}

impl Clock {
    /// The clock of a rank that has just entered.
    pub(super) fn new(rank: u32, ranks: u32) -> Self {
        let mut times = vec![0; ranks as usize];
        times[rank as usize] = 1;
        Self {
            rank: rank as usize,
            times,
        }
    }

    pub(super) fn now(&self) -> Moment {
        Moment {
            rank: self.rank as u32,
            time: self.times[self.rank],
        }
    }

    /// What a signal sent now carries. Whatever follows is later than the signal.
    pub(super) fn send(&mut self) -> Rc<[u32]> {
        let carried = self.times.as_slice().into();
        self.times[self.rank] += 1;
        carried
    }

    pub(super) fn receive(&mut self, carried: &[u32]) {
        for (mine, theirs) in self.times.iter_mut().zip(carried) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// Whether a moment happened before now, or is this rank's own.
    pub(super) fn knows(&self, moment: Moment) -> bool {
        self.times[moment.rank as usize] >= moment.time
    }

    /// Ranks of whose entry nothing is known.
    pub(super) fn unheard(&self) -> impl Iterator<Item = u32> {
        let pairs = (0u32..).zip(&self.times);
        pairs.filter(|&(_, &time)| time == 0).map(|(rank, _)| rank)
    }
}
