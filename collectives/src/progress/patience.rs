//! The short wait of a call before it becomes one that others may know of: with nothing looked at but
//! what it waits for.

use std::time::{Duration, Instant};

use super::Policy;

/// Spins where each rank has a core of its own, a few hundred nanoseconds in all.
const SPINS: u32 = 64;
/// Switches to other ranks: all of a core that is shared by eight, twice.
const YIELDS: u32 = 16;
/// For so long at most behind the first two, whatever the others do with the core: the lane's lock is held meanwhile.
const SWITCHING: Duration = Duration::from_micros(100);
/// For so long a core is not given up while all that are waited for run on others: as long as a switch takes on an EPYC
/// 7003, 1.9 us. Four ranks on two cores then switch 1.0 times a barrier and core, which is the least (`perf stat -e
/// context-switches` of `cargo xtask peers -- --ranks 4 --ops barrier`). From 1 to 3 us it made no difference there. Where a
/// rank waited for one on another core first, and only then for one on its own, it was 1.1 times for 1 us and 1.5 times for
/// 0.6 us.
const ALONGSIDE: Duration = Duration::from_micros(2);
/// Pauses between looks meanwhile, as each takes the line away from who is about to write it: on a Xeon with AMX-FP16, where
/// one takes some 45 ns, barriers and all_gathers of 4 B of four ranks on two cores took 1.01 to 1.04 times as long with one
/// or five of them as with two.
const PAUSES: u32 = 2;
/// Pauses between looks at the clock.
const LOOK: u32 = 4;

/// How long a call may still wait.
pub(crate) struct Patience {
    left: u32,
    /// When it had given its core up twice.
    since: Option<Instant>,
    /// Cores are shared: another rank may need this one's.
    crowded: bool,
    /// Who is waited for, and how.
    from: u32,
    spinning: Spinning,
}

/// A wait for a rank that may run on another core.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Spinning {
    Not,
    /// Once no rank is waited for that needs this core.
    Later,
    /// So many pauses since the last look at the clock; when it was first looked at.
    For(u32, Option<Instant>),
}

/// Whether a peer seems to run on another core, at the same time as this rank.
///
/// Where cores are shared, a peer on this core comes only if this rank gives it up; one that runs
/// alongside may come in less time than that takes. It is guessed from how the last waits ended; a
/// wrong guess costs as much as a switch, now and then.
#[derive(Debug)]
pub(crate) struct Alongside {
    /// So much in favour of it.
    score: u8,
    /// Waits since it was tried last.
    waits: u8,
}

impl Default for Alongside {
    fn default() -> Self {
        Self {
            score: Self::MOST,
            waits: 0,
        }
    }
}

impl Alongside {
    const MOST: u8 = 4;
    /// A peer that seems not to is tried once in so many waits.
    const TRY: u8 = 128;

    /// A wait begins; whether it is one in which to try the peer, whatever it seems to be.
    fn is_tried(&mut self) -> bool {
        self.waits = (self.waits + 1) % Self::TRY;
        self.waits == 0
    }

    /// This rank spins for it.
    fn begin(&mut self) {
        self.score = (self.score + 1).min(Self::MOST + 1);
    }

    /// Whether the peer seems to share this core, and comes only if this rank gives it up.
    pub(crate) fn seems_here(&self) -> bool {
        self.score == 0
    }

    /// The spins were in vain.
    fn missed(&mut self) {
        self.score = self.score.saturating_sub(2);
    }
}

impl Patience {
    pub(crate) fn new(policy: &Policy) -> Self {
        let crowded = policy.is_crowded();
        Self {
            left: if crowded { YIELDS } else { SPINS },
            since: None,
            crowded,
            from: u32::MAX,
            spinning: Spinning::Not,
        }
    }

    /// For who does not wait.
    pub(crate) fn none() -> Self {
        Self {
            left: 0,
            since: None,
            crowded: false,
            from: u32::MAX,
            spinning: Spinning::Not,
        }
    }

    /// Whether ranks share cores, and it may wait.
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded
    }

    /// Whether each rank has a core of its own, and it may wait.
    pub(crate) fn is_alone(&self) -> bool {
        !self.crowded && self.left > 0
    }

    /// Before each moment of a wait for a peer: whether this rank may [`spin`](Self::spin), if no other is waited for that
    /// needs this core. As long as one is, the core is given up; who runs alongside comes meanwhile.
    #[inline]
    pub(crate) fn may_spin(&mut self, from: u32, alongside: &mut Alongside) -> bool {
        if !self.crowded {
            return false;
        }
        if std::mem::replace(&mut self.from, from) != from {
            self.spinning = Spinning::Not;
            let is_tried = alongside.is_tried();
            if self.left == 0 || super::progress().has_work() {
                return false;
            }
            if is_tried {
                self.spin(alongside);
            } else if !alongside.seems_here() {
                self.spinning = Spinning::Later;
            }
        }
        self.spinning == Spinning::Later
    }

    /// Whether it spins for a rank that may run on another core.
    pub(crate) fn is_spinning(&self) -> bool {
        matches!(self.spinning, Spinning::For(..))
    }

    /// Spins from now on, for a while.
    pub(crate) fn spin(&mut self, alongside: &mut Alongside) {
        alongside.begin();
        self.spinning = Spinning::For(0, None);
    }

    /// Lets a moment pass in a wait for a peer; false once there were enough, or others have work for
    /// this thread.
    #[inline]
    pub(crate) fn goes_on(
        &mut self,
        alongside: &mut Alongside,
        has_come: Option<impl Fn() -> bool>,
    ) -> bool {
        if self.crowded {
            return self.shares_core(alongside, has_come);
        }
        std::hint::spin_loop();
        self.left = self.left.saturating_sub(1);
        self.left > 0
    }

    fn shares_core(
        &mut self,
        alongside: &mut Alongside,
        has_come: Option<impl Fn() -> bool>,
    ) -> bool {
        if let Spinning::For(pauses, since) = &mut self.spinning {
            *pauses += pause(has_come);
            // Also where something seems to have come each time, and is not what is waited for.
            if *pauses >= LOOK {
                *pauses = 0;
                if since.get_or_insert_with(Instant::now).elapsed() >= ALONGSIDE {
                    self.spinning = Spinning::Not;
                    alongside.missed();
                }
            }
            return true;
        }
        if self.left == 0 || super::progress().has_work() {
            return false;
        }
        std::thread::yield_now();
        self.left -= 1;
        // Most waits end with their first switch, so nobody looks at the clock before.
        if let Some(since) = self.since {
            if since.elapsed() >= SWITCHING {
                self.left = 0;
            }
        } else if self.left < YIELDS - 1 {
            self.since = Some(Instant::now());
        }
        true
    }
}

/// Pauses once, or until something has come, as far as that can be seen, but then no more than a few times; how often.
fn pause(has_come: Option<impl Fn() -> bool>) -> u32 {
    let Some(has_come) = has_come else {
        std::hint::spin_loop();
        return 1;
    };
    let mut pauses = 0;
    while pauses < LOOK {
        for _ in 0..PAUSES {
            std::hint::spin_loop();
        }
        pauses += PAUSES;
        if has_come() {
            break;
        }
    }
    pauses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::InitOptions;

    const NOTHING: Option<fn() -> bool> = None;

    fn crowded() -> Patience {
        let options = InitOptions::new(0, 4, unisono_bootstrap::RootSpec::Node);
        Patience::new(&Policy::new(true, &options))
    }

    /// Waits of which the peer comes within the spins or never; how many spun.
    fn spun(alongside: &mut Alongside, comes: bool, waits: u32) -> u32 {
        let mut spun = 0;
        for _ in 0..waits {
            let mut patience = crowded();
            if patience.may_spin(1, alongside) {
                patience.spin(alongside);
            }
            let spins = patience.spinning != Spinning::Not;
            spun += u32::from(spins);
            if spins && !comes {
                alongside.missed();
            }
        }
        spun
    }

    #[test]
    fn spins_for_a_peer_that_comes_and_seldom_for_one_that_does_not() {
        let mut alongside = Alongside::default();
        assert_eq!(spun(&mut alongside, true, 1000), 1000);
        let vain = spun(&mut alongside, false, 1000);
        let tries = 1000 / u32::from(Alongside::TRY);
        assert!((tries..tries + 10).contains(&vain), "{vain}");
        // It has moved to another core.
        let found = spun(&mut alongside, true, 1000);
        assert!(found > 1000 - u32::from(Alongside::TRY), "{found}");
    }

    #[test]
    fn a_core_is_given_up_until_all_have_come_that_share_it() {
        let mut patience = crowded();
        let mut alongside = Alongside::default();
        for yields in 1..=3 {
            assert!(patience.may_spin(1, &mut alongside));
            assert!(patience.goes_on(&mut alongside, NOTHING));
            assert_eq!(patience.left, YIELDS - yields);
        }
        assert_eq!(
            alongside.score,
            Alongside::MOST,
            "nothing was learnt of who runs on another"
        );
        assert!(patience.may_spin(1, &mut alongside));
        patience.spin(&mut alongside);
        assert!(patience.goes_on(&mut alongside, NOTHING));
        assert_eq!(patience.left, YIELDS - 3, "it spins");
        assert!(!patience.may_spin(1, &mut alongside), "it does already");
    }

    /// Or one that has moved away would never be known to.
    #[test]
    fn who_is_waited_for_is_tried_now_and_then_whoever_is_here() {
        let mut alongside = Alongside::default();
        let mut tried = 0;
        for _ in 0..10 * u32::from(Alongside::TRY) {
            let mut patience = crowded();
            patience.may_spin(1, &mut alongside);
            tried += u32::from(matches!(patience.spinning, Spinning::For(..)));
        }
        assert_eq!(tried, 10);
    }

    #[test]
    fn a_wait_that_has_given_its_core_up_often_spins_no_more() {
        let mut patience = crowded();
        patience.left = 0;
        let mut alongside = Alongside::default();
        assert!(!patience.may_spin(1, &mut alongside));
        assert!(!patience.goes_on(&mut alongside, NOTHING));
    }

    /// Whatever it can see, or cannot, and in whatever order.
    #[test]
    fn no_wait_spins_for_ever() {
        let seen = [Some(true), Some(false), None];
        let sequences = seen
            .into_iter()
            .flat_map(|first| seen.map(|then| [first, then]));
        for [first, then] in sequences {
            let mut patience = crowded();
            let mut alongside = Alongside::default();
            patience.spin(&mut alongside);
            let begun = Instant::now();
            let mut looks = 0;
            while patience.spinning != Spinning::Not {
                let seen = if looks == 0 { first } else { then };
                let has_come = seen.map(|has_come| move || has_come);
                assert!(patience.goes_on(&mut alongside, has_come));
                looks += 1;
                assert!(looks < 1_000_000, "{first:?}, then {then:?}");
            }
            assert!(begun.elapsed() >= ALONGSIDE);
            assert_eq!(patience.left, YIELDS, "it was not given up");
        }
    }

    #[test]
    fn who_spins_sees_at_once_what_has_come() {
        assert_eq!(pause(Some(|| true)), PAUSES);
        assert_eq!(pause(Some(|| false)), LOOK);
        assert_eq!(pause(NOTHING), 1);
    }

    #[test]
    fn a_core_is_kept_for_a_while_for_a_rank_that_runs_on_another() {
        let mut patience = crowded();
        let mut alongside = Alongside::default();
        let begun = Instant::now();
        assert!(patience.may_spin(1, &mut alongside));
        patience.spin(&mut alongside);
        assert!(patience.goes_on(&mut alongside, NOTHING));
        while let Spinning::For(..) = patience.spinning {
            assert!(patience.goes_on(&mut alongside, NOTHING));
        }
        assert!(begun.elapsed() >= ALONGSIDE);
        assert_eq!(patience.left, YIELDS, "it was not given up");
        assert_eq!(alongside.score, Alongside::MOST - 1, "one more, two less");
    }
}
