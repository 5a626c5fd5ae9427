//! The alpha-beta-gamma model, in whole picoseconds.
//!
//! No floating-point number takes part in a decision, so that hosts of different architectures
//! come to the same one. `alpha` is the latency of a message, `beta` the time for a byte on a link
//! and `gamma` the time to reduce a byte. To the classical model come the time a rank spends on
//! each message, the way out of a rank and of a node, capacities that links share, and ranks that
//! share cores. A device sends over all of its links at once; a core over one after the other. The formulas are
//! in [`phases`](self) as data; [`Cost`] says which part of a prediction is what.
//!
//! A message in `k` pieces pays for each piece what a rank spends on messages, and the latency
//! that no other piece fills; a pipeline of `s` stages takes `(s - 1 + k)` times the time of one
//! piece in one stage. Where one rank fills slots and another empties them, the two are such stages:
//! the faster one is seen for one piece only.

mod bandwidth;
mod fabric;
mod flows;
mod measured;
mod pattern;
mod phases;
mod rate;
mod shaped;

use crate::algorithms::{Algorithm, Unsupported};
use crate::ir::Op;

pub use bandwidth::{BusFactor, bus_factor};
pub use fabric::{Fabric, FabricError, Link, Node, Port, Reads, Speeds, Uncached, exceeds_caches};
pub use measured::{Measurements, PlanName, Point};
use phases::{Near, Overlap, Phase};
pub use rate::{Picoseconds, Rate};
pub use shaped::{Shaped, Templates};

/// A predicted time, in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cost {
    /// Waiting for first bytes.
    pub latency: Picoseconds,
    /// Sending and receiving messages, besides their bytes.
    pub messages: Picoseconds,
    /// Bytes on links. Where bytes are reduced straight from a link, the slower of the two.
    pub transfer: Picoseconds,
    /// Reducing.
    pub reduce: Picoseconds,
    /// Copying from slots to the output.
    pub copy: Picoseconds,
}

impl Cost {
    /// The predicted time of the slowest rank.
    #[must_use]
    pub fn total(&self) -> Picoseconds {
        let parts = self.parts().into_iter();
        Picoseconds(parts.fold(0, |sum, (_, part)| sum.saturating_add(part.0)))
    }

    /// The parts, by name.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, Picoseconds); 5] {
        [
            ("latency", self.latency),
            ("messages", self.messages),
            ("transfer", self.transfer),
            ("reduction", self.reduce),
            ("copies", self.copy),
        ]
    }

    /// The largest part, by name.
    #[must_use]
    pub fn main_part(&self) -> &'static str {
        let largest = self.parts().into_iter().reduce(|a, b| match b.1 > a.1 {
            true => b,
            false => a,
        });
        largest.map_or("latency", |(name, _)| name)
    }
}

/// Predicts the time of an operation on a message of `bytes` bytes in `pieces` pieces.
///
/// The message is as in [`crate::ir`]: of all_gather the whole output, of reduce_scatter the whole
/// input. An operation of one rank alone costs a copy.
pub fn predict(
    algorithm: Algorithm,
    op: Op,
    windowed: bool,
    bytes: u64,
    pieces: u64,
    fabric: &Fabric,
) -> Result<Cost, Unsupported> {
    let near = match fabric.has_neighbours_on_a_core() {
        true => Near::Following,
        false => Near::Apart,
    };
    predict_where(algorithm, op, windowed, bytes, pieces, fabric, near)
}

/// [`predict`] of ranks in an order in which those that follow each other are so `near`.
fn predict_where(
    algorithm: Algorithm,
    op: Op,
    windowed: bool,
    bytes: u64,
    pieces: u64,
    fabric: &Fabric,
    near: Near,
) -> Result<Cost, Unsupported> {
    algorithm.supports(op, fabric.ranks(), windowed)?;
    if fabric.ranks() == 1 {
        let whole = rate::Ratio::new(u128::from(bytes), 1);
        let mut cost = Cost::default();
        cost.copy.0 = fabric.speeds.copy.time(whole);
        return Ok(cost);
    }
    let work = phases::work(algorithm, op, windowed, bytes, fabric, near);
    Ok(price(&work, pieces, fabric))
}

/// What some work costs, with the message in so many pieces.
fn price(work: &phases::Work, pieces: u64, fabric: &Fabric) -> Cost {
    let mut cost = Cost::default();
    let speeds = &fabric.speeds;
    for phase in &work.phases {
        add_phase(&mut cost, phase, work.streamed_ps, pieces.max(1), speeds);
    }
    cost.reduce.0 += total(work.reduced.iter().map(|&bytes| speeds.reduce.time(bytes)));
    cost.transfer.0 += work.stalled_ps;
    cost.reduce.0 += work.added_ps;
    cost.copy.0 += total(work.copied.iter().map(|&bytes| speeds.copy.time(bytes)));
    let taken = work.taken.map_or(0, |bytes| speeds.copy.time(bytes));
    cost.copy.0 += seen_behind(taken, cost.transfer.0, u128::from(pieces.max(1)));
    for part in [&mut cost.transfer, &mut cost.reduce, &mut cost.copy] {
        part.0 = part.0.saturating_mul(work.in_caches.num) / work.in_caches.den;
    }
    cost
}

/// What is seen of a time that passes on the receiver, behind `transfer` on the sender, piece by piece:
/// of the shorter of the two only one piece.
fn seen_behind(time: u128, transfer: u128, pieces: u128) -> u128 {
    let shorter = time.min(transfer);
    time - shorter + shorter.div_ceil(pieces)
}

fn total(times: impl Iterator<Item = u128>) -> u128 {
    times.fold(0, u128::saturating_add)
}

fn add_phase(cost: &mut Cost, phase: &Phase, streamed_ps: u128, pieces: u64, speeds: &Speeds) {
    let (pattern, pieces) = (&phase.pattern, u128::from(pieces));
    let rounds = u128::from(phase.rounds);
    let fan = u128::from(pattern.fan);
    let port = if pattern.by_core {
        pattern.rate
    } else {
        speeds.port
    };
    let leaving = phase.bytes.times(u128::from(pattern.exit.messages));
    let round = (pattern.rate.time(phase.bytes))
        .max(port.time(phase.bytes.times(fan)))
        .max(pattern.exit.rate.time(leaving))
        .max(pattern.port_time(phase.bytes))
        .max(speeds.reduce.time(phase.reduced));
    let (latencies, transfers) = match phase.overlap {
        Overlap::None | Overlap::Legs => (rounds * pieces, round.saturating_mul(rounds)),
        Overlap::Latency => (rounds, round.saturating_mul(rounds)),
        Overlap::Stages => {
            let stages = (rounds + pieces).saturating_sub(1);
            (stages, round.saturating_mul(stages).div_ceil(pieces))
        }
    };
    let add = |part: &mut Picoseconds, time: u128| part.0 = part.0.saturating_add(time);
    add(
        &mut cost.latency,
        latencies.saturating_mul(pattern.alpha_ps),
    );
    add(&mut cost.transfer, transfers);
    if phase.overlap == Overlap::Legs && pieces > 1 {
        add(&mut cost.transfer, transfers.div_ceil(pieces));
        let copied = rounds.saturating_mul(speeds.copy.time(phase.bytes));
        add(&mut cost.copy, copied.div_ceil(pieces));
    }
    // A rank of a pipeline has one of its stages, of other rounds it has all.
    let own_rounds = if phase.overlap == Overlap::Stages {
        1
    } else {
        rounds
    };
    let messages = 2 * fan * own_rounds * pieces;
    let streamed = match pattern.is_filled() {
        true => streamed_ps,
        false => 0,
    };
    let message = (pattern.message_ps.max(streamed)).max(u128::from(speeds.message_ps));
    add(&mut cost.messages, messages.saturating_mul(message));
}
