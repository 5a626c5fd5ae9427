//! Graphs of one device that could not be made.
//!
//! What was in the way may pass, as another thread's recording does: so after too many failures none is
//! tried for a while, and then some are.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failures after which none is tried.
const MOST: u32 = 8;
/// For so long.
const REST: Duration = Duration::from_secs(60);

/// How many there were.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Since the last rest.
    count: u32,
    last: Option<Instant>,
}

impl Failures {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more; true if it is the device's first.
    pub(super) fn add(&self, now: Instant) -> bool {
        let mut seen = self.lock();
        seen.count += 1;
        seen.last.replace(now).is_none()
    }

    /// Whether a graph may be tried.
    pub(super) fn allow(&self, now: Instant) -> bool {
        let mut seen = self.lock();
        if seen.count < MOST {
            return true;
        }
        let is_over = seen.last.is_none_or(|last| now >= last + REST);
        if is_over {
            seen.count = 0;
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_end_it_for_a_while() {
        let (failures, start) = (Failures::default(), Instant::now());
        for number in 0..MOST {
            assert!(failures.allow(start), "after {number}");
            assert_eq!(failures.add(start), number == 0);
        }
        assert!(!failures.allow(start));
        assert!(!failures.allow(start + REST / 2));
        for number in 0..MOST {
            assert!(failures.allow(start + REST), "after {number} more");
            assert!(!failures.add(start + REST), "it was said before");
        }
        assert!(!failures.allow(start + REST), "the next rest");
    }
}
