//! When a lane has lost its queue pair: what to try next, and for how long.

use std::time::{Duration, Instant};

use unisono_plugin::Error;

use super::lane::Lane;
use super::wire::Route;

/// An offer that nobody answers is made again after this.
pub(crate) const UNANSWERED: Duration = Duration::from_secs(1);
/// Between an attempt that failed and the next.
const PAUSE: Duration = Duration::from_millis(20);
/// A pair of rails that failed is tried last for so long.
const SHUNNED: Duration = Duration::from_secs(10);
/// How long a lane stays away from its own rails at first, and at last, before they are tried again.
const AWAY: Duration = Duration::from_secs(2);
const AWAY_MAX: Duration = Duration::from_secs(120);

/// A lane without a queue pair, or with one that has not proved itself.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) since: Instant,
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

impl Lane {
    /// Takes note that the lane has lost its queue pair.
    pub(crate) fn begin_trouble(&mut self, cause: Error, now: Instant) {
        let since = self.trouble.as_ref().map_or(now, |trouble| trouble.since);
        let outstanding = self.outstanding();
        self.trouble = Some(Trouble {
            since,
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

    /// Whether it is time to try again.
    pub(crate) fn may_try(&self, tried: Option<Instant>, now: Instant) -> bool {
        self.attempt.is_none() && tried.is_none_or(|at| now - at >= PAUSE)
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
    fn without_rails_there_is_nothing_to_try() {
        let pairs = Pairs::default();
        assert!(pairs.home(0).is_none());
        assert!(pairs.next(0, Instant::now(), |_| true).is_none());
        assert!(pairs.may_return(0, Instant::now(), |_| true).is_none());
    }
}
