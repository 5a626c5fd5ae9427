//! A connection that was lost, and since when a link has no other.

use std::time::{Duration, Instant};

use super::broken::Broken;

/// A connection that was lost.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) since: Instant,
    pub(crate) cause: Broken,
}

/// The last connection that was well is lost to `cause`: since when the link is without any, which is from when
/// all of `troubles` count. Before that the others had long, as one was well.
pub(crate) fn since_the_last(
    troubles: impl Iterator<Item = Instant>,
    cause: &Broken,
    rail_timeout: Duration,
    now: Instant,
) -> Instant {
    let silent = match cause {
        // Of a longer silence, as of an idle path, nobody has looked for another way.
        Broken::Silent(silent) => *silent.min(&rail_timeout),
        _ => Duration::ZERO,
    };
    let fell = now.checked_sub(silent).unwrap_or(now);
    troubles.min().map_or(now, |first| first.clamp(fell, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAIL_TIMEOUT: Duration = Duration::from_secs(2);

    /// With the last one lost 1000 s after `start`.
    fn since(troubles: &[u64], cause: &Broken) -> f64 {
        let start = Instant::now();
        let at = |seconds: &u64| start + Duration::from_secs(*seconds);
        let found = since_the_last(troubles.iter().map(at), cause, RAIL_TIMEOUT, at(&1000));
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
    fn the_only_one_counts_from_its_loss() {
        let silent = Broken::Silent(Duration::from_secs(2));
        assert_eq!(since(&[1000], &silent), 1000.0);
    }
}
