//! Of a message that lies in a window: what is said of it, how both ends count on, and how fast it was taken.
#![allow(unsafe_code, reason = "lines are addresses of arenas")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Line, Own, Peer};
use crate::execute::pointed::LONG_MESSAGE;

/// From so many picoseconds a byte on a message had better passed slots, which carry 9 to 15 GB/s whatever the distance. A
/// core fetches what another has just written and still holds at 20 to 28 GB/s from near it, and at 3 to 7 from far
/// away: on an EPYC 7003 whose two cores are now this, now that, by `cargo xtask peers -- --dirty --own-memory --ranks 2
/// --ops send_recv`.
const SLOW: u32 = 90;
/// Of messages that pass slots for that reason one in so many does not, to see whether it still holds.
const TRIED_EVERY: u32 = 64;
/// Lengths are told apart by powers of two: what is left of a long one in the sender's cache is less.
const CLASSES: usize = 12;

/// How fast a peer takes messages of each length from windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Paces([Pace; CLASSES]);

#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Picoseconds a byte.
    took: u32,
    /// Messages since that have passed slots.
    passed: u32,
}

impl Default for Pace {
    /// Taken to be fast until some messages were not: the first touch memory that has no pages yet.
    fn default() -> Self {
        Self {
            took: SLOW / 2,
            passed: 0,
        }
    }
}

impl Paces {
    fn of(&mut self, bytes: u64) -> &mut Pace {
        let class = (bytes / LONG_MESSAGE).checked_ilog2().unwrap_or(0) as usize;
        &mut self.0[class.min(CLASSES - 1)]
    }
}

impl Pace {
    /// Whether the next message should lie in a window.
    fn choose(&mut self) -> bool {
        if self.took < SLOW {
            return true;
        }
        self.passed += 1;
        self.passed.is_multiple_of(TRIED_EVERY)
    }

    fn learn(&mut self, took: u32) {
        // A mean of the last ones, of which one may have been interrupted. Where messages pass slots few others tell, so the
        // first that was fast counts.
        self.took = match self.took >= SLOW && took < SLOW {
            true => took,
            false => (3 * self.took + took.clamp(self.took / 2, 2 * self.took)).div_ceil(4),
        };
    }
}

/// What who has taken a message tells of it with its credit: the bytes, and how many picoseconds each took.
pub(in crate::execute) fn pace_of(bytes: u64, took: Duration) -> [u64; 3] {
    let picoseconds = took.as_nanos() as u64 * 1000 / bytes.max(1);
    [bytes, picoseconds.clamp(1, u64::from(u32::MAX) / 8), 0]
}

impl Peer {
    /// Whether the first puts of long messages say where these lie, both ways: both ranks are CPUs that write each other's
    /// memory, and calls are not recorded.
    #[inline]
    pub(in crate::execute) fn may_point(&self) -> bool {
        self.shares() && self.slot_credits.is_none()
    }

    /// Whether the next message of so many bytes to the peer should lie in a window if it can.
    pub(in crate::execute) fn should_point(&mut self, bytes: u64) -> bool {
        self.hear_pace();
        self.paces.of(bytes).choose()
    }

    /// What the peer told of the last message that it took from a window.
    fn hear_pace(&mut self) {
        let Line { flag, .. } = self.credit();
        // SAFETY: a flag's line of this rank's own arena: a counter, and three words.
        let [_, bytes, took, _] = unsafe { &*(flag as usize as *const [AtomicU64; 4]) };
        let bytes = bytes.swap(0, Ordering::Relaxed);
        if bytes > 0 {
            let took = took.load(Ordering::Relaxed) as u32;
            self.paces.of(bytes).learn(took);
        }
    }

    /// Says with the put that is told of next where its message lies.
    pub(in crate::execute) fn point(&self, own: &Own, at: [u64; 2]) {
        let line = self.in_line(self.next_flag(own), true) as usize as *const [AtomicU64; 2];
        // SAFETY: it is of the peer's arena, which the lane keeps imported, and aligned. The peer reads it when the flag is
        // raised, and has given back the put that had the line before.
        let line = unsafe { &*line };
        for (place, word) in line.iter().zip(at) {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// The put before is the last that its credit gives back: the credits, in all, that give back all puts.
    pub(in crate::execute) fn skip_sent(&mut self, own: &Own) -> u64 {
        let credit = self.puts_a_credit(own, false);
        self.sent = self.sent.next_multiple_of(credit);
        self.sent / credit
    }

    /// Gives the current put back, as the last that its credit gives back.
    pub(in crate::execute) fn skip_received(&mut self, own: &Own) {
        self.released += 1;
        debug_assert!(self.holds_nothing(), "a message is given back in order");
        let credit = self.puts_a_credit(own, false);
        self.received = self.received.next_multiple_of(credit);
        self.released = self.received;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_is_slow_few_messages_lie_in_windows() {
        let mut pace = Pace::default();
        pace.learn(4000);
        pace.learn(400);
        assert!(pace.choose(), "pages were missing");
        pace.learn(40);
        pace.learn(4000);
        assert!(pace.choose(), "one was interrupted");
        (0..8).for_each(|_| pace.learn(170));
        let tried = (0..3 * TRIED_EVERY).filter(|_| pace.choose()).count();
        assert_eq!(tried, 3);
        pace.learn(45);
        assert!((0..10).all(|_| pace.choose()), "near again");
    }

    #[test]
    fn lengths_are_told_apart() {
        let mut paces = Paces::default();
        (0..8).for_each(|_| paces.of(LONG_MESSAGE).learn(500));
        assert!(!paces.of(2 * LONG_MESSAGE - 1).choose());
        assert!(paces.of(2 * LONG_MESSAGE).choose());
        assert!(paces.of(u64::MAX).choose());
    }

    #[test]
    fn a_pace_is_in_picoseconds_a_byte() {
        let [bytes, took, _] = pace_of(1 << 20, Duration::from_micros(40));
        assert_eq!((bytes, took), (1 << 20, 38));
        assert_eq!(pace_of(1 << 20, Duration::ZERO)[1], 1);
    }
}
