//! What queues know of each other: vector clocks.

use std::rc::Rc;

/// What a queue knows: for each queue, how many of its steps.
pub(super) struct Known<T> {
    /// From data and from what else is no credit.
    pub firm: T,
    /// From credits too.
    pub all: T,
}

impl Known<Vec<u32>> {
    /// Nothing, of so many queues.
    pub(super) fn new(queues: usize) -> Self {
        Self {
            firm: vec![0; queues],
            all: vec![0; queues],
        }
    }

    /// A queue has begun its step with this number, from 1.
    pub(super) fn advance(&mut self, queue: usize, step: u32) {
        (self.firm[queue], self.all[queue]) = (step, step);
    }

    /// Learns what another knew, by a credit or by something else.
    pub(super) fn learn(&mut self, other: &Known<Rc<[u32]>>, by_credit: bool) {
        join(&mut self.all, &other.all);
        if !by_credit {
            join(&mut self.firm, &other.firm);
        }
    }

    /// What it knows now.
    pub(super) fn snapshot(&self) -> Known<Rc<[u32]>> {
        Known {
            firm: self.firm.as_slice().into(),
            all: self.all.as_slice().into(),
        }
    }
}

/// Whether one knows all that the other knows.
pub(super) fn knows(clock: &[u32], other: &[u32]) -> bool {
    clock.iter().zip(other).all(|(mine, theirs)| mine >= theirs)
}

fn join(clock: &mut [u32], other: &[u32]) {
    for (mine, theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(*theirs);
    }
}
