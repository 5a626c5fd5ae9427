//! Keeping off the heels of a rank that only sends.

use std::time::{Duration, Instant};

/// Calls in a row that found all there: a stream of calls, of which this rank is the faster end.
const STREAM: u32 = 8;
/// Time for the sender to get some calls ahead again, of 0.1 us each; and what a call may come to wait in vain, once
/// in [`STREAM`] calls.
const LAG: Duration = Duration::from_nanos(500);

/// How a rank that takes bytes and sends none follows one that sends them and hardly ever waits.
///
/// Where it is the faster of the two it catches up, and from then on looks at each cache line while the other writes it.
/// Each look takes the line away from the writer, who then is slower by what it takes to fetch it back. So a rank that has
/// caught up looks away for a moment, and then finds several calls at once. Not one that was on the other's heels before
/// already: it gains nothing by that.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    /// Calls in a row that found all there.
    found: u32,
}

impl Lag {
    /// A call is complete that took something, did not wait, and left more behind.
    #[inline]
    pub(crate) fn found(&mut self) {
        self.found = self.found.saturating_add(1);
    }

    /// A call is complete that is of another kind, or was on the sender's heels.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.found = 0;
    }

    /// A call that takes something found that it has not come yet.
    #[cold]
    pub(crate) fn missed(&mut self) {
        if !self.has_caught_up() {
            return;
        }
        let since = Instant::now();
        while since.elapsed() < LAG {
            std::hint::spin_loop();
        }
    }

    /// Whether it had been the faster one. It has to be so again before the next time.
    fn has_caught_up(&mut self) -> bool {
        std::mem::take(&mut self.found) >= STREAM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_found_all_there_for_some_calls_looks_away() {
        let mut lag = Lag::default();
        let found = |lag: &mut Lag, calls| (0..calls).for_each(|_| lag.found());
        found(&mut lag, STREAM);
        assert!(lag.has_caught_up());
        assert!(!lag.has_caught_up(), "it has to be faster again first");
        found(&mut lag, STREAM - 1);
        assert!(!lag.has_caught_up());
        found(&mut lag, STREAM);
        lag.reset();
        assert!(!lag.has_caught_up(), "another call was between");
    }
}
