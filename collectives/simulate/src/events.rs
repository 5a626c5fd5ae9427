//! Moments, and the queue of what happens at them.

mod ends;

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use ends::Ends;

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
    /// The next flow of a route ends.
    Ends {
        /// The route.
        route: u32,
    },
}

/// Events by time; those of one time in a fixed order.
#[derive(Debug)]
pub(crate) struct Queue {
    delayed: BinaryHeap<Reverse<(Ordered, u32)>>,
    ends: Ends,
}

impl Queue {
    pub(crate) fn new(routes: usize) -> Self {
        Self {
            delayed: BinaryHeap::new(),
            ends: Ends::new(routes),
        }
    }

    /// The delay of a task is over then.
    pub(crate) fn delayed_until(&mut self, time: f64, task: u32) {
        self.delayed.push(Reverse((Ordered(time), task)));
    }

    /// The next flow of a route ends then, and not when was said before.
    pub(crate) fn end_at(&mut self, route: u32, time: f64) {
        self.ends.set(route, time);
    }

    /// A route has no flows.
    pub(crate) fn ends_never(&mut self, route: u32) {
        self.ends.remove(route);
    }

    /// The next event, if it is no later than `until`. An end is announced no longer.
    pub(crate) fn pop(&mut self, until: f64) -> Option<(f64, Event)> {
        let delayed = self
            .delayed
            .peek()
            .map(|&Reverse((time, task))| (time, Event::Delayed { task }));
        let ends = self
            .ends
            .first()
            .map(|(time, route)| (time, Event::Ends { route }));
        let (time, event) = delayed.into_iter().chain(ends).min()?;
        if time.0 > until {
            return None;
        }
        match event {
            Event::Delayed { .. } => drop(self.delayed.pop()),
            Event::Ends { route } => self.ends.remove(route),
        }
        Some((time.0, event))
    }
}
