//! The clock.
//!
//! Batches of calls are timed, since reading the clock around each call of a microsecond would be
//! part of the figure. A round counts as long as its slowest rank. Where two sides are compared
//! their rounds alternate, and who goes first alternates too, so that neither a machine that drifts
//! nor what the one leaves behind for the other moves their ratio.

use std::time::{Duration, Instant};

use anyhow::Result;
use unisono::{Communicator, ReduceOp};

use super::Args;
use super::op::{BenchOp, Shape};
use super::side::{Buffers, Side};

/// Times of one call in microseconds, over rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    pub median: f64,
    pub min: f64,
    pub p99: f64,
}

/// The shortest round of a comparison: the barrier before it is far shorter.
const ROUND: Duration = Duration::from_micros(400);

/// The most rounds of a size in one session of a comparison.
const MOST_ROUNDS: u32 = 100;

/// Measures one shape.
pub fn measure(
    args: &Args,
    side: &Side,
    buffers: &Buffers,
    shape: &Shape,
    in_place: bool,
) -> Result<Figures> {
    let timed = Timed::new(args, side, buffers, shape, in_place);
    let once = timed.once()?;
    timed.calls(args.warmup_iters.min(fit(args.budget, once)))?;
    let iters = args.iters.min(fit(args.budget / args.rounds, once));
    let mut rounds = Vec::with_capacity(args.rounds as usize);
    for _ in 0..args.rounds {
        rounds.push(timed.round(iters)?);
    }
    agree(&side.communicator, &mut rounds)?;
    Ok(Figures::of(rounds))
}

/// Measures one shape out of place on two sides: microseconds a call of each, by round.
pub fn measure_pair(
    args: &Args,
    sides: &[Side; 2],
    buffers: &[Buffers; 2],
    shape: &Shape,
) -> Result<Vec<[f64; 2]>> {
    let timed = [0, 1].map(|n| Timed::new(args, &sides[n], &buffers[n], shape, false));
    let once = f64::max(timed[0].once()?, timed[1].once()?);
    // The first calls were slow; after these the second look is a better one.
    for side in &timed {
        side.calls(args.warmup_iters.min(fit(args.budget, once)))?;
    }
    let once = f64::max(timed[0].once()?, timed[1].once()?);
    let iters = fit(ROUND, once);
    let round = once * (f64::from(iters) + 1.0);
    let rounds = fit(args.budget, round).clamp(args.rounds, args.rounds.max(MOST_ROUNDS));
    let mut times = [0, 1].map(|_| Vec::with_capacity(rounds as usize));
    for round in 0..rounds {
        let order = if round.is_multiple_of(2) {
            [0, 1]
        } else {
            [1, 0]
        };
        for side in order {
            // So that the caches hold what this side left there, not what the other did.
            timed[side].call()?;
            times[side].push(timed[side].round(iters)?);
        }
    }
    for (side, times) in sides.iter().zip(&mut times) {
        agree(&side.communicator, times)?;
    }
    let [ours, theirs] = times;
    Ok(ours.into_iter().zip(theirs).map(|(a, b)| [a, b]).collect())
}

/// Calls that are timed.
struct Timed<'a> {
    side: &'a Side,
    buffers: &'a Buffers,
    shape: &'a Shape,
    in_place: bool,
    dirty: bool,
}

impl<'a> Timed<'a> {
    fn new(
        args: &Args,
        side: &'a Side,
        buffers: &'a Buffers,
        shape: &'a Shape,
        in_place: bool,
    ) -> Self {
        Self {
            side,
            buffers,
            shape,
            in_place,
            dirty: args.dirty && shape.op != BenchOp::Barrier,
        }
    }

    fn call(&self) -> Result<()> {
        self.side.call(self.buffers, self.shape, self.in_place)
    }

    fn calls(&self, number: u32) -> Result<()> {
        (0..number).try_for_each(|_| self.call())
    }

    fn touch(&self) {
        self.side.touch(self.buffers, self.shape, self.in_place);
    }

    /// About how many seconds a call takes, the same on all ranks.
    fn once(&self) -> Result<f64> {
        // The first call makes the plan and may touch memory for the first time.
        self.call()?;
        self.side.communicator.barrier()?;
        let start = Instant::now();
        self.call()?;
        agree(
            &self.side.communicator,
            &mut [start.elapsed().as_secs_f64()],
        )
    }

    /// This rank's microseconds a call.
    fn round(&self, iters: u32) -> Result<f64> {
        let mut touched = Duration::ZERO;
        if self.dirty {
            let start = Instant::now();
            (0..iters).for_each(|_| self.touch());
            touched = start.elapsed();
        }
        self.side.communicator.barrier()?;
        let start = Instant::now();
        for _ in 0..iters {
            if self.dirty {
                self.touch();
            }
            self.call()?;
        }
        let took = start.elapsed().saturating_sub(touched);
        Ok(took.as_secs_f64() * 1e6 / f64::from(iters))
    }
}

/// How many calls of this many seconds fit into the budget; at least one.
fn fit(budget: Duration, once: f64) -> u32 {
    if budget.is_zero() || once <= 0.0 {
        return u32::MAX;
    }
    (budget.as_secs_f64() / once).clamp(1.0, f64::from(u32::MAX)) as u32
}

/// Makes each value the largest of all ranks; gives the first.
fn agree(communicator: &Communicator, values: &mut [f64]) -> Result<f64> {
    communicator.all_reduce_in_place(values, ReduceOp::Max)?;
    Ok(values.first().copied().unwrap_or(0.0))
}

impl Figures {
    fn of(mut rounds: Vec<f64>) -> Self {
        rounds.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let index = (rounds.len() as f64 * share).ceil() as usize;
            rounds.get(index.max(1) - 1).copied().unwrap_or(0.0)
        };
        Self {
            median: at(0.5),
            min: at(0.0),
            p99: at(0.99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_rounds() {
        let figures = Figures::of(vec![5.0, 1.0, 3.0, 2.0, 4.0]);
        let expected = Figures {
            median: 3.0,
            min: 1.0,
            p99: 5.0,
        };
        assert_eq!(figures, expected);
        let many = Figures::of((1..=200).map(f64::from).collect());
        assert_eq!((many.median, many.p99), (100.0, 198.0));
    }

    #[test]
    fn slow_calls_are_made_less_often() {
        assert_eq!(fit(Duration::from_secs(1), 0.25), 4);
        assert_eq!(fit(Duration::from_secs(1), 3.0), 1);
        assert_eq!(fit(Duration::ZERO, 3.0), u32::MAX);
    }
}
