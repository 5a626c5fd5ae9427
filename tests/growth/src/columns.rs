//! What is told of jobs, column by column, and how it grows.

use crate::rank::Figures;
use crate::survey::Jobs;

/// More than this per doubling of the ranks is faster than linear.
pub const FAST: f64 = 2.2;

/// What is measured in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Time by the clock, in seconds.
    Clock,
    /// Time on a processor, in seconds.
    Processor,
    /// Memory, in bytes.
    Memory,
    /// A number of something.
    Count,
}

/// One figure of every rank.
pub struct Column {
    pub name: &'static str,
    pub quantity: Quantity,
    of: fn(&Figures) -> f64,
}

/// A column's value at one number of ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    /// The median of the ranks, and of that the median of the jobs.
    pub median: f64,
    /// The worst of the ranks, and of that the median of the jobs.
    pub worst: f64,
}

impl Quantity {
    /// What is less than this is not looked at: its growth is nobody's concern, or noise.
    pub const fn floor(self) -> f64 {
        match self {
            Self::Clock | Self::Processor => 0.005,
            Self::Memory => (1 << 20) as f64,
            Self::Count => 16.0,
        }
    }

    /// As a table shows it: milliseconds, MiB.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Clock | Self::Processor => short(value * 1e3),
            Self::Memory => short(value / (1 << 20) as f64),
            Self::Count => format!("{value:.0}"),
        }
    }
}

impl Column {
    /// Its value for jobs of one number of ranks.
    pub fn value(&self, jobs: &Jobs) -> Value {
        let of_runs = |pick: fn(Vec<f64>) -> f64| {
            let each = jobs.runs.iter();
            median(
                each.map(|job| pick(job.ranks.iter().map(self.of).collect()))
                    .collect(),
            )
        };
        Value {
            median: of_runs(median),
            worst: of_runs(|values| values.into_iter().fold(0.0, f64::max)),
        }
    }
}

/// Every column of this quantity, in the order of the tables.
pub fn columns(quantity: Quantity) -> impl Iterator<Item = &'static Column> {
    COLUMNS
        .iter()
        .filter(move |column| column.quantity == quantity)
}

/// By how much a value grows per doubling, between each number of ranks and the next one.
pub fn growth(ranks: &[u32], values: &[f64]) -> Vec<f64> {
    let pairs = ranks.windows(2).zip(values.windows(2));
    pairs
        .map(|(ranks, values)| {
            let doublings = (f64::from(ranks[1]) / f64::from(ranks[0])).log2();
            (values[1] / values[0]).powf(1.0 / doublings)
        })
        .collect()
}

/// Whether this growth is faster than linear, and to a value that matters. From one rank to several
/// all that peers need is new, so that this is no growth.
pub fn is_fast(from_ranks: u32, growth: f64, to: f64, floor: f64) -> bool {
    from_ranks > 1 && to > floor && growth > FAST
}

/// The middle one, or the mean of the two in the middle; 0 if there are none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

/// Two or three digits that count.
pub fn short(value: f64) -> String {
    let digits = match value {
        value if value < 1.0 => 3,
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

const fn clock(name: &'static str, of: fn(&Figures) -> f64) -> Column {
    let quantity = Quantity::Clock;
    Column { name, quantity, of }
}

const fn processor(name: &'static str, of: fn(&Figures) -> f64) -> Column {
    let quantity = Quantity::Processor;
    Column { name, quantity, of }
}

const fn memory(name: &'static str, of: fn(&Figures) -> f64) -> Column {
    let quantity = Quantity::Memory;
    Column { name, quantity, of }
}

const fn count(name: &'static str, of: fn(&Figures) -> f64) -> Column {
    let quantity = Quantity::Count;
    Column { name, quantity, of }
}

const COLUMNS: &[Column] = &[
    clock("join", |of| of.join.wall),
    clock("first barrier", |of| of.barrier.wall),
    clock("1 KiB, first", |of| of.small_first.wall),
    clock("1 KiB, second", |of| of.small_second.wall),
    clock("1 MiB, first", |of| of.large_first.wall),
    clock("1 MiB, second", |of| of.large_second.wall),
    clock("split", |of| of.split.wall),
    clock("first calls after it", |of| of.split_calls.wall),
    processor("join", |of| of.join.processor),
    processor("first barrier", |of| of.barrier.processor),
    processor("1 KiB, first", |of| of.small_first.processor),
    processor("1 KiB, second", |of| of.small_second.processor),
    processor("1 MiB, first", |of| of.large_first.processor),
    processor("1 MiB, second", |of| of.large_second.processor),
    processor("split", |of| of.split.processor),
    processor("first calls after it", |of| of.split_calls.processor),
    memory("before", |of| of.before.own() as f64),
    memory("join", |of| of.joined.own() as f64),
    memory("join and first calls", |of| of.used.own() as f64),
    memory("of these shared", |of| of.used.shared as f64),
    memory("further communicator", |of| of.further.own() as f64),
    memory("one of a rank alone", |of| of.alone.own() as f64),
    memory("code", |of| of.used.code as f64),
    memory("staging and flags", |of| of.held as f64),
    memory("mapped", |of| of.used.mapped as f64),
    memory("mapped by a further one", |of| of.further.mapped as f64),
    count("threads", |of| of.threads as f64),
    count("descriptors", |of| of.descriptors as f64),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_told_per_doubling() {
        assert_eq!(growth(&[2, 4, 8], &[1.0, 2.0, 8.0]), [2.0, 4.0]);
        assert_eq!(growth(&[2, 8], &[1.0, 16.0]), [4.0]);
    }

    #[test]
    fn quadratic_growth_is_fast_and_linear_is_not() {
        let floor = Quantity::Processor.floor();
        assert!(is_fast(8, 4.0, 1.0, floor));
        assert!(!is_fast(8, 2.0, 1.0, floor));
        assert!(!is_fast(8, 4.0, floor / 2.0, floor));
        assert!(!is_fast(1, 4.0, 1.0, floor));
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(Vec::new()), 0.0);
    }
}
