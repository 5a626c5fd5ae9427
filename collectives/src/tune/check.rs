//! Whether the plan that is chosen is the best one here.

use unisono_plan::OpKind;

use super::cell::{Bench, Cell, Entry};
use super::grid::{self, Steps};
use super::memory::DTYPE;
use super::pair::median;
use super::variant::Variant;
use super::{TuneOptions, TuneProgress};
use crate::Communicator;
use crate::error::Result;

/// One choice, held against every other plan for the same call.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The operation.
    pub op: OpKind,
    /// Bytes of the whole message.
    pub bytes: u64,
    /// The plan that is chosen.
    pub chosen: String,
    /// Median time of a call of it, in microseconds.
    pub chosen_us: f64,
    /// The plan that was fastest.
    pub best: String,
    /// Median time of a call of it, in microseconds.
    pub best_us: f64,
    /// The chosen plan's time over the fastest one's: the median over rounds in which both ran one
    /// after the other. 1 where the fastest was chosen.
    pub ratio: f64,
    /// Where that ratio lies with a probability of 95 %, by order statistics.
    pub interval: (f64, f64),
}

impl Choice {
    /// Whether the choice is surely more than `share` slower than the best, such as 0.1.
    #[must_use]
    pub fn is_miss(&self, share: f64) -> bool {
        self.interval.0 > 1.0 + share
    }
}

impl Choice {
    /// What is chosen, the first of a cell's entries, against the fastest.
    fn of(cell: &Cell) -> Option<Self> {
        let median = |entry: &Entry| median(&mut entry.times.clone());
        let chosen = cell.entries.first()?;
        let best = (cell.entries.iter()).min_by(|a, b| median(a).total_cmp(&median(b)))?;
        let (ratio, interval) = paired(&chosen.times, &best.times);
        Some(Self {
            op: cell.op.kind(),
            bytes: cell.bytes,
            chosen: chosen.variant.name.algorithm.clone(),
            chosen_us: 1e6 * median(chosen),
            best: best.variant.name.algorithm.clone(),
            best_us: 1e6 * median(best),
            ratio,
            interval,
        })
    }
}

impl Communicator {
    /// Measures every plan of every operation and holds the chosen ones against the best. All ranks
    /// call this together, and all get the same table.
    ///
    /// # Errors
    /// As [`Communicator::tune`].
    pub fn check_choices(
        &self,
        options: &TuneOptions,
        progress: &mut dyn FnMut(&TuneProgress),
    ) -> Result<Vec<Choice>> {
        options.check()?;
        if self.size() < 2 {
            return Ok(Vec::new());
        }
        let rounds = options.rounds.max(1);
        let mut steps = Steps::new(progress, grid::all(options).count() * (1 + rounds as usize));
        let mut bench = Bench::new(self, options, false)?;
        let mut cells = Vec::new();
        for (op, bytes) in grid::all(options) {
            steps.next(op, bytes);
            let mut cell = bench.cell(op, bytes)?;
            let variants = self.chosen_first(&bench, &cell)?;
            bench.add(&mut cell, variants)?;
            cells.push(cell);
        }
        for round in 0..rounds {
            for cell in &mut cells {
                steps.next(cell.op.kind(), cell.asked);
                bench.round(cell, cell.all(), round)?;
            }
        }
        Ok(cells.iter().filter_map(Choice::of).collect())
    }

    /// The plan that is chosen, and the others as they would be cut.
    fn chosen_first(&self, bench: &Bench<'_>, cell: &Cell) -> Result<Vec<Variant>> {
        let explained = self.explain(cell.op, cell.bytes, DTYPE)?;
        let mut variants = vec![Variant::new(cell.op.kind(), explained.selection().winner())];
        for candidate in bench.candidates(cell)? {
            let variant = Variant::new(cell.op.kind(), &candidate);
            if variant.name != variants[0].name {
                variants.push(variant);
            }
        }
        Ok(variants)
    }
}

/// The median of paired ratios and an interval that holds the true one with 95 %.
///
/// With n pairs, the k-th smallest and k-th largest bound the median unless more than n - k of n
/// fair coins fall alike; k is the largest for which that is less than 2.5 % on each side.
fn paired(a: &[f64], b: &[f64]) -> (f64, (f64, f64)) {
    let mut ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
    ratios.sort_by(f64::total_cmp);
    let n = ratios.len();
    let Some(middle) = ratios.get(n / 2).copied() else {
        return (1.0, (1.0, 1.0));
    };
    let (mut k, mut tail, mut ways) = (0, 0.0, 1.0);
    while k < n / 2 {
        tail += ways * 0.5f64.powi(n as i32);
        if tail > 0.025 {
            break;
        }
        ways = ways * (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    let edge = k.saturating_sub(1);
    (middle, (ratios[edge], ratios[n - 1 - edge]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_order_statistics() {
        // Textbook values: for 7 the extremes, for 10 the second, for 20 the sixth of each side.
        for (n, edge) in [(7, 0), (10, 1), (20, 5)] {
            let a: Vec<f64> = (1..=n).map(f64::from).collect();
            let ones = vec![1.0; n as usize];
            let (middle, (low, high)) = paired(&a, &ones);
            assert_eq!(middle, f64::from(n / 2 + 1));
            assert_eq!((low, high), (f64::from(1 + edge), f64::from(n - edge)));
        }
        assert_eq!(paired(&[], &[]), (1.0, (1.0, 1.0)));
    }

    #[test]
    fn a_miss_is_sure() {
        let mut choice = Choice {
            op: OpKind::Barrier,
            bytes: 0,
            chosen: String::new(),
            chosen_us: 2.0,
            best: String::new(),
            best_us: 1.0,
            ratio: 2.0,
            interval: (1.05, 3.0),
        };
        assert!(!choice.is_miss(0.1));
        choice.interval.0 = 1.11;
        assert!(choice.is_miss(0.1));
    }
}
