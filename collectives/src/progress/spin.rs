//! How a waiting thread spends its time: spin, then yield, then sleep.
//!
//! Waking an idle core costs tens of microseconds, so a thread sleeps late. Where ranks share
//! cores, spinning only keeps the peer from its core, so it yields at once.

use std::time::{Duration, Instant};

/// What to do next while nothing moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Spin,
    Yield,
    Sleep,
}

/// How long to spin and to yield before sleeping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub spins: u32,
    pub yields: u32,
    pub before_sleep: Duration,
}

impl Policy {
    /// For `ranks` ranks of this node on `cores` cores.
    pub(crate) fn new(ranks: usize, cores: usize, before_sleep: Duration) -> Self {
        Self {
            spins: if ranks <= cores { 2_000 } else { 0 },
            yields: 64,
            before_sleep,
        }
    }
}

/// One wait.
pub(crate) struct Spin {
    policy: Policy,
    idle: u32,
    since: Option<Instant>,
    /// Nothing has moved since the last sleep.
    slept: bool,
}

impl Spin {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            idle: 0,
            since: None,
            slept: false,
        }
    }

    /// After a poll that moved something or not.
    pub(crate) fn next(&mut self, moved: bool) -> Next {
        if moved {
            self.idle = 0;
            self.since = None;
            self.slept = false;
            return Next::Spin;
        }
        self.idle = self.idle.saturating_add(1);
        if self.idle <= self.policy.spins {
            return Next::Spin;
        }
        if self.slept {
            return Next::Sleep;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let yielded = self.idle - self.policy.spins;
        if yielded <= self.policy.yields || since.elapsed() < self.policy.before_sleep {
            Next::Yield
        } else {
            Next::Sleep
        }
    }

    /// After a sleep: look around a little before the next one, and sleep on if nothing moves.
    /// Sleeps end every few milliseconds, so to yield for long each time would add up.
    pub(crate) fn woke(&mut self) {
        self.idle = self.policy.spins.saturating_sub(64);
        self.slept = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spins_then_yields_then_sleeps() {
        let policy = Policy {
            spins: 3,
            yields: 2,
            before_sleep: Duration::ZERO,
        };
        let mut spin = Spin::new(policy);
        let all: Vec<_> = (0..6).map(|_| spin.next(false)).collect();
        use Next::{Sleep, Spin as S, Yield};
        assert_eq!(all, [S, S, S, Yield, Yield, Sleep]);
        spin.woke();
        let all: Vec<_> = (0..4).map(|_| spin.next(false)).collect();
        assert_eq!(
            all,
            [S, S, S, Sleep],
            "a sleeper that was woken for nothing sleeps on"
        );
        assert_eq!(spin.next(true), S, "progress starts the wait anew");
        let all: Vec<_> = (0..4).map(|_| spin.next(false)).collect();
        assert_eq!(all, [S, S, S, Yield]);
    }

    #[test]
    fn crowded_cores_are_given_up_at_once() {
        let mut spin = Spin::new(Policy::new(8, 2, Duration::ZERO));
        assert_eq!(spin.next(false), Next::Yield);
    }
}
