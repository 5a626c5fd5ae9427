//! Events: completed by the recording that a stream reaches.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::capture::Point;

/// An event. Recordings have numbers; it is complete when its last one is.
#[derive(Debug, Default)]
pub struct Event {
    recorded: AtomicU64,
    reached: AtomicU64,
    /// Where in a graph it was recorded last, if in one.
    point: Mutex<Option<Point>>,
}

impl Event {
    /// Takes the number of a recording that is submitted now.
    pub fn record(&self) -> u64 {
        *self.lock() = None;
        self.recorded.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The last recording submitted, 0 if none.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.recorded.load(Ordering::Acquire)
    }

    /// A stream has reached a recording.
    pub fn reach(&self, number: u64) {
        self.reached.fetch_max(number, Ordering::AcqRel);
    }

    /// Whether a recording is complete. One never recorded is.
    #[must_use]
    pub fn is_reached(&self, number: u64) -> bool {
        self.reached.load(Ordering::Acquire) >= number
    }

    /// It is recorded into a graph.
    pub(crate) fn capture_at(&self, point: Point) {
        *self.lock() = Some(point);
    }

    /// Where in a graph it was recorded last.
    pub(crate) fn point(&self) -> Option<Point> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Point>> {
        self.point.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
