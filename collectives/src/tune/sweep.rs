//! Every plan of every operation at every size, in turns.

use std::time::{SystemTime, UNIX_EPOCH};

use unisono_plan::cost::{Measurements, Picoseconds, PlanName, Point};
use unisono_plan::select::Candidate;
use unisono_plan::{Op, OpKind};

use super::check::{Choice, paired};
use super::clock::{Buffers, Clock, Fill};
use super::memory::DTYPE;
use super::pair::median;
use super::places::Places;
use super::{TuneOptions, TuneProgress};
use crate::communicator::Forced;
use crate::error::Result;
use crate::{Communicator, ReduceOp};

/// From here on a plan that was far behind at the size before is not measured any more: bandwidth
/// decides, and with more bytes it will not catch up.
const BANDWIDTH_DECIDES: u64 = 512 << 10;
/// How many times slower than the fastest is far behind.
const FAR_BEHIND: f64 = 2.0;
/// From here on the fastest plans are also tried with other puts.
const CUTS_MATTER: u64 = 128 << 10;
/// From here on they have those that were fastest at the size before: a longer message is more of the same pieces.
const CUTS_SETTLED: u64 = 8 << 20;
/// Rounds where one call is long.
const LONG_ROUNDS: u32 = 3;
/// A long call that takes so many times the fastest's in the first round has no others.
const HOPELESS: f64 = 1.4;
/// Plans that take so many times the fastest's may be the fastest with other puts.
const CLOSE: f64 = 1.4;
/// Puts are not made smaller than this.
const SMALL_PUT: u64 = 8 << 10;

/// How plans are measured of which one call takes longer than all rounds of one are to take.
#[derive(Clone, Copy, PartialEq)]
enum Long {
    /// As all others.
    All,
    /// In few rounds, and those that are behind in the first in that alone.
    Sifted,
}

/// A plan, cut in one way.
#[derive(Clone)]
struct Variant {
    name: PlanName,
    forced: Forced,
}

/// Measures. All ranks take the same decisions, since they go by figures that all have agreed on.
pub(super) fn run(
    on: &Communicator,
    options: &TuneOptions,
    progress: &mut dyn FnMut(&TuneProgress),
) -> Result<Measurements> {
    let mut measured = Measurements::default();
    if on.size() < 2 {
        return Ok(measured);
    }
    let mut done = 0;
    let passes = if options.windows { 2 } else { 1 };
    let of_pass: usize = options.ops.iter().map(|op| sizes(options, *op).len()).sum();
    let total = (of_pass * passes) as u64;
    let elements = options.elements(on.size());
    for windowed in [false, true].into_iter().take(passes) {
        let mut buffers = Buffers::new(on, elements, windowed)?;
        for &op in &options.ops {
            let mut behind: Vec<PlanName> = Vec::new();
            for bytes in sizes(options, op) {
                let step = TuneProgress {
                    op,
                    bytes,
                    done,
                    total,
                };
                progress(&step);
                done += 1;
                let plans = Plans {
                    on,
                    options,
                    op: whole(op),
                    bytes: fitting(op, bytes, on.size()),
                    windowed,
                };
                plans.measure(&mut buffers, &mut behind, &mut measured)?;
            }
        }
    }
    Ok(measured)
}

/// The plans of one operation at one size.
pub(super) struct Plans<'a> {
    pub(super) on: &'a Communicator,
    pub(super) options: &'a TuneOptions,
    pub(super) op: Op,
    pub(super) bytes: u64,
    pub(super) windowed: bool,
}

impl Plans<'_> {
    fn measure(
        &self,
        buffers: &mut Buffers,
        behind: &mut Vec<PlanName>,
        measured: &mut Measurements,
    ) -> Result<()> {
        let candidates = self.candidates()?;
        let variants: Vec<Variant> = (candidates.iter())
            .map(|candidate| self.variant(candidate, candidate.put_bytes))
            .filter(|variant| !behind.contains(&variant.name))
            .map(|variant| self.settled(variant, measured))
            .collect();
        let mut times = self.times(buffers, &variants)?;
        let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
        let mut points: Vec<(Variant, f64)> = variants.into_iter().zip(times.drain(..)).collect();
        if (CUTS_MATTER..=CUTS_SETTLED).contains(&self.bytes) {
            // Another cut may turn the order of those that are close.
            let close = (points.iter()).filter(|(_, time)| *time < CLOSE * fastest);
            let finer: Vec<Variant> = close.flat_map(|(variant, _)| self.cuts(variant)).collect();
            let times = self.times(buffers, &finer)?;
            for (variant, time) in finer.into_iter().zip(times) {
                let of_plan = points.iter_mut().find(|(v, _)| v.name == variant.name);
                if let Some(point) = of_plan.filter(|(_, other)| time < 0.97 * *other) {
                    *point = (variant, time);
                }
            }
        }
        let fastest = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
        for (variant, time) in points {
            if self.bytes >= BANDWIDTH_DECIDES && time > FAR_BEHIND * fastest {
                behind.push(variant.name.clone());
            }
            let point = Point {
                bytes: self.bytes,
                put_bytes: variant.forced.put_bytes,
                time: Picoseconds((time * 1e12) as u128),
            };
            measured.insert(variant.name, point);
        }
        Ok(())
    }

    /// The plans that may run: over windows only those that use them, since the others run alike
    /// on any memory.
    fn candidates(&self) -> Result<Vec<Candidate>> {
        let explained = if self.windowed {
            self.on.explain_windows(self.op, self.bytes, DTYPE)?
        } else {
            self.on.explain(self.op, self.bytes, DTYPE)?
        };
        Ok((explained.selection().candidates.iter())
            .filter(|c| c.why_not.is_none() && c.windowed == self.windowed)
            .cloned()
            .collect())
    }

    fn variant(&self, candidate: &Candidate, put_bytes: u64) -> Variant {
        Variant {
            name: PlanName {
                op: self.op.kind(),
                windowed: candidate.windowed,
                algorithm: candidate.label.clone().into_owned(),
            },
            forced: Forced {
                plan: candidate.plan,
                windowed: candidate.windowed,
                put_bytes,
            },
        }
    }

    /// The same plan with the puts that were fastest for less, where those no longer change.
    fn settled(&self, variant: Variant, measured: &Measurements) -> Variant {
        let before = measured
            .last(&variant.name)
            .filter(|_| self.bytes > CUTS_SETTLED);
        let put_bytes = before.map_or(variant.forced.put_bytes, |point| point.put_bytes);
        let forced = Forced {
            put_bytes,
            ..variant.forced
        };
        Variant { forced, ..variant }
    }

    /// The same plan with a half, a quarter and four times the bytes in a put, up to a slot.
    fn cuts(&self, variant: &Variant) -> Vec<Variant> {
        let own = variant.forced.put_bytes;
        let slot = self.on.slot_bytes();
        let others = [own / 4, own / 2, own.saturating_mul(4)];
        let mut cuts: Vec<u64> = (others.iter())
            .map(|bytes| *bytes.min(&slot))
            .filter(|bytes| *bytes >= SMALL_PUT && *bytes != own)
            .collect();
        cuts.dedup();
        let with = |put_bytes| Variant {
            forced: Forced {
                put_bytes,
                ..variant.forced
            },
            ..variant.clone()
        };
        cuts.into_iter().map(with).collect()
    }

    /// Seconds of a call of each variant, over rounds.
    fn times(&self, buffers: &mut Buffers, variants: &[Variant]) -> Result<Vec<f64>> {
        let mut rounds = self.rounds(buffers, variants, Long::Sifted)?;
        Ok(rounds.iter_mut().map(|times| middle(times)).collect())
    }

    /// Seconds of a call of each variant in each round, in which they take turns, each time another one first.
    fn rounds(
        &self,
        buffers: &mut Buffers,
        variants: &[Variant],
        long: Long,
    ) -> Result<Vec<Vec<f64>>> {
        let figure = self.options.figure.as_secs_f64();
        let number = self.options.rounds.max(1);
        let mut clock = Clock::new(self.on, buffers, self.op, self.bytes);
        let mut fills = Vec::with_capacity(variants.len());
        for variant in variants {
            fills.push(clock.fill(variant.forced, figure / f64::from(number), figure)?);
        }
        let places = Places::new(self.on, self.agreed()?);
        let mut rounds = vec![Vec::new(); variants.len()];
        for round in 0..number {
            let turn = turn(round, &fills, &rounds, long);
            if turn.is_empty() {
                break;
            }
            let mut times = places.run(round, || {
                let rewriting = clock.rewriting()?;
                let time =
                    |at: &usize| clock.seconds(variants[*at].forced, fills[*at].calls, rewriting);
                turn.iter().map(time).collect::<Result<Vec<f64>>>()
            })?;
            self.on.all_reduce_in_place(&mut times, ReduceOp::Max)?;
            for (at, time) in turn.into_iter().zip(times) {
                rounds[at].push(time);
            }
        }
        Ok(rounds)
    }

    /// A number by chance, the same on all ranks.
    fn agreed(&self) -> Result<u64> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut chance = [now.map_or(0.0, |now| now.as_secs_f64())];
        self.on.all_reduce_in_place(&mut chance, ReduceOp::Max)?;
        Ok(chance[0].to_bits())
    }

    /// The time of every plan that may run, as it would be cut, in the order of `candidates`.
    pub(super) fn now(&self, buffers: &mut Buffers) -> Result<Vec<(Candidate, Picoseconds)>> {
        let candidates = self.candidates()?;
        let variants: Vec<Variant> = (candidates.iter())
            .map(|candidate| self.variant(candidate, candidate.put_bytes))
            .collect();
        let times = self.times(buffers, &variants)?;
        let times = times
            .into_iter()
            .map(|time| Picoseconds((time * 1e12) as u128));
        Ok(candidates.into_iter().zip(times).collect())
    }

    /// What is chosen, against the fastest.
    pub(super) fn choice(&self, buffers: &mut Buffers) -> Result<Choice> {
        let explained = self.on.explain(self.op, self.bytes, DTYPE)?;
        let winner = explained.selection().winner();
        let chosen = self.variant(winner, winner.put_bytes);
        let others = self.candidates()?;
        // The chosen one first; the others as they would be cut.
        let mut variants = vec![chosen];
        for candidate in &others {
            let variant = self.variant(candidate, candidate.put_bytes);
            if variant.name != variants[0].name {
                variants.push(variant);
            }
        }
        let rounds = self.rounds(buffers, &variants, Long::All)?;
        let mut medians: Vec<f64> = rounds.iter().map(|r| median(&mut r.clone())).collect();
        let best = (0..medians.len())
            .min_by(|a, b| medians[*a].total_cmp(&medians[*b]))
            .unwrap_or(0);
        let (ratio, interval) = paired(&rounds[0], &rounds[best]);
        for time in &mut medians {
            *time *= 1e6;
        }
        Ok(Choice {
            op: self.op.kind(),
            bytes: self.bytes,
            chosen: variants[0].name.algorithm.clone(),
            chosen_us: medians[0],
            best: variants[best].name.algorithm.clone(),
            best_us: medians[best],
            ratio,
            interval,
        })
    }
}

/// Which variants are measured in a round, in which order: each time another one is the first.
fn turn(round: u32, fills: &[Fill], rounds: &[Vec<f64>], long: Long) -> Vec<usize> {
    let firsts = rounds.iter().filter_map(|times| times.first());
    let fastest = firsts.copied().fold(f64::INFINITY, f64::min);
    let goes_on = |at: &usize| match rounds[*at].first() {
        Some(first) if long == Long::Sifted && fills[*at].is_long => {
            round < LONG_ROUNDS && *first < HOPELESS * fastest
        }
        _ => true,
    };
    let mut turn: Vec<usize> = (0..fills.len()).collect();
    turn.rotate_left(round as usize % fills.len().max(1));
    turn.retain(goes_on);
    turn
}

/// The mean of what is left without the largest and smallest.
///
/// Of a plan that runs fast or slowly by chance, a median is either; what it takes on average lies between.
fn middle(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    let edge = match times.len() {
        0..3 => 0,
        n => (n / 4).max(1),
    };
    let kept = &times[edge..times.len() - edge];
    kept.iter().sum::<f64>() / kept.len().max(1) as f64
}

/// The operation with the first rank as its root.
pub(super) fn whole(op: OpKind) -> Op {
    match op {
        OpKind::AllReduce => Op::AllReduce,
        OpKind::ReduceScatter => Op::ReduceScatter,
        OpKind::AllGather => Op::AllGather,
        OpKind::Broadcast => Op::Broadcast { root: 0 },
        OpKind::Reduce => Op::Reduce { root: 0 },
        OpKind::Gather => Op::Gather { root: 0 },
        OpKind::Scatter => Op::Scatter { root: 0 },
        OpKind::AllToAll => Op::AllToAll,
        OpKind::Barrier => Op::Barrier,
        OpKind::Send => Op::Send { to: 0 },
        OpKind::Recv => Op::Recv { from: 0 },
    }
}

/// The sizes of an operation; a barrier has one.
pub(super) fn sizes(options: &TuneOptions, op: OpKind) -> Vec<u64> {
    if op == OpKind::Barrier {
        return vec![options.min_bytes];
    }
    let next = |bytes: &u64| bytes.checked_mul(options.factor);
    let mut sizes: Vec<u64> = std::iter::successors(Some(options.min_bytes), next)
        .take_while(|bytes| *bytes < options.max_bytes)
        .collect();
    sizes.push(options.max_bytes);
    sizes
}

/// The size that the operation can have: whole elements, and whole blocks of them.
pub(super) fn fitting(op: OpKind, bytes: u64, ranks: u32) -> u64 {
    let element = DTYPE.size() as u64;
    let unit = match op {
        OpKind::Barrier => return 0,
        OpKind::AllReduce | OpKind::Broadcast | OpKind::Reduce => element,
        _ => element * u64::from(ranks),
    };
    (bytes / unit).max(1) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_by_a_factor_and_end_with_the_largest() {
        let options = TuneOptions {
            min_bytes: 8,
            max_bytes: 600,
            ..TuneOptions::default()
        };
        assert_eq!(sizes(&options, OpKind::Reduce), [8, 32, 128, 512, 600]);
        let one = TuneOptions {
            min_bytes: 8,
            max_bytes: 8,
            ..options.clone()
        };
        assert_eq!(sizes(&one, OpKind::Reduce), [8]);
        assert_eq!(sizes(&options, OpKind::Barrier), [8]);
    }

    #[test]
    fn long_calls_that_are_behind_are_not_repeated() {
        let fill = |is_long| Fill { calls: 1, is_long };
        let fills = [fill(true), fill(true), fill(false), fill(true)];
        let none = vec![Vec::new(); 4];
        assert_eq!(turn(0, &fills, &none, Long::Sifted), [0, 1, 2, 3]);
        let first = [1.0, 2.0, 9.0, 1.3].map(|time| vec![time]);
        assert_eq!(turn(1, &fills, &first, Long::Sifted), [2, 3, 0]);
        assert_eq!(turn(1, &fills, &first, Long::All), [1, 2, 3, 0]);
        assert_eq!(turn(LONG_ROUNDS, &fills, &first, Long::Sifted), [2]);
        assert!(turn(1, &[], &[], Long::All).is_empty());
    }

    #[test]
    fn what_is_fast_by_chance_is_between() {
        assert_eq!(middle(&mut [9.0, 2.0, 4.0, 2.0, 1.0, 4.0, 2.0]), 2.8);
        assert_eq!(middle(&mut [3.0, 9.0, 1.0]), 3.0);
        assert_eq!(middle(&mut [3.0, 9.0]), 6.0);
        assert_eq!(middle(&mut [3.0]), 3.0);
    }

    #[test]
    fn sizes_are_whole_blocks() {
        assert_eq!(fitting(OpKind::AllReduce, 10, 3), 8);
        assert_eq!(fitting(OpKind::AllGather, 100, 3), 96);
        assert_eq!(fitting(OpKind::AllToAll, 1, 3), 12);
        assert_eq!(fitting(OpKind::Barrier, 100, 3), 0);
    }
}
