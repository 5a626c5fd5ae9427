//! How often to ask a socket that had nothing: each empty call costs as much as one that moves.

/// Counts empty calls; the more there were in a row, the more polls pass between two of them.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    misses: u32,
    skip: u32,
}

/// Empty calls in a row before any is left out: a peer that answers at once is met at once.
const PATIENCE: u32 = 64;
/// Polls left out between two calls, at most: they cost some 20 ns each.
const SKIP_MAX: u32 = 16;

impl Backoff {
    /// Whether to ask now.
    pub(crate) fn is_due(&mut self) -> bool {
        if self.skip == 0 {
            return true;
        }
        self.skip -= 1;
        false
    }

    /// A call that moved something.
    pub(crate) fn moved(&mut self) {
        *self = Self::default();
    }

    /// A call that did not.
    pub(crate) fn missed(&mut self) {
        self.misses = self.misses.saturating_add(1);
        self.skip = (self.misses.saturating_sub(PATIENCE) / 16).min(SKIP_MAX);
    }

    /// Ask at the next opportunity: the host slept until there was a reason.
    pub(crate) fn reset_skip(&mut self) {
        self.skip = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_less_and_less_but_never_stops() {
        let mut backoff = Backoff::default();
        let mut asked = 0;
        for _ in 0..10_000 {
            if backoff.is_due() {
                asked += 1;
                backoff.missed();
            }
        }
        assert!((10_000 / 17..2_000).contains(&asked), "{asked}");
        backoff.moved();
        assert!(backoff.is_due() && backoff.is_due());
    }
}
