//! One operation at one size: its plans, and what they took in the rounds so far.
//!
//! A machine is disturbed for seconds at a time, by others or by itself. Rounds of one cell right behind each other would
//! all be disturbed, and tell it of the cell. So whoever measures many cells makes a round of each before the next round
//! of any: what is disturbed then is one round of several cells, which their other rounds outweigh.

use std::time::{SystemTime, UNIX_EPOCH};

use unisono_plan::select::Candidate;
use unisono_plan::{Op, OpKind};

use super::TuneOptions;
use super::clock::{Buffers, Clock, Fill};
use super::grid::{fitting, whole};
use super::memory::DTYPE;
use super::places::Places;
use super::variant::Variant;
use crate::error::Result;
use crate::{Communicator, ReduceOp};

/// Rounds that every plan has where one call is long.
pub(super) const SURVEYED: u32 = 2;
/// Rounds at most where one call is long.
const LONG_ROUNDS: u32 = 3;
/// A long call that takes so many times the fastest's has no more rounds than it must.
const HOPELESS: f64 = 1.4;
/// Plans that take up to so many times the fastest's have more rounds, as chance may have put them in this order.
const IN_DOUBT: f64 = 1.15;

/// A variant and seconds of a call of it in each round that it ran in.
pub(super) struct Entry {
    pub(super) variant: Variant,
    fill: Fill,
    pub(super) times: Vec<f64>,
}

impl Entry {
    /// The fastest round: what no disturbance has made slower.
    pub(super) fn least(&self) -> f64 {
        self.times.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The mean of what is left without the largest and smallest.
    ///
    /// Of a plan that runs fast or slowly by chance, a median is either; what it takes on average lies between.
    pub(super) fn middle(&self) -> f64 {
        middle(&mut self.times.clone())
    }
}

/// One operation at one size.
pub(super) struct Cell {
    pub(super) op: Op,
    /// What was asked for, and what the operation can have of it.
    pub(super) asked: u64,
    pub(super) bytes: u64,
    /// Where ranks are in which round.
    seed: u64,
    pub(super) entries: Vec<Entry>,
}

impl Cell {
    /// The fastest of all fastest rounds.
    pub(super) fn least(&self) -> f64 {
        self.entries
            .iter()
            .map(Entry::least)
            .fold(f64::INFINITY, f64::min)
    }

    /// All entries.
    pub(super) fn all(&self) -> Vec<usize> {
        (0..self.entries.len()).collect()
    }

    /// The entries from the one on, without those of long calls that have had their rounds.
    pub(super) fn sifted(&self, from: usize, round: u32) -> Vec<usize> {
        let fastest = self.least();
        let goes_on = |entry: &Entry| {
            !entry.fill.is_long
                || round < SURVEYED
                || round < LONG_ROUNDS && entry.least() < HOPELESS * fastest
        };
        let entries = from..self.entries.len();
        entries.filter(|at| goes_on(&self.entries[*at])).collect()
    }

    /// The entries of which more rounds may tell another to be the fastest; none where one surely is.
    pub(super) fn in_doubt(&self, round: u32) -> Vec<usize> {
        let middles: Vec<f64> = self.entries.iter().map(Entry::middle).collect();
        let fastest = middles.iter().copied().fold(f64::INFINITY, f64::min);
        let close = |at: &usize| middles[*at] < IN_DOUBT * fastest;
        let mut close: Vec<usize> = (0..self.entries.len()).filter(close).collect();
        if close.len() < 2 {
            return Vec::new();
        }
        close.retain(|at| !self.entries[*at].fill.is_long || round < LONG_ROUNDS);
        close
    }
}

/// What cells are measured with.
pub(super) struct Bench<'a> {
    on: &'a Communicator,
    options: &'a TuneOptions,
    buffers: Buffers,
    windowed: bool,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        on: &'a Communicator,
        options: &'a TuneOptions,
        windowed: bool,
    ) -> Result<Self> {
        let elements = (options.max_bytes / DTYPE.size() as u64) as usize + on.size() as usize;
        Ok(Self {
            on,
            options,
            buffers: Buffers::new(on, elements, windowed)?,
            windowed,
        })
    }

    /// A cell without plans.
    pub(super) fn cell(&self, op: OpKind, bytes: u64) -> Result<Cell> {
        Ok(Cell {
            op: whole(op),
            asked: bytes,
            bytes: fitting(op, bytes, self.on.size()),
            seed: self.agreed()?,
            entries: Vec::new(),
        })
    }

    /// The plans that may run: over windows only those that use them, since the others run alike
    /// on any memory.
    pub(super) fn candidates(&self, cell: &Cell) -> Result<Vec<Candidate>> {
        let explained = if self.windowed {
            self.on.explain_windows(cell.op, cell.bytes, DTYPE)?
        } else {
            self.on.explain(cell.op, cell.bytes, DTYPE)?
        };
        Ok((explained.selection().candidates.iter())
            .filter(|c| c.why_not.is_none() && c.windowed == self.windowed)
            .cloned()
            .collect())
    }

    /// Adds variants, after finding out how many calls of each fill a round.
    pub(super) fn add(&mut self, cell: &mut Cell, variants: Vec<Variant>) -> Result<()> {
        let figure = self.options.figure.as_secs_f64();
        let round = figure / f64::from(self.options.rounds.max(1));
        let mut clock = Clock::new(self.on, &mut self.buffers, cell.op, cell.bytes);
        for variant in variants {
            let fill = clock.fill(variant.forced, round, figure)?;
            cell.entries.push(Entry {
                variant,
                fill,
                times: Vec::new(),
            });
        }
        Ok(())
    }

    /// One round of some entries: each time another one is the first.
    pub(super) fn round(
        &mut self,
        cell: &mut Cell,
        mut turn: Vec<usize>,
        round: u32,
    ) -> Result<()> {
        if turn.is_empty() {
            return Ok(());
        }
        let first = round as usize % turn.len();
        turn.rotate_left(first);
        let mut clock = Clock::new(self.on, &mut self.buffers, cell.op, cell.bytes);
        let mut times = Places::new(self.on, cell.seed).run(round, || {
            let rewriting = clock.rewriting()?;
            let entries = turn.iter().map(|at| &cell.entries[*at]);
            let time =
                |entry: &Entry| clock.seconds(entry.variant.forced, entry.fill.calls, rewriting);
            entries.map(time).collect::<Result<Vec<f64>>>()
        })?;
        self.on.all_reduce_in_place(&mut times, ReduceOp::Max)?;
        for (at, time) in turn.into_iter().zip(times) {
            cell.entries[at].times.push(time);
        }
        Ok(())
    }

    /// A number by chance, the same on all ranks.
    fn agreed(&self) -> Result<u64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut chance = [now.map_or(0.0, |now| now.as_secs_f64())];
        self.on.all_reduce_in_place(&mut chance, ReduceOp::Max)?;
        Ok(chance[0].to_bits())
    }
}

/// The mean without a quarter at either end, but for one at least.
fn middle(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let edge = match times.len() {
        0..3 => 0,
        n => (n / 4).max(1),
    };
    let kept = &times[edge..times.len() - edge];
    kept.iter().sum::<f64>() / kept.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use unisono_plan::cost::PlanName;
    use unisono_plan::select::Plan;

    use super::*;
    use crate::Algorithm;
    use crate::communicator::Forced;

    fn entry(is_long: bool, times: &[f64]) -> Entry {
        Entry {
            variant: Variant {
                name: PlanName {
                    op: OpKind::Barrier,
                    windowed: false,
                    algorithm: String::new(),
                },
                forced: Forced {
                    plan: Plan::Flat(Algorithm::Ring),
                    windowed: false,
                    put_bytes: 0,
                },
            },
            fill: Fill { calls: 1, is_long },
            times: times.to_vec(),
        }
    }

    fn cell(entries: Vec<Entry>) -> Cell {
        Cell {
            op: Op::Barrier,
            asked: 0,
            bytes: 0,
            seed: 0,
            entries,
        }
    }

    #[test]
    fn long_calls_that_are_behind_are_not_repeated() {
        let is_long = [true, true, false, true];
        let new = cell(is_long.map(|is_long| entry(is_long, &[])).into());
        assert_eq!(new.sifted(0, 0), [0, 1, 2, 3]);
        assert_eq!(new.sifted(2, 1), [2, 3]);
        // One that was disturbed in one round is not behind.
        let times = [[1.0, 1.1], [2.0, 1.5], [9.0, 9.0], [3.0, 1.3]];
        let surveyed = is_long.into_iter().zip(&times);
        let surveyed = cell(
            surveyed
                .map(|(is_long, times)| entry(is_long, times))
                .collect(),
        );
        assert_eq!(surveyed.sifted(0, 2), [0, 2, 3]);
        assert_eq!(surveyed.all(), [0, 1, 2, 3]);
        assert_eq!(surveyed.sifted(0, LONG_ROUNDS), [2]);
        assert!(cell(Vec::new()).sifted(0, 1).is_empty());
    }

    #[test]
    fn plans_that_are_close_are_in_doubt() {
        let short = [1.0, 1.1, 1.2].map(|time| entry(false, &[time]));
        assert_eq!(cell(short.into()).in_doubt(0), [0, 1]);
        let long = [1.0, 1.1].map(|time| entry(true, &[time]));
        let long = cell(long.into());
        assert_eq!(long.in_doubt(LONG_ROUNDS - 1), [0, 1]);
        assert!(long.in_doubt(LONG_ROUNDS).is_empty());
        let sure = [1.0, 2.0].map(|time| entry(false, &[time]));
        assert!(cell(sure.into()).in_doubt(0).is_empty());
        assert!(cell(Vec::new()).in_doubt(0).is_empty());
    }

    #[test]
    fn what_is_fast_by_chance_is_between() {
        assert_eq!(middle(&mut [9.0, 2.0, 4.0, 2.0, 1.0, 4.0, 2.0]), 2.8);
        assert_eq!(middle(&mut [3.0, 9.0, 1.0]), 3.0);
        assert_eq!(middle(&mut [3.0, 9.0]), 6.0);
        assert_eq!(middle(&mut [3.0]), 3.0);
    }
}
