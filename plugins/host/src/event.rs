//! Events: a pair of counters, of what was recorded and of what was reached.
//!
//! Submitting a RECORD takes the next number, reaching it completes that number. So an event that
//! is recorded again is not complete, and a stream that waits knows for which recording.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use unisono_plugin::{Event, Result};

use crate::{bell, fork};

/// An event of the host device.
#[derive(Clone, Debug)]
pub struct HostEvent(Arc<State>);

/// Numbers wrap: they are compared by their difference. A new event waits for number 1, which the
/// host may complete.
#[derive(Debug)]
struct State {
    /// The last number taken in the upper half, the last one reached in the lower.
    numbers: AtomicU64,
}

const fn pack(taken: u32, reached: u32) -> u64 {
    (taken as u64) << 32 | reached as u64
}

const fn unpack(numbers: u64) -> (u32, u32) {
    ((numbers >> 32) as u32, numbers as u32)
}

/// Whether a number is reached.
const fn is_reached(reached: u32, number: u32) -> bool {
    reached.wrapping_sub(number).cast_signed() >= 0
}

impl HostEvent {
    pub(crate) fn new() -> Self {
        Self(Arc::new(State {
            numbers: AtomicU64::new(pack(1, 0)),
        }))
    }

    /// Takes the number of a RECORD that is submitted.
    pub(crate) fn record(&self) -> u32 {
        self.update(|taken, reached| (taken.wrapping_add(1), reached))
            .0
    }

    /// The number that a WAIT_EVENT submitted now waits for.
    pub(crate) fn taken(&self) -> u32 {
        unpack(self.0.numbers.load(Ordering::Acquire)).0
    }

    /// Completes a number, and wakes who sleeps in this process.
    pub(crate) fn complete(&self, number: u32) {
        self.update(|taken, reached| {
            (
                taken,
                if is_reached(reached, number) {
                    reached
                } else {
                    number
                },
            )
        });
        bell::ring_own();
    }

    /// Whether a number is complete.
    pub(crate) fn is_complete(&self, number: u32) -> bool {
        is_reached(unpack(self.0.numbers.load(Ordering::Acquire)).1, number)
    }

    /// Updates both numbers; what they are then.
    fn update(&self, change: impl Fn(u32, u32) -> (u32, u32)) -> (u32, u32) {
        let mut old = self.0.numbers.load(Ordering::Relaxed);
        loop {
            let (taken, reached) = unpack(old);
            let new = change(taken, reached);
            let (set, unset) = (Ordering::AcqRel, Ordering::Relaxed);
            match self
                .0
                .numbers
                .compare_exchange_weak(old, pack(new.0, new.1), set, unset)
            {
                Ok(_) => return new,
                Err(found) => old = found,
            }
        }
    }
}

impl Event for HostEvent {
    fn host_signal(&self) -> Result<()> {
        fork::check()?;
        self.update(|taken, _| (taken, taken));
        bell::ring_own();
        Ok(())
    }

    fn host_query(&self) -> Result<bool> {
        fork::check()?;
        Ok(self.is_complete(self.taken()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_event_is_not_complete_until_the_host_says_so() {
        let event = HostEvent::new();
        assert_eq!(event.host_query(), Ok(false));
        event.host_signal().unwrap();
        assert_eq!(event.host_query(), Ok(true));
    }

    #[test]
    fn recording_again_makes_it_incomplete() {
        let event = HostEvent::new();
        let first = event.record();
        event.complete(first);
        assert_eq!(event.host_query(), Ok(true));
        let second = event.record();
        assert_eq!(event.host_query(), Ok(false));
        assert!(
            event.is_complete(first),
            "who waits for the first recording goes on"
        );
        event.complete(first);
        assert_eq!(
            event.host_query(),
            Ok(false),
            "an older recording completes no newer one"
        );
        event.complete(second);
        assert_eq!(event.host_query(), Ok(true));
    }

    #[test]
    fn numbers_wrap() {
        let event = HostEvent(Arc::new(State {
            numbers: AtomicU64::new(pack(u32::MAX, u32::MAX)),
        }));
        assert_eq!(event.host_query(), Ok(true));
        let number = event.record();
        assert_eq!(number, 0);
        assert_eq!(event.host_query(), Ok(false));
        event.complete(number);
        assert_eq!(event.host_query(), Ok(true));
    }
}
