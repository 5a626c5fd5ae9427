//! When a lane has lost its queue pair: what to try next, and for how long.

use std::time::{Duration, Instant};

use unisono_plugin::Error;

use super::lane::Lane;
use super::wire::Route;

/// An offer that nobody answers is made again after this.
pub(crate) const UNANSWERED: Duration = Duration::from_secs(1);
/// And after this where the lane has another queue pair meanwhile: the peer's driver may look for its
/// neighbour for seconds.
pub(crate) const UNHURRIED: Duration = Duration::from_secs(5);
/// Between an attempt that failed and the next.
const PAUSE: Duration = Duration::from_millis(20);
/// A pair of rails that failed is tried last for so long.
const SHUNNED: Duration = Duration::from_secs(10);
/// How long a lane stays away from its own rails at first, and at last, before they are tried again.
const AWAY: Duration = Duration::from_secs(2);
const AWAY_MAX: Duration = Duration::from_secs(120);

/// A peer that has said nothing for this long takes no part: it is asked at least every
/// [`UNANSWERED`].
const ABSENT: Duration = Duration::from_secs(2);
/// What is not looked at for longer than this was left alone: the program was busy elsewhere.
const UNWATCHED: Duration = Duration::from_secs(1);

/// A lane without a queue pair, or with one that has not proved itself.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// When it began; later by the time in which one of the ends did not look.
    since: Instant,
    /// When it began; later by the time in which this end did not look.
    began: Instant,
    pub(crate) cause: Error,
    /// Units that the peer had not acknowledged.
    pub(crate) outstanding: usize,
    /// The lane has left a queue pair that was well, for one on its own rails: nobody needs to hear of
    /// it as long as nothing else happens.
    pub(crate) planned: bool,
}

/// The pairs of rails of a link, and how they have fared.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    all: Vec<Pair>,
}

#[derive(Debug)]
struct Pair {
    route: Route,
    failed: Option<Instant>,
    /// How long it is left alone after a failure.
    away: Duration,
}

impl Pairs {
    pub(crate) fn new(routes: &[Route]) -> Self {
        let all = routes.iter().map(|route| Pair {
            route: *route,
            failed: None,
            away: AWAY,
        });
        Self { all: all.collect() }
    }

    /// The pair that a lane has when all is well.
    pub(crate) fn home(&self, lane: usize) -> Option<Route> {
        let place = lane.checked_rem(self.all.len())?;
        Some(self.all[place].route)
    }

    pub(crate) fn note_failure(&mut self, route: &Route, now: Instant) {
        for pair in self.all.iter_mut().filter(|pair| same(&pair.route, route)) {
            if pair.failed.is_some() {
                pair.away = (pair.away * 2).min(AWAY_MAX);
            }
            pair.failed = Some(now);
        }
    }

    /// Nobody answers over a pair: that may be the peer's absence. Others are tried before it comes again.
    pub(crate) fn note_silence(&mut self, route: &Route, now: Instant) {
        for pair in self.all.iter_mut().filter(|pair| same(&pair.route, route)) {
            pair.failed = Some(now);
        }
    }

    pub(crate) fn note_success(&mut self, route: &Route, now: Instant) {
        for pair in self.all.iter_mut().filter(|pair| same(&pair.route, route)) {
            // Who was well for long starts afresh.
            if pair.failed.is_none_or(|at| now - at > AWAY_MAX) {
                pair.failed = None;
                pair.away = AWAY;
            }
        }
    }

    /// What a lane without a queue pair tries next: its own rails first, and last what has failed
    /// lately or is known to be down.
    pub(crate) fn next(
        &self,
        lane: usize,
        now: Instant,
        is_up: impl Fn(usize) -> bool,
    ) -> Option<Route> {
        let count = self.all.len();
        let order = (0..count).map(|step| &self.all[(lane + step) % count]);
        order
            .min_by_key(|pair| {
                let lately = pair.failed.filter(|at| now - *at < SHUNNED);
                // Of those that failed, the one whose failure is longest ago.
                let ago = lately.map(|at| u128::MAX - (now - at).as_nanos());
                (!is_up(pair.route.rail), ago)
            })
            .map(|pair| pair.route)
    }

    /// Whether a lane that went elsewhere may try its own rails again.
    pub(crate) fn may_return(
        &self,
        lane: usize,
        now: Instant,
        is_up: impl Fn(usize) -> bool,
    ) -> Option<Route> {
        let pair = &self.all[lane.checked_rem(self.all.len())?];
        let rested = pair.failed.is_none_or(|at| now - at >= pair.away);
        (rested && is_up(pair.route.rail)).then_some(pair.route)
    }
}

/// Whether two routes lie on the same rails.
pub(crate) fn same(a: &Route, b: &Route) -> bool {
    (a.rail, a.peer_rail) == (b.rail, b.peer_rail)
}

/// Why a trouble has lasted too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// Both ends have looked for another way, for as long as they may.
    Unmended,
    /// The peer has taken no part.
    Absent,
}

impl Trouble {
    /// Time has passed since the last look. Only time in which both ends look counts as time to mend:
    /// a peer that computes will answer when it next needs the link.
    pub(crate) fn pass(&mut self, passed: Duration, heard: Option<Instant>, now: Instant) {
        let later = |at: Instant| (at + passed).min(now);
        let last = heard.map_or(self.began, |heard| heard.max(self.began));
        if passed > UNWATCHED {
            (self.began, self.since) = (later(self.began), later(self.since));
        } else if now.saturating_duration_since(last) > ABSENT {
            self.since = later(self.since);
        }
    }

    /// Whether it has lasted longer than it may: `recovery` while both ends look, `patience` in all.
    pub(crate) fn overdue(
        &self,
        recovery: Duration,
        patience: Duration,
        now: Instant,
    ) -> Option<Overdue> {
        if now.saturating_duration_since(self.since) > recovery {
            Some(Overdue::Unmended)
        } else if now.saturating_duration_since(self.began) > patience.max(recovery) {
            Some(Overdue::Absent)
        } else {
            None
        }
    }

    /// The link does without the lane: it has as much time again.
    pub(crate) fn begin_again(&mut self, now: Instant) {
        (self.since, self.began) = (now, now);
    }
}

impl Lane {
    /// Takes note that the lane has lost its queue pair.
    pub(crate) fn begin_trouble(&mut self, cause: Error, now: Instant) {
        let before = self.trouble.as_ref();
        let (since, began) = before.map_or((now, now), |trouble| (trouble.since, trouble.began));
        let outstanding = self.outstanding();
        self.trouble = Some(Trouble {
            since,
            began,
            cause,
            outstanding,
            planned: false,
        });
    }

    /// Takes note that the lane has left its queue pair for another: from here on it has as long as if
    /// it had lost it.
    pub(crate) fn begin_move(&mut self, cause: Error, now: Instant) {
        self.begin_trouble(cause, now);
        if let Some(trouble) = &mut self.trouble {
            trouble.planned = true;
        }
    }

    /// Whether it has lost its queue pair, and has not proved another yet.
    pub(crate) fn is_in_trouble(&self) -> bool {
        self.trouble
            .as_ref()
            .is_some_and(|trouble| !trouble.planned)
    }

    /// Whether its queue pair stands, and has proved itself.
    pub(crate) fn is_well(&self) -> bool {
        self.wire.is_some() && self.trouble.is_none()
    }

    /// Whether it is time to try again.
    pub(crate) fn may_try(&self, tried: Option<Instant>, now: Instant) -> bool {
        let under_way = self.attempt.is_some() || self.connecting.is_some();
        !under_way && tried.is_none_or(|at| now - at >= PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(rail: usize) -> Route {
        Route {
            rail,
            peer_rail: rail,
            gid: 0,
            peer_gid: 0,
        }
    }

    #[test]
    fn a_lane_moves_to_a_rail_that_lives_and_comes_back() {
        let mut pairs = Pairs::new(&[route(0), route(1)]);
        let start = Instant::now();
        let up = |_| true;
        let rail = |found: Option<Route>| found.map(|route| route.rail);
        assert_eq!(rail(pairs.home(3)), Some(1));
        assert_eq!(rail(pairs.next(0, start, up)), Some(0));
        pairs.note_failure(&route(0), start);
        assert_eq!(rail(pairs.next(0, start, up)), Some(1));
        // A rail whose link is down is worse than one that failed.
        assert_eq!(rail(pairs.next(0, start, |rail| rail == 0)), Some(0));
        let later = start + Duration::from_secs(1);
        pairs.note_failure(&route(1), later);
        assert_eq!(rail(pairs.next(1, later, up)), Some(0));
        assert_eq!(rail(pairs.may_return(0, later, up)), None);
        let rested = start + AWAY;
        assert_eq!(rail(pairs.may_return(0, rested, up)), Some(0));
        assert_eq!(rail(pairs.may_return(0, rested, |_| false)), None);
        // Each failure doubles the rest.
        pairs.note_failure(&route(0), rested);
        assert_eq!(rail(pairs.may_return(0, rested + AWAY, up)), None);
        assert_eq!(rail(pairs.may_return(0, rested + 2 * AWAY, up)), Some(0));
        pairs.note_success(&route(0), rested + 2 * AWAY_MAX);
        assert_eq!(rail(pairs.next(0, rested + 2 * AWAY_MAX, up)), Some(0));
    }

    #[test]
    fn only_time_in_which_both_ends_look_counts() {
        let start = Instant::now();
        let (recovery, patience) = (Duration::from_secs(5), Duration::from_secs(60));
        let begin = || Trouble {
            since: start,
            began: start,
            cause: Error::invalid("a cause"),
            outstanding: 1,
            planned: false,
        };
        let tick = Duration::from_millis(100);
        let after = |heard: &dyn Fn(Instant) -> Option<Instant>| {
            let mut trouble = begin();
            let mut now = start;
            loop {
                now += tick;
                trouble.pass(tick, heard(now), now);
                if let Some(why) = trouble.overdue(recovery, patience, now) {
                    return ((now - start).as_secs(), why);
                }
            }
        };
        // A peer that answers all the time, and one that never does.
        assert_eq!(after(&|now| Some(now)), (5, Overdue::Unmended));
        assert_eq!(after(&|_| None), (60, Overdue::Absent));
        // One that is away from the second on, until 30 s have gone by.
        let back = start + Duration::from_secs(30);
        let away = |now: Instant| {
            if now < start + Duration::from_secs(1) || now >= back {
                Some(now)
            } else {
                Some(start + Duration::from_secs(1))
            }
        };
        // Two of the seconds after its last word count, before it is known to be away.
        let (seconds, why) = after(&away);
        assert!((31..=33).contains(&seconds), "{seconds} s");
        assert_eq!(why, Overdue::Unmended);
        // This end is away for an hour: none of it counts.
        let mut trouble = begin();
        let hour = Duration::from_secs(3600);
        trouble.pass(hour, None, start + hour);
        assert_eq!(trouble.overdue(recovery, patience, start + hour), None);
    }

    #[test]
    fn without_rails_there_is_nothing_to_try() {
        let pairs = Pairs::default();
        assert!(pairs.home(0).is_none());
        assert!(pairs.next(0, Instant::now(), |_| true).is_none());
        assert!(pairs.may_return(0, Instant::now(), |_| true).is_none());
    }
}
