//! What a rank knows of the others: who has entered, and, where windows are used, vector clocks.

use std::rc::Rc;

/// What a rank knows, or a signal carries.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// Who has entered, one bit each.
    entered: Rc<[u64]>,
    /// How much of the history of each rank; only where windows are used.
    times: Option<Rc<[u32]>>,
    /// The rank itself: its time is not in `times`, which signals therefore share.
    now: Moment,
}

/// A moment in the history of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) rank: u32,
    pub(super) time: u32,
}

impl Known {
    /// What a rank knows that has just entered.
    pub(super) fn new(rank: u32, ranks: u32, windowed: bool) -> Self {
        let mut entered = vec![0u64; ranks.div_ceil(u64::BITS) as usize];
        entered[(rank / u64::BITS) as usize] |= 1 << (rank % u64::BITS);
        Self {
            entered: entered.into(),
            times: windowed.then(|| vec![0; ranks as usize].into()),
            now: Moment { rank, time: 1 },
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.now
    }

    /// What a signal sent now carries. Whatever follows is later than the signal.
    pub(super) fn send(&mut self) -> Known {
        let carried = self.clone();
        self.now.time += 1;
        carried
    }

    pub(super) fn receive(&mut self, carried: &Known) {
        let news = |mine: &[u64], theirs: &[u64]| mine.iter().zip(theirs).any(|(m, t)| t & !m != 0);
        if news(&self.entered, &carried.entered) {
            let pairs = self.entered.iter().zip(carried.entered.iter());
            self.entered = pairs.map(|(mine, theirs)| mine | theirs).collect();
        }
        if let (Some(mine), Some(theirs)) = (&mut self.times, &carried.times) {
            let mine = Rc::make_mut(mine);
            for (mine, theirs) in mine.iter_mut().zip(theirs.iter()) {
                *mine = (*mine).max(*theirs);
            }
            let sender = &mut mine[carried.now.rank as usize];
            *sender = (*sender).max(carried.now.time);
        }
    }

    /// Whether a moment happened before now, or is this rank's own.
    pub(super) fn knows(&self, moment: Moment) -> bool {
        let Some(times) = &self.times else {
            return true;
        };
        moment.rank == self.now.rank || times[moment.rank as usize] >= moment.time
    }

    /// Ranks of whose entry nothing is known.
    pub(super) fn unheard(&self, ranks: u32) -> impl Iterator<Item = u32> {
        (0..ranks).filter(|rank| {
            let word = self.entered[(rank / u64::BITS) as usize];
            word >> (rank % u64::BITS) & 1 == 0
        })
    }
}
