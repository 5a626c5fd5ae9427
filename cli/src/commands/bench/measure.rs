//! The clock.
//!
//! Batches of calls are timed, since reading the clock around each call of a microsecond would be
//! part of the figure. A round counts as long as its slowest rank. Where two sides are compared
//! their rounds alternate, so that a machine that drifts moves both alike.

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

/// Measures one shape on every side.
pub fn measure(
    args: &Args,
    sides: &[Side],
    buffers: &[Buffers],
    shape: &Shape,
    in_place: bool,
) -> Result<Vec<Figures>> {
    let dirty = args.dirty && shape.op != BenchOp::Barrier;
    let call = |side: usize| sides[side].call(&buffers[side], shape, in_place);
    let touch = |side: usize| sides[side].touch(&buffers[side], shape, in_place);
    let (mut warmup, mut iters) = (args.warmup_iters, args.iters);
    for (number, side) in sides.iter().enumerate() {
        // The first call makes the plan and may touch memory for the first time.
        call(number)?;
        side.communicator.barrier()?;
        let start = Instant::now();
        call(number)?;
        let once = agree(&side.communicator, &mut [start.elapsed().as_secs_f64()])?;
        warmup = warmup.min(fit(args.budget, once));
        iters = iters.min(fit(args.budget / args.rounds, once));
    }
    for number in 0..sides.len() {
        for _ in 0..warmup {
            call(number)?;
        }
    }
    let mut rounds = vec![Vec::with_capacity(args.rounds as usize); sides.len()];
    for _ in 0..args.rounds {
        for (number, side) in sides.iter().enumerate() {
            let mut touched = Duration::ZERO;
            if dirty {
                let start = Instant::now();
                (0..iters).for_each(|_| touch(number));
                touched = start.elapsed();
            }
            side.communicator.barrier()?;
            let start = Instant::now();
            for _ in 0..iters {
                if dirty {
                    touch(number);
                }
                call(number)?;
            }
            let took = start.elapsed().saturating_sub(touched);
            rounds[number].push(took.as_secs_f64() * 1e6 / f64::from(iters));
        }
    }
    let mut figures = Vec::with_capacity(sides.len());
    for (side, mut rounds) in sides.iter().zip(rounds) {
        agree(&side.communicator, &mut rounds)?;
        figures.push(Figures::of(rounds));
    }
    Ok(figures)
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
