//! A connection that was lost, and since when a link has no other.

use std::time::{Duration, Instant};

use super::broken::Broken;
use crate::setup::Recovery;

/// A connection that was lost.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// When it was found.
    pub(crate) since: Instant,
    /// From when on `recovery` counts.
    pub(crate) counts: Instant,
    pub(crate) cause: Broken,
}

impl Trouble {
    /// It is found now.
    pub(crate) fn new(cause: Broken, now: Instant) -> Self {
        Self {
            since: now,
            counts: now,
            cause,
        }
    }

    /// For so long of the time up to `now` nobody looked: it counts for nothing.
    pub(crate) fn excuse(&mut self, unwatched: Duration, now: Instant) {
        for time in [&mut self.since, &mut self.counts] {
            *time += unwatched.min(now.saturating_duration_since(*time));
        }
    }
}

/// The last connection that was well is lost to `cause`: since when the link is without any, which is from when
/// all of `troubles` count. Before that the others had long, as one was well. At least half of `recovery` is left.
pub(crate) fn since_the_last(
    troubles: impl Iterator<Item = Instant>,
    cause: &Broken,
    recovery: &Recovery,
    now: Instant,
) -> Instant {
    let silent = match cause {
        // In a longer silence, as of an idle path, nobody has looked for another way.
        Broken::Silent(silent) => (*silent).min(recovery.rail_timeout).min(recovery.limit / 2),
        _ => Duration::ZERO,
    };
    let fell = now.checked_sub(silent).unwrap_or(now);
    troubles.min().map_or(now, |first| first.clamp(fell, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the last one lost 1000 s after `start`.
    fn since(troubles: &[u64], cause: &Broken) -> f64 {
        with(Duration::from_secs(10), troubles, cause)
    }

    fn with(recovery: Duration, troubles: &[u64], cause: &Broken) -> f64 {
        let recovery = Recovery {
            rail_timeout: Duration::from_secs(2),
            limit: recovery,
            patience: Duration::from_secs(60),
        };
        let start = Instant::now();
        let at = |seconds: &u64| start + Duration::from_secs(*seconds);
        let found = since_the_last(troubles.iter().map(at), cause, &recovery, at(&1000));
        found.duration_since(start).as_secs_f64()
    }

    #[test]
    fn a_link_that_loses_all_at_once_counts_from_the_first() {
        let silent = Broken::Silent(Duration::from_secs(2));
        assert_eq!(since(&[999, 1000], &silent), 999.0);
    }

    #[test]
    fn one_that_is_long_dead_takes_no_time_from_the_others() {
        assert_eq!(since(&[3, 1000], &Broken::Told), 1000.0);
        let silent = Broken::Silent(Duration::from_secs(2));
        assert_eq!(since(&[3, 1000], &silent), 998.0);
        let idle = Broken::Silent(Duration::from_secs(6));
        assert_eq!(since(&[3, 1000], &idle), 998.0);
    }

    #[test]
    fn a_link_that_may_look_no_longer_than_a_path_may_be_silent_still_looks() {
        let silent = Broken::Silent(Duration::from_secs(2));
        assert_eq!(with(Duration::from_secs(2), &[3, 1000], &silent), 999.0);
    }

    #[test]
    fn time_in_which_nobody_looked_counts_for_nothing() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut trouble = Trouble::new(Broken::Told, at(10));
        trouble.counts = at(8);
        trouble.excuse(Duration::from_secs(5), at(20));
        assert_eq!((trouble.since, trouble.counts), (at(15), at(13)));
        trouble.excuse(Duration::from_secs(100), at(20));
        assert_eq!((trouble.since, trouble.counts), (at(20), at(20)));
    }

    #[test]
    fn the_only_one_counts_from_its_loss() {
        let silent = Broken::Silent(Duration::from_secs(2));
        assert_eq!(since(&[1000], &silent), 1000.0);
    }
}
