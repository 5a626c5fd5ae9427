//! What one kind of link does between two ranks, while the others wait.

use std::time::Instant;

use unisono_plan::Op;

use super::calibration::LinkFigures;
use super::memory::{DTYPE, Elements};
use crate::error::Result;
use crate::{Communicator, ReduceOp};

/// Round trips of a latency figure, and how many such figures; the median counts.
const TRIPS: u32 = 100;
const ROUNDS: usize = 5;
/// Bytes of a message of which none matters.
const SMALL: usize = 8;
/// Bytes of a message whose latency no longer matters.
const LARGE: usize = 16 << 20;

/// The first pair of ranks for each kind of link that joins some, in order of kind.
pub(super) fn kinds(communicator: &Communicator) -> Vec<(String, u32, u32)> {
    let mut pairs: Vec<(String, u32, u32)> = Vec::new();
    let members = communicator.members();
    for (from, a) in (0..).zip(members) {
        for (to, b) in (0..).zip(members).skip(from as usize + 1) {
            let ways = communicator.graph().ways(*a, *b);
            let Some(way) = ways.first() else { continue };
            if pairs.iter().all(|(kind, ..)| *kind != way.kind) {
                pairs.push((way.kind.clone(), from, to));
            }
        }
    }
    pairs.sort();
    pairs
}

/// Measures the link between ranks `a` and `b`. All ranks call this and get the same figures.
pub(super) fn measure(communicator: &Communicator, a: u32, b: u32) -> Result<LinkFigures> {
    let me = communicator.rank();
    let mut seconds = [0.0f64; 2];
    if me == a || me == b {
        let mut small = Elements::new(communicator, SMALL / DTYPE.size(), false)?;
        let mut latencies = Vec::with_capacity(ROUNDS);
        for _ in 0..=ROUNDS {
            let start = Instant::now();
            for _ in 0..TRIPS {
                trip(communicator, &mut small, SMALL, [a, b])?;
            }
            latencies.push(start.elapsed().as_secs_f64() / f64::from(2 * TRIPS));
        }
        let mut large = Elements::new(communicator, LARGE / DTYPE.size(), false)?;
        let mut transfers = Vec::with_capacity(ROUNDS);
        for _ in 0..=ROUNDS {
            let start = Instant::now();
            trip(communicator, &mut large, LARGE, [a, b])?;
            transfers.push(start.elapsed().as_secs_f64() / 2.0);
        }
        // The first of each made the plan and touched memory for the first time.
        seconds = [median(&mut latencies[1..]), median(&mut transfers[1..])];
    }
    communicator.all_reduce_in_place(&mut seconds, ReduceOp::Max)?;
    let [latency, transfer] = seconds;
    Ok(LinkFigures {
        latency_us: latency * 1e6,
        bytes_per_second: (LARGE as f64 / transfer.max(1e-12)) as u64,
    })
}

/// There and back.
fn trip(
    communicator: &Communicator,
    data: &mut Elements,
    bytes: usize,
    [a, b]: [u32; 2],
) -> Result<()> {
    let (count, place) = ((bytes / DTYPE.size()) as u64, data.place());
    let run = |op| communicator.run_at(op, count, None, [place, place], None);
    if communicator.rank() == a {
        run(Op::Send { to: b })?;
        run(Op::Recv { from: b })
    } else {
        run(Op::Recv { from: a })?;
        run(Op::Send { to: a })
    }
}

/// The middle value; of an even number the upper one.
pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_the_middle_value() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 3.0);
        assert_eq!(median(&mut []), 0.0);
    }
}
