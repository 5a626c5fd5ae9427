//! Who has come, and whether they fit together. No input or output.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::directory::RankEntry;
use crate::error::BootstrapError;
use crate::wire::poller::Token;

use super::message::Arrival;

/// Counts the ranks of a job as they come.
#[derive(Debug)]
pub(crate) struct Roll {
    size: u32,
    /// Whom disagreement is measured against: whoever came first.
    first: Option<(u32, u32, String)>,
    here: BTreeMap<u32, (RankEntry, Option<Token>)>,
    /// When the most impatient of them must have been told that ranks are missing.
    cutoff: Option<Instant>,
    /// When the most impatient of them gives up.
    end: Option<Instant>,
}

/// The ranks at distances 1, 2, 4 and so on, both ways round, ascending.
pub(crate) fn neighbours(rank: u32, size: u32) -> Vec<u32> {
    let distances = (0..32)
        .map(|k| 1u64 << k)
        .take_while(|&distance| distance < u64::from(size));
    let (rank, size) = (u64::from(rank), u64::from(size));
    let mut all: Vec<u32> = distances
        .flat_map(|distance| [(rank + distance) % size, (rank + size - distance) % size])
        .map(|r| r as u32)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Roll {
    /// Nobody of `size` ranks has come.
    pub(crate) fn new(size: u32) -> Roll {
        Roll {
            size,
            first: None,
            here: BTreeMap::new(),
            cutoff: None,
            end: None,
        }
    }

    /// Notes an arrival over the connection `source`; the same process may come again.
    ///
    /// # Errors
    /// What does not fit, naming both ranks or processes.
    pub(crate) fn add(
        &mut self,
        arrival: &Arrival,
        source: Option<Token>,
        now: Instant,
    ) -> Result<(), BootstrapError> {
        let entry = &arrival.entry;
        // Whoever has waited is told a little before it would give up by itself.
        let margin =
            (arrival.remaining / 10).clamp(Duration::from_millis(20), Duration::from_millis(500));
        let cutoff = now
            + arrival
                .remaining
                .min(Duration::from_secs(365 * 24 * 3600))
                .saturating_sub(margin);
        self.cutoff = Some(self.cutoff.map_or(cutoff, |earlier| earlier.min(cutoff)));
        let (rank_a, size_a, version_a) = self
            .first
            .get_or_insert_with(|| (entry.rank, arrival.size, entry.version.clone()))
            .clone();
        if arrival.size != size_a {
            return Err(BootstrapError::SizeMismatch {
                rank_a,
                size_a,
                rank_b: entry.rank,
                size_b: arrival.size,
            });
        }
        if entry.rank >= self.size {
            return Err(BootstrapError::NoSuchRank {
                rank: entry.rank,
                size: self.size,
            });
        }
        if entry.version != version_a {
            let version_b = entry.version.clone();
            return Err(BootstrapError::VersionMismatch {
                rank_a,
                version_a,
                rank_b: entry.rank,
                version_b,
            });
        }
        match self.here.get_mut(&entry.rank) {
            Some((known, _)) if known.public_key != entry.public_key => {
                Err(BootstrapError::DuplicateRank {
                    rank: entry.rank,
                    first: describe(known),
                    second: describe(entry),
                })
            }
            Some((_, known_source)) => {
                *known_source = source;
                Ok(())
            }
            None => {
                self.here.insert(entry.rank, (entry.clone(), source));
                Ok(())
            }
        }
    }

    /// Strikes out all that came over a connection, which has ended; returns them.
    pub(crate) fn remove_source(&mut self, source: Token) -> Vec<u32> {
        let gone: Vec<u32> = self.of_source(source).map(|entry| entry.rank).collect();
        gone.iter().for_each(|rank| drop(self.here.remove(rank)));
        gone
    }

    /// Strikes out one rank, if it came over this connection.
    pub(crate) fn remove(&mut self, rank: u32, source: Token) {
        if self
            .here
            .get(&rank)
            .is_some_and(|(_, known)| *known == Some(source))
        {
            self.here.remove(&rank);
        }
    }

    /// How many are here.
    pub(crate) fn present(&self) -> u32 {
        self.here.len() as u32
    }

    /// Whether all are.
    pub(crate) fn is_complete(&self) -> bool {
        self.present() == self.size
    }

    /// Who is not.
    pub(crate) fn missing(&self) -> Vec<u32> {
        (0..self.size)
            .filter(|rank| !self.here.contains_key(rank))
            .collect()
    }

    /// When the waiting ends for the most impatient of them.
    pub(crate) fn cutoff(&self) -> Option<Instant> {
        self.cutoff
    }

    /// Three quarters of the way from [`Roll::cutoff`] to where the most impatient of them gives up.
    pub(crate) fn last_moment(&self) -> Option<Instant> {
        let (cutoff, end) = (self.cutoff?, self.end?);
        Some(cutoff + end.saturating_duration_since(cutoff) * 3 / 4)
    }

    /// What those that came over a connection (or, `None`, the caller itself) must know: themselves and their
    /// neighbours. Only when all are here.
    pub(crate) fn answer(&self, source: Option<Token>) -> Vec<RankEntry> {
        let mine = self.here.values().filter(|(_, known)| *known == source);
        let mut ranks: Vec<u32> = mine
            .flat_map(|(entry, _)| {
                std::iter::once(entry.rank).chain(neighbours(entry.rank, self.size))
            })
            .collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
            .iter()
            .filter_map(|rank| self.here.get(rank))
            .map(|(entry, _)| entry.clone())
            .collect()
    }

    fn of_source(&self, source: Token) -> impl Iterator<Item = &RankEntry> {
        self.here
            .values()
            .filter(move |(_, known)| *known == Some(source))
            .map(|(entry, _)| entry)
    }
}

fn describe(entry: &RankEntry) -> String {
    let at = entry
        .addresses
        .first()
        .map_or_else(String::new, |address| format!(" at {address}"));
    format!("process {} on node {}{at}", entry.pid, entry.node)
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::entry;
    use super::*;

    fn arrival(rank: u32, size: u32) -> Arrival {
        Arrival {
            entry: entry(rank),
            size,
            remaining: Duration::from_secs(10),
        }
    }

    #[test]
    fn distances_are_powers_of_two() {
        assert_eq!(neighbours(0, 1), [] as [u32; 0]);
        assert_eq!(neighbours(0, 2), [1]);
        assert_eq!(neighbours(1, 3), [0, 2]);
        assert_eq!(neighbours(0, 8), [1, 2, 4, 6, 7]);
        assert_eq!(neighbours(16, 17), [0, 1, 3, 7, 8, 12, 14, 15]);
    }

    #[test]
    fn ranks_come_go_and_are_counted() {
        let (mut roll, now) = (Roll::new(4), Instant::now());
        for (rank, source) in [(0, None), (1, Some(5)), (3, Some(5))] {
            roll.add(&arrival(rank, 4), source, now).unwrap();
        }
        assert_eq!(roll.missing(), [2]);
        assert_eq!(roll.remove_source(5), [1, 3]);
        assert_eq!(roll.missing(), [1, 2, 3]);
        for rank in 1..4 {
            roll.add(&arrival(rank, 4), Some(6), now).unwrap();
        }
        assert!(roll.is_complete());
        assert_eq!(roll.answer(Some(6)).len(), 4);
        roll.remove(3, 5);
        assert!(roll.is_complete(), "another connection cannot take it back");
        assert_eq!(roll.cutoff(), Some(now + Duration::from_millis(9500)));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let (mut roll, now) = (Roll::new(4), Instant::now());
        let first = arrival(0, 4);
        roll.add(&first, None, now).unwrap();
        roll.add(&first, Some(1), now)
            .expect("the same process may come again");
        let twice = roll
            .add(&arrival(0, 4), Some(2), now)
            .unwrap_err()
            .to_string();
        assert!(
            twice.contains("rank 0 came twice") && twice.contains("process 100"),
            "{twice}"
        );
        let size = roll
            .add(&arrival(1, 5), Some(2), now)
            .unwrap_err()
            .to_string();
        assert!(
            size.contains("rank 0 was started for a job of 4 ranks and rank 1 for one of 5"),
            "{size}"
        );
        let mut old = arrival(2, 4);
        old.entry.version = "old".to_owned();
        let version = roll.add(&old, None, now).unwrap_err().to_string();
        assert!(
            version.contains("rank 0 runs \"v\" and rank 2 runs \"old\""),
            "{version}"
        );
    }
}
