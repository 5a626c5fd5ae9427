//! Copies that are begun in the order in which they were handed over, whatever their streams, where a box says so.
//!
//! A driver knows nothing of flags, and orders as it likes what its own means do not order: one that waits for its stream
//! may hold up what stands behind it. Who hands over copies behind a wait can hang then, if what ends the wait is held up.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The order of one device's copies.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    line: Mutex<Line>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct Line {
    /// Copies handed over.
    last: u64,
    /// Copies begun.
    begun: u64,
}

/// A copy's place in the order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(u64);

/// How often who waits looks whether the device still works.
const LOOK: Duration = Duration::from_millis(5);

impl Copies {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy is handed over.
    pub(crate) fn hand_over(&self) -> Place {
        let mut line = self.line();
        line.last += 1;
        Place(line.last - 1)
    }

    /// Waits until all that were handed over before have begun, or nothing works any more; begins.
    pub(crate) fn begin(&self, place: Place, works: impl Fn() -> bool) {
        let mut line = self.line();
        while line.begun < place.0 && works() {
            line = self
                .moved
                .wait_timeout(line, LOOK)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        line.begun = line.begun.max(place.0 + 1);
        drop(line);
        self.moved.notify_all();
    }
}
