//! How much of a put each of several rails takes.
//!
//! A put is complete when its last byte has landed, so all rails should end together: what is unclaimed and
//! what is under way is shared out so that each would be done at the same time, by the rates that were
//! measured. It is asked anew for every stripe, so what was estimated wrongly is made good by the next.

/// A stripe is at least this long, unless it is the last.
const LEAST: u64 = 16 << 10;
/// And at most this.
const MOST: u64 = 512 << 10;
/// What a rail has under way as long as nothing is known of its rate.
const UNKNOWN: u64 = 64 << 10;
/// What a rail gets now and then although it would be late, so that its rate is measured: what it carries in
/// this time, in seconds, between these. A rail that was found faster gets more the next time: what is short
/// measures the way more than the rate.
const PROBE: f64 = 2e-3;
const PROBE_LEAST: u64 = 4 << 10;
const PROBE_MOST: u64 = 64 << 10;
/// Rails that differ by less than this share evenly: what is measured varies as much.
const ALIKE: f64 = 0.8;

/// Puts of at least this length are striped.
pub(crate) const STRIPED: u64 = 2 * LEAST;

/// What is known of one rail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rail {
    /// Whether it can carry anything.
    pub(crate) is_well: bool,
    /// Bytes in a second, if something was measured, and what it is at most.
    pub(crate) rate: Option<f64>,
    pub(crate) at_most: f64,
    /// Bytes that the peer has not said it has.
    pub(crate) under_way: u64,
    /// Whether what was measured is old.
    pub(crate) is_old: bool,
}

/// How much rail `at` should take now of the `rest` of a put; 0 if that is better left to others.
///
/// While one rail can take something, it is not 0 for all of them but until one of them has brought
/// something to the peer.
pub(crate) fn share(rails: &[Rail], at: usize, rest: u64) -> u64 {
    let own = rails[at];
    if !own.is_well || rest == 0 {
        return 0;
    }
    let fill = Fill::new(rails, rest);
    let room = fill.room(&own);
    let most = match own.rate {
        Some(_) => MOST,
        None => UNKNOWN.saturating_sub(own.under_way),
    };
    let is_best = || {
        let others = rails.iter().enumerate().filter(|(_, rail)| rail.is_well);
        others.fold(at, |best, (other, rail)| {
            match fill.room(rail) > fill.room(&rails[best]) {
                true => other,
                false => best,
            }
        }) == at
    };
    let wanted = if room >= LEAST {
        let wanted = room.next_multiple_of(4096);
        // A remainder that is not worth a stripe goes with this one, unless that is slow.
        match rest.saturating_sub(wanted) < LEAST && fill.is_fast(&own) {
            true => rest,
            false => wanted,
        }
    } else if own.is_old {
        ((fill.speed(&own) * PROBE) as u64).clamp(PROBE_LEAST, PROBE_MOST)
    } else if is_best() {
        LEAST
    } else {
        return 0;
    };
    let wanted = wanted.min(rest);
    // Where little is known, little is taken, but not crumbs.
    if most < wanted.min(LEAST) {
        return 0;
    }
    wanted.min(most)
}

/// As many bytes as rails take until a moment at which all are done.
struct Fill {
    /// What a rail of unknown rate is taken for, and what the fastest is.
    usual: f64,
    fastest: f64,
    mean: f64,
    /// Seconds until that moment.
    until: f64,
}

impl Fill {
    fn new(rails: &[Rail], rest: u64) -> Self {
        let well = || rails.iter().filter(|rail| rail.is_well);
        let known = well().filter_map(|rail| rail.rate);
        let (sum, count) = known.fold((0.0, 0), |(sum, count), rate| (sum + rate, count + 1));
        let mut new = Self {
            usual: if count == 0 {
                1e9
            } else {
                sum / f64::from(count)
            },
            fastest: f64::INFINITY,
            mean: 0.0,
            until: f64::INFINITY,
        };
        new.fastest = well().map(|rail| new.speed(rail)).fold(0.0, f64::max);
        new.mean = well().map(|rail| new.speed(rail)).sum::<f64>() / well().count().max(1) as f64;
        // Rails that would be busy longer than that anyway take nothing, so the others take longer.
        loop {
            let busy = |rail: &&Rail| (rail.under_way as f64) < new.speed(rail) * new.until;
            let free = well().filter(busy);
            let (bytes, speed) = free.fold((rest as f64, 0.0), |(bytes, speed), rail| {
                (bytes + rail.under_way as f64, speed + new.speed(rail))
            });
            let until = bytes / speed;
            if until >= new.until || speed == 0.0 {
                return new;
            }
            new.until = until;
        }
    }

    fn speed(&self, rail: &Rail) -> f64 {
        let speed = rail.rate.unwrap_or(self.usual).min(rail.at_most).max(1.0);
        match self.fastest.is_finite() && speed >= self.fastest * ALIKE {
            true => self.fastest,
            false => speed,
        }
    }

    fn is_fast(&self, rail: &Rail) -> bool {
        self.speed(rail) >= self.mean
    }

    /// Bytes that a rail can take until then.
    fn room(&self, rail: &Rail) -> u64 {
        let all = (self.speed(rail) * self.until).round() as u64;
        all.saturating_sub(rail.under_way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rail(rate: f64) -> Rail {
        Rail {
            is_well: true,
            rate: Some(rate),
            at_most: f64::INFINITY,
            under_way: 0,
            is_old: false,
        }
    }

    /// Lets rails claim in turns until a put is claimed; what each has.
    fn claim(rails: &mut [Rail], total: u64) -> Vec<u64> {
        let before: Vec<u64> = rails.iter().map(|rail| rail.under_way).collect();
        let mut rest = total;
        while rest > 0 {
            let was = rest;
            for at in 0..rails.len() {
                let taken = share(rails, at, rest);
                assert!(taken <= rest && taken <= MOST);
                rails[at].under_way += taken;
                rest -= taken;
            }
            assert!(rest < was, "nobody takes the rest of {rest}");
        }
        let now = rails.iter().map(|rail| rail.under_way);
        now.zip(before).map(|(now, before)| now - before).collect()
    }

    #[test]
    fn equal_rails_share_evenly() {
        for total in [STRIPED, 256 << 10, 1 << 20] {
            let mut rails = [rail(1.1e8), rail(1e8)];
            assert_eq!(claim(&mut rails, total), [total / 2, total / 2]);
        }
    }

    #[test]
    fn a_slow_rail_takes_in_proportion() {
        let mut rails = [rail(6e6), rail(1.2e8)];
        let taken = claim(&mut rails, 1 << 20);
        assert!((40 << 10..64 << 10).contains(&taken[0]), "{taken:?}");
        // The next put comes before that has landed: again, to end together.
        let again = claim(&mut rails, 1 << 20);
        assert!((40 << 10..64 << 10).contains(&again[0]), "{again:?}");
        // Where its part would not be worth a stripe, it takes none.
        assert_eq!(claim(&mut [rail(6e6), rail(1.2e8)], 128 << 10)[0], 0);
    }

    #[test]
    fn a_rail_that_is_behind_is_left_alone_and_others_share_as_if_it_were_not_there() {
        let mut rails = [rail(6e6), rail(1e8), rail(1e8)];
        rails[0].under_way = 1 << 20;
        assert_eq!(claim(&mut rails, 512 << 10), [0, 256 << 10, 256 << 10]);
        rails[0].is_well = false;
        assert_eq!(share(&rails, 0, 512 << 10), 0);
    }

    #[test]
    fn a_rail_that_stalls_takes_nothing_more() {
        let mut rails = [rail(1e8), rail(1e8)];
        (rails[0].under_way, rails[0].at_most) = (64 << 10, 1e6);
        assert_eq!(share(&rails, 0, 512 << 10), 0);
        assert_eq!(share(&rails, 1, 512 << 10), 512 << 10);
    }

    #[test]
    fn little_is_taken_while_nothing_is_known() {
        let mut rails = [rail(0.0), rail(0.0)];
        for rail in &mut rails {
            rail.rate = None;
        }
        assert_eq!(share(&rails, 0, 1 << 20), UNKNOWN);
        rails[0].under_way = UNKNOWN;
        assert_eq!(share(&rails, 0, 1 << 20), 0);
        assert_eq!(share(&rails, 1, 1 << 20), UNKNOWN);
        // Beside one that is known it is taken for as fast.
        rails[0] = rail(1e8);
        assert_eq!(share(&rails, 0, 256 << 10), 128 << 10);
    }

    #[test]
    fn a_rail_that_was_not_measured_for_long_is_probed() {
        let mut rails = [rail(1e5), rail(1e9)];
        assert_eq!(share(&rails, 0, 512 << 10), 0);
        rails[0].is_old = true;
        assert_eq!(share(&rails, 0, 512 << 10), PROBE_LEAST);
    }

    /// It was slow or far, and is as fast and near as the other now: 0.2 ms there and back. The puts are as
    /// long as those of collectives.
    #[test]
    fn a_rail_that_is_fast_again_is_found() {
        const PUT: u64 = 128 << 10;
        let mut rails = [rail(5e5), rail(8e7)];
        for _ in 0..5 {
            rails[0].is_old = true;
            let probe = share(&rails, 0, PUT);
            rails[0].rate = Some(probe as f64 / (2e-4 + probe as f64 / 1.2e8));
        }
        rails[0].is_old = false;
        let taken = share(&rails, 0, PUT);
        assert!((PUT / 3..=PUT / 2).contains(&taken), "{taken}");
    }
}
