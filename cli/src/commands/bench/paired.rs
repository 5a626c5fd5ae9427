//! The statistics of a paired comparison.
//!
//! A machine drifts: its clock, its neighbours, what its caches hold. So what is compared is not two
//! medians but the ratio within each round, in which both sides ran one after the other. Where the
//! memory of a side came to lie is drawn anew once a session, and moves all of the session's rounds
//! alike; so the interval is that of a bootstrap in two stages: sessions are drawn, and from each of
//! them rounds. It draws the same on every rank.

/// Resamples of the bootstrap.
const RESAMPLES: u64 = 1000;

/// The share of resamples that lies below the interval, and above.
const TAIL: f64 = 0.025;

/// A ratio with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The median of all rounds.
    pub median: f64,
    /// Where the interval begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
}

/// The ratios of one row, by session and round.
pub type Samples = Vec<Vec<f64>>;

/// The ratio of each row, and the geometric mean over rows.
pub fn ratios(rows: &[Samples]) -> (Vec<Ratio>, Ratio) {
    let mut mean = vec![0.0; RESAMPLES as usize];
    let mut own = 0.0;
    let mut ratios = Vec::with_capacity(rows.len());
    for row in rows {
        let mut resampled: Vec<f64> = (0..RESAMPLES).map(|seed| resample(row, seed)).collect();
        let ratio = median(&mut row.concat());
        for (mean, one) in mean.iter_mut().zip(&resampled) {
            *mean += one.ln() / rows.len() as f64;
        }
        own += ratio.ln() / rows.len() as f64;
        ratios.push(Ratio::of(ratio, &mut resampled));
    }
    let mut mean: Vec<f64> = mean.into_iter().map(f64::exp).collect();
    (ratios, Ratio::of(own.exp(), &mut mean))
}

impl Ratio {
    fn of(median: f64, resampled: &mut [f64]) -> Self {
        resampled.sort_by(f64::total_cmp);
        let last = resampled.len().saturating_sub(1);
        let at = |share: f64| resampled[(last as f64 * share).round() as usize];
        Self {
            median,
            low: at(TAIL),
            high: at(1.0 - TAIL),
        }
    }

    /// Whether all of the interval lies above `limit`.
    pub fn is_above(&self, limit: f64) -> bool {
        self.low > limit
    }
}

/// The median of one draw. Equal seeds draw the same sessions for every row, since what a session
/// does to one size it may do to all.
fn resample(row: &Samples, seed: u64) -> f64 {
    let mut random = Random(seed);
    let sessions: Vec<&Vec<f64>> = row.iter().map(|_| &row[random.below(row.len())]).collect();
    let mut drawn = Vec::new();
    for rounds in sessions {
        drawn.extend(rounds.iter().map(|_| rounds[random.below(rounds.len())]));
    }
    median(&mut drawn)
}

fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 1.0;
    }
    let (middle, odd) = (values.len() / 2, values.len() % 2 == 1);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if odd {
        return *upper;
    }
    let lower = below.iter().copied().fold(f64::MIN, f64::max);
    (lower + *upper) / 2.0
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many sessions of 40 rounds about `center`, with noise of ±10 % and some rounds that
    /// another program disturbed.
    fn noisy(center: f64, sessions: u64, salt: u64) -> Samples {
        let session = |number: u64| {
            let mut random = Random(salt * 1000 + number);
            let round = |_| match random.below(20) {
                0 => center * 3.0,
                _ => center * (0.9 + 0.2 * random.below(1000) as f64 / 1000.0),
            };
            (0..40).map(round).collect()
        };
        (0..sessions).map(session).collect()
    }

    #[test]
    fn medians() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&mut [7.0]), 7.0);
        assert_eq!(median(&mut []), 1.0);
    }

    #[test]
    fn the_same_is_not_called_slower_and_the_slower_is() {
        for salt in 0..20 {
            let (rows, mean) = ratios(&[noisy(1.0, 6, salt), noisy(1.12, 6, salt + 100)]);
            assert!(!rows[0].is_above(1.05), "{salt}: {rows:?}");
            assert!(rows[1].is_above(1.05), "{salt}: {rows:?}");
            assert!(rows[0].low <= rows[0].median && rows[0].median <= rows[0].high);
            assert!(mean.low < 1.06 && mean.high > 1.06, "{salt}: {mean:?}");
        }
    }

    #[test]
    fn sessions_that_differ_widen_the_interval() {
        let alike = ratios(&[noisy(1.0, 6, 1)]).1;
        let mut rounds = noisy(1.2, 6, 2);
        rounds[..3].clone_from_slice(&noisy(0.9, 3, 3));
        let apart = ratios(&[rounds]).1;
        assert!(apart.high - apart.low > 3.0 * (alike.high - alike.low));
        assert!(!apart.is_above(1.05), "{apart:?}");
    }

    #[test]
    fn every_rank_draws_the_same() {
        let rows = [noisy(1.0, 4, 9), noisy(1.1, 4, 10)];
        assert_eq!(ratios(&rows), ratios(&rows));
    }
}
