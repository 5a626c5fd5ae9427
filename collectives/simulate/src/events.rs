//! Moments, and the queue of what happens at them.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Events this part of the time apart are one moment.
const SAME_PART: f64 = 1e-11;
/// So are events this many picoseconds apart.
const SAME_PS: f64 = 1e-3;

/// The last time that is the same moment as `time`, in picoseconds.
pub(crate) fn same_moment(time: f64) -> f64 {
    time + time * SAME_PART + SAME_PS
}

/// A number that is ordered. Not a number comes last; it doesn't occur.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ordered(pub(crate) f64);

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The delay of a task is over.
    Delayed {
        /// The task.
        task: u32,
    },
    /// The next flow of a route ends, if nothing has changed since.
    Ends {
        /// The route.
        route: u32,
        /// Which announcement of the route this is; only the newest counts.
        version: u32,
    },
}

/// Events by time; those of one time in a fixed order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<(Ordered, Event)>>,
}

impl Queue {
    pub(crate) fn push(&mut self, time: f64, event: Event) {
        self.heap.push(Reverse((Ordered(time), event)));
    }

    /// The next event, if it is no later than `until`.
    pub(crate) fn pop(&mut self, until: f64) -> Option<(f64, Event)> {
        let Reverse((time, _)) = self.heap.peek()?;
        if time.0 > until {
            return None;
        }
        let Reverse((time, event)) = self.heap.pop()?;
        Some((time.0, event))
    }
}
