//! What was measured, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::arguments::Transport;
use crate::cell::Cell;

/// Our name in results.
pub const OURS: &str = "unisono";
/// The name of the machine's limit in results.
pub const LIMIT: &str = "limit";
/// Times that differ by no more than this factor are a tie.
pub const TIE: f64 = 1.1;

/// Cores that others may use before figures mean nothing.
pub const QUIET: f64 = 0.1;

/// A row of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub transport: Transport,
    pub ranks: u32,
    pub cell: Cell,
}

/// What each round took, and what follows from all of them.
#[derive(Clone, Debug, Default)]
pub struct Row {
    rounds: Vec<Round>,
}

/// Microseconds of one round, by library. They were measured one right after the other.
pub type Round = BTreeMap<String, f64>;

/// Everything that a run found.
#[derive(Debug, Default)]
pub struct Results {
    pub rows: BTreeMap<Key, Row>,
    /// Libraries with what they say of themselves.
    pub versions: BTreeMap<String, String>,
    /// Libraries that did not start or left, and with which ranks they are missing, or from which cell on.
    pub missing: BTreeSet<(String, String)>,
    /// Libraries that may be named when results are published.
    pub named: BTreeSet<String>,
    /// Cores that others used, before each round.
    pub others: Vec<f64>,
    /// Nanoseconds of a line's round trip between two cores, for each cell and round.
    pub round_trips: Vec<f64>,
    /// Rounds of a cell that were kept although the cores were moved during each try.
    pub unsteady: usize,
    wrong: BTreeSet<(Key, String)>,
}

impl Results {
    /// Notes a wrong result.
    pub fn add_wrong(&mut self, key: Key, library: &str) {
        self.wrong.insert((key, library.to_owned()));
    }

    /// Notes the times of one round.
    pub fn add(&mut self, key: Key, mut round: Round) {
        // The time of rewriting the input is taken off, so noise may leave less than nothing.
        round.values_mut().for_each(|usec| *usec = usec.max(0.001));
        self.rows.entry(key).or_default().rounds.push(round);
    }

    /// Cores that others used, in the median round.
    pub fn others_busy(&self) -> f64 {
        median(&self.others).unwrap_or(0.0)
    }

    /// Where a library's result was not what it must be. Such times still stand in the tables.
    pub fn wrong(&self) -> Vec<(Key, &str)> {
        self.wrong
            .iter()
            .map(|(key, library)| (*key, library.as_str()))
            .collect()
    }

    /// Rows of one transport and number of ranks, in the grid's order.
    pub fn part(&self, transport: Transport, ranks: u32) -> Vec<(Cell, &Row)> {
        self.rows
            .iter()
            .filter(|(key, _)| key.transport == transport && key.ranks == ranks)
            .map(|(key, row)| (key.cell, row))
            .collect()
    }

    /// Whether the machine's limit was measured with any of them.
    pub fn have_limit(&self) -> bool {
        self.rows.values().any(|row| row.limit().is_some())
    }

    /// Which transports and numbers of ranks there are.
    pub fn parts(&self) -> Vec<(Transport, u32)> {
        let parts: BTreeSet<_> = self
            .rows
            .keys()
            .map(|key| (key.transport, key.ranks))
            .collect();
        parts.into_iter().collect()
    }
}

impl Row {
    /// A library's median, in microseconds.
    pub fn median(&self, library: &str) -> Option<f64> {
        let times = self.rounds.iter().filter_map(|round| round.get(library));
        median(&times.copied().collect::<Vec<_>>())
    }

    /// Ours.
    pub fn ours(&self) -> Option<f64> {
        self.median(OURS)
    }

    /// The machine's limit.
    pub fn limit(&self) -> Option<f64> {
        self.median(LIMIT)
    }

    /// The fastest other library and its median.
    pub fn best(&self) -> Option<(&str, f64)> {
        let names: BTreeSet<&str> = (self.rounds.iter().flat_map(Round::keys))
            .map(String::as_str)
            .filter(|name| ![OURS, LIMIT].contains(name))
            .collect();
        (names.into_iter())
            .filter_map(|name| Some((name, self.median(name)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The fastest other library's time over ours: above 1 we are faster.
    pub fn ratio(&self) -> Option<f64> {
        self.over_ours(self.best()?.0)
    }

    /// The limit's time over ours: 1 is as fast as the machine.
    pub fn share(&self) -> Option<f64> {
        self.over_ours(LIMIT)
    }

    /// What [`ratio`](Self::ratio) would be if ours were as fast as the limit, where that is known and faster.
    pub fn within_reach(&self) -> Option<f64> {
        Some(self.ratio()? / self.share().unwrap_or(1.0).min(1.0))
    }

    /// The median of the rounds' ratios, not the ratio of the medians: within a round the machine is the same for both, and
    /// from one to the next it may be another.
    fn over_ours(&self, library: &str) -> Option<f64> {
        let ratio = |round: &Round| Some(round.get(library)? / round.get(OURS)?);
        median(&self.rounds.iter().filter_map(ratio).collect::<Vec<_>>())
    }

    /// Whether ours is slower by more than a tie.
    pub fn is_behind(&self) -> bool {
        self.ratio().is_some_and(|ratio| ratio * TIE < 1.0)
    }
}

/// Of an even number, the mean of the two in the middle.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// None of nothing.
pub fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), v| (sum + v.ln(), count + 1));
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Two sizes of one operation: ours wins the first and loses the second.
    pub fn sample() -> Results {
        let mut results = Results::default();
        for (bytes, ours, peer, limit) in [(4, 1.0, 2.0, 0.5), (1 << 20, 300.0, 100.0, 90.0)] {
            let cell = Cell {
                op: "all_reduce",
                bytes,
            };
            let key = Key {
                transport: Transport::Shm,
                ranks: 2,
                cell,
            };
            for round in [0.9, 1.0, 1.5] {
                let times = [
                    (OURS, ours),
                    ("openmpi", peer),
                    ("hidden", 9.0 * peer),
                    (LIMIT, limit),
                ];
                let times = times.map(|(name, usec)| (name.to_owned(), usec * round));
                results.add(key, times.into());
            }
        }
        results.named.insert("openmpi".to_owned());
        results
            .versions
            .insert("openmpi".to_owned(), "Open MPI v4".to_owned());
        results
            .versions
            .insert("hidden".to_owned(), "Secret 1".to_owned());
        results
    }

    /// The same where the limit was not measured.
    pub fn without_limit() -> Results {
        let mut results = sample();
        for round in results.rows.values_mut().flat_map(|row| &mut row.rounds) {
            round.remove(LIMIT);
        }
        results
    }

    #[test]
    fn medians_make_ratios() {
        let results = sample();
        let rows = results.part(Transport::Shm, 2);
        assert_eq!(rows[0].1.ours(), Some(1.0));
        assert_eq!(rows[0].1.best(), Some(("openmpi", 2.0)));
        assert_eq!(rows[0].1.ratio(), Some(2.0));
        assert!(!rows[0].1.is_behind() && rows[1].1.is_behind());
        assert_eq!(results.parts(), [(Transport::Shm, 2)]);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(rows[0].1.share(), Some(0.5));
        assert_eq!(rows[0].1.within_reach(), Some(4.0));
        let mean = geometric_mean([2.0, 8.0].into_iter()).unwrap();
        assert!((mean - 4.0).abs() < 1e-9);
    }
    /// Else the medians of two libraries may be of rounds on cores that were not equally far apart.
    #[test]
    fn ratios_are_taken_round_by_round() {
        let mut row = Row::default();
        for (ours, peer, limit) in [(1.0, 2.0, 0.9), (5.0, 10.0, 4.5), (1.1, 11.0, 5.0)] {
            let times = [(OURS, ours), ("peer", peer), (LIMIT, limit)];
            let times = times.map(|(name, usec)| (name.to_owned(), usec));
            row.rounds.push(times.into());
        }
        assert_eq!(row.ours(), Some(1.1));
        assert_eq!(row.best(), Some(("peer", 10.0)));
        assert_eq!(row.ratio(), Some(2.0), "and not 10 over 1.1");
        assert_eq!(row.share(), Some(0.9));
        row.rounds.push([("peer".to_owned(), 1.0)].into());
        assert_eq!(
            row.ratio(),
            Some(2.0),
            "nothing is compared in a round without ours"
        );
    }
}
