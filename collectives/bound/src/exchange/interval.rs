//! A rate between two ends, each proved by itself.

use unisono_network::{Rational, to_f64};

use crate::Limit;
use crate::collapse::Collapse;
use crate::paths::Paths;
use crate::problem::{Problem, below, ratio};

/// The best ends so far, for one pair.
#[derive(Default)]
pub(super) struct Interval {
    low: f64,
    high: Option<(Rational, Vec<u64>)>,
}

impl Interval {
    /// A routing of one unit for each pair reaches what its fullest arc allows: so many parts of it.
    pub(super) fn see_congestion(&mut self, fullest: f64) {
        // Loads are sums of rounded numbers; a billionth is far more than they are off by.
        let rate = (1.0 - 1e-9) / fullest;
        if rate.is_finite() {
            self.low = self.low.max(rate);
        }
    }

    /// Lengths are a proof, checked on whole numbers.
    pub(super) fn see_lengths(
        &mut self,
        problem: &Problem,
        collapse: &Collapse,
        paths: &mut Paths,
        lengths: Vec<u64>,
    ) {
        let mut room = 0;
        for (id, arc) in (0..).zip(&problem.arcs) {
            room += u128::from(arc.capacity) * u128::from(lengths[collapse.arcs.of(id) as usize]);
        }
        let mut distance = 0;
        for (rank, times) in collapse.ranks(problem) {
            distance +=
                u128::from(times) * paths.from(rank, |arc| lengths[collapse.arcs.of(arc) as usize]);
        }
        if distance == 0 {
            return;
        }
        let rate = ratio(room, distance);
        if self.high.as_ref().is_none_or(|(high, _)| rate < *high) {
            self.high = Some((rate, lengths));
        }
    }

    /// Whether the ends are no further apart than a part of the lower one.
    pub(super) fn is_narrow(&self, gap: f64) -> bool {
        let high = self
            .high
            .as_ref()
            .map_or(f64::INFINITY, |(high, _)| to_f64(*high));
        high <= self.low * (1.0 + gap)
    }

    /// What all ranks together get. `None` if nothing proved anything.
    pub(super) fn limit(self, problem: &Problem) -> Option<(Limit, Vec<u64>)> {
        let (high, lengths) = self.high?;
        let ranks = ratio(u128::from(problem.ranks), 1);
        let low = below(self.low)?;
        let ends = [low, high].map(|end| problem.bytes(end * ranks));
        Some((Limit::between(ends[0].min(ends[1]), ends[1]), lengths))
    }
}
