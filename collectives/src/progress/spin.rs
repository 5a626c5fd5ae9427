//! How a waiting thread spends its time: spin, then yield, then sleep.
//!
//! Waking an idle core costs tens of microseconds, so a thread sleeps late. Where ranks share
//! cores, spinning only keeps the peer from its core, so it yields at once.

use std::time::{Duration, Instant};

use super::sleep::End;
use crate::options::InitOptions;

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
    /// Zero where cores are shared.
    pub spin: Duration,
    pub yields: u32,
    pub before_sleep: Duration,
    /// After a failure: how long to wait until nothing touches the caller's buffers any more.
    pub drain: Duration,
    /// Whether short calls may run on the calling thread itself.
    pub direct: bool,
}

impl Policy {
    /// Whether cores are shared.
    pub(crate) fn is_crowded(&self) -> bool {
        self.spin.is_zero()
    }

    /// Where there are more ranks than cores for them, or not.
    pub(crate) fn new(crowded: bool, options: &InitOptions) -> Self {
        Self {
            spin: if crowded {
                Duration::ZERO
            } else {
                options.spin
            },
            yields: 64,
            before_sleep: options.before_sleep,
            drain: options.timeouts.abort_drain,
            direct: options.direct,
        }
    }
}

/// Spins between looks at the clock, which costs as much as a few of them.
const LOOK: u32 = 32;
/// Spins after a sleep that something ended which was not what is waited for.
const AFTER_SLEEP: u32 = 64;

/// One wait.
pub(crate) struct Spin {
    pub(super) policy: Policy,
    phase: Phase,
}

#[derive(Clone, Copy)]
enum Phase {
    /// So many spins; since the first look at the clock.
    Spinning(u32, Option<Instant>),
    Yielding(u32, Instant),
    /// Nothing has moved since the last sleep: so many spins until the next.
    Slept(u32),
}

impl Spin {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            phase: Phase::Spinning(0, None),
        }
    }

    /// After a poll that moved something or not.
    pub(crate) fn next(&mut self, moved: bool) -> Next {
        if moved {
            self.phase = Phase::Spinning(0, None);
            return Next::Spin;
        }
        match &mut self.phase {
            Phase::Spinning(spins, since) => {
                *spins += 1;
                if !self.policy.spin.is_zero() {
                    if !spins.is_multiple_of(LOOK) {
                        return Next::Spin;
                    }
                    let since = *since.get_or_insert_with(Instant::now);
                    if since.elapsed() < self.policy.spin {
                        return Next::Spin;
                    }
                }
                self.phase = Phase::Yielding(1, Instant::now());
                Next::Yield
            }
            Phase::Yielding(yields, since) => {
                *yields += 1;
                if *yields <= self.policy.yields || since.elapsed() < self.policy.before_sleep {
                    Next::Yield
                } else {
                    Next::Sleep
                }
            }
            Phase::Slept(0) => Next::Sleep,
            Phase::Slept(spins) => {
                *spins -= 1;
                Next::Spin
            }
        }
    }

    /// After a sleep: look around a little before the next one if something ended it, and sleep on if nothing moves.
    /// Sleeps end every few milliseconds, so to yield for long each time would add up.
    pub(crate) fn woke(&mut self, end: End) {
        let spins = match end {
            End::Woken if !self.policy.spin.is_zero() => AFTER_SLEEP,
            End::Woken | End::OverTime => 0,
        };
        self.phase = Phase::Slept(spins);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(spin: Duration) -> Policy {
        Policy {
            spin,
            yields: 2,
            before_sleep: Duration::ZERO,
            drain: Duration::ZERO,
            direct: true,
        }
    }

    /// How often each answer was given before it came to sleeping.
    fn until_sleep(spin: &mut Spin) -> (u64, u64) {
        let (mut spins, mut yields) = (0, 0);
        loop {
            match spin.next(false) {
                Next::Spin => {
                    assert_eq!(yields, 0, "no spinning after yielding");
                    spins += 1;
                }
                Next::Yield => yields += 1,
                Next::Sleep => return (spins, yields),
            }
        }
    }

    #[test]
    fn spins_as_long_as_told_then_yields_then_sleeps() {
        let mut spin = Spin::new(policy(Duration::from_millis(20)));
        let start = Instant::now();
        let (spins, yields) = until_sleep(&mut spin);
        let took = start.elapsed();
        assert!(took >= Duration::from_millis(20), "{took:?}");
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert!(spins > u64::from(LOOK), "{spins}");
        assert_eq!(yields, 2);
        spin.woke(End::Woken);
        assert_eq!(
            until_sleep(&mut spin),
            (u64::from(AFTER_SLEEP), 0),
            "a sleeper that was woken for nothing sleeps on"
        );
        spin.woke(End::OverTime);
        assert_eq!(until_sleep(&mut spin), (0, 0), "nothing came");
        assert_eq!(spin.next(true), Next::Spin, "progress starts anew");
        assert_eq!(until_sleep(&mut spin).1, 2);
    }

    #[test]
    fn cores_are_given_up_at_once_where_told_and_where_they_are_crowded() {
        let mut spin = Spin::new(policy(Duration::ZERO));
        assert_eq!(until_sleep(&mut spin), (0, 2));
        spin.woke(End::Woken);
        assert_eq!(until_sleep(&mut spin), (0, 0));
        let options = InitOptions::new(0, 8, unisono_bootstrap::RootSpec::Node);
        assert!(!Policy::new(false, &options).spin.is_zero());
        let mut crowded = Spin::new(Policy::new(true, &options));
        assert_eq!(crowded.next(false), Next::Yield);
    }
}
