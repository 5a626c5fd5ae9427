//! Schedules from the programs of all ranks.
//!
//! The programs are run as an executor runs them, leg by leg, piece by piece and with their skews, but what
//! comes out is not the order of the program: a step waits for what it touches. A put waits for
//! whoever made what it reads, for its turn in its channel, and for the credit of its slot; a copy
//! or a reduction for its operands, and for those that still read what it overwrites. A bare
//! signal says "I have come so far", so it waits for all that its rank has waited for.

mod cells;
mod run;

use std::collections::HashMap;

use unisono_network::{EdgeId, Network, Router};
use unisono_plan::{Action, Geometry, Op, Program, Value};

use crate::schedule::Schedule;

/// How programs are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Slots of each channel.
    pub slots: u32,
}

/// Programs that can't be made into a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// Nothing leads from one rank to another that it must send to.
    #[error("rank {from} sends to rank {to}, but no path leads there")]
    NoPath {
        /// Who sends.
        from: u32,
        /// To whom.
        to: u32,
    },
    /// Ranks wait for each other.
    #[error("rank {rank} waits for ever: the programs don't fit together")]
    Stuck {
        /// One of those that wait.
        rank: u32,
    },
    /// Programs over windows name memory that a schedule doesn't have.
    #[error("the program of rank {rank} is for windows; generate the one for slots")]
    Windowed {
        /// Whose program.
        rank: u32,
    },
}

/// Where each pair of ranks that talk sends.
pub type Paths = HashMap<(u32, u32), Vec<EdgeId>>;

/// The schedule of programs, one for each rank, in order. `geometry` gives the message of a
/// program in its pieces; elements are `element` bytes.
///
/// # Errors
/// If the programs don't fit together or the network doesn't join those that talk.
pub fn schedule(
    programs: &[Program],
    network: &Network,
    bytes: u64,
    geometries: &[Geometry],
    element: u64,
    setting: Setting,
) -> Result<Schedule, ProgramError> {
    let paths = paths(programs, network, geometries)?;
    run::Run::new(programs, bytes, geometries, element, setting, &paths).schedule(network)
}

/// The geometry of each rank's program for a message of `bytes` bytes in so many pieces.
///
/// # Errors
/// If the message can't be cut so.
pub fn geometries(
    programs: &[Program],
    bytes: u64,
    element: u64,
    pieces: u64,
) -> Result<Vec<Geometry>, unisono_plan::GeometryError> {
    let of = |program: &Program| {
        let count = elements(program.op, program.ranks, bytes, element);
        let sizes = unisono_plan::geometry::Sizes::Equal(count);
        Geometry::of(program, sizes)?.in_pieces(pieces)
    };
    programs.iter().map(of).collect()
}

/// Elements of the smallest put of all programs, whose geometries these are; none if they put nothing. Small puts are no
/// use where a message is large.
#[must_use]
pub fn least_put(programs: &[Program], geometries: &[Geometry]) -> Option<u64> {
    let of_program = |(program, geometry): (&Program, &Geometry)| {
        let of_step = |action: Action| match &action {
            Action::Put { value, .. } if *value != Value::Empty => {
                let pieces = geometry.pieces_of(&action, program.ranks);
                let elements = |piece| geometry.packed(value.blocks(), piece);
                (0..pieces).map(elements).min()
            }
            _ => None,
        };
        (program.walk().filter_map(|step| of_step(step.action))).min()
    };
    programs.iter().zip(geometries).filter_map(of_program).min()
}

/// Elements of the larger buffer, as far as they can be shared out.
fn elements(op: Op, ranks: u32, bytes: u64, element: u64) -> u64 {
    let count = bytes / element;
    match op {
        Op::AllToAll => count / u64::from(ranks) * u64::from(ranks),
        _ => count,
    }
}

/// Paths for all that is put, side by side where there is a choice.
fn paths(
    programs: &[Program],
    network: &Network,
    geometries: &[Geometry],
) -> Result<Paths, ProgramError> {
    let mut pairs = Vec::new();
    for (program, geometry) in programs.iter().zip(geometries) {
        let mut bytes: HashMap<u32, u64> = HashMap::new();
        for step in program.walk() {
            if let Action::Put { to, value } = step.action {
                let packed = geometry.packed(value.blocks(), 0);
                let sum = bytes.entry(to).or_default();
                *sum = sum.saturating_add(packed.max(1));
            }
        }
        let mut of_rank: Vec<_> = bytes.into_iter().collect();
        of_rank.sort_unstable();
        let rank = program.rank;
        pairs.extend(of_rank.into_iter().map(|(to, bytes)| (rank, to, bytes)));
    }
    let found = Router::new(network).spread(&pairs);
    let mut paths = Paths::new();
    for (&(from, to, _), path) in pairs.iter().zip(found) {
        let path = path.ok_or(ProgramError::NoPath { from, to })?;
        paths.insert((from, to), path);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use unisono_network::Builder;
    use unisono_plan::Algorithm;
    use unisono_plan::template::Template;

    use super::*;
    use crate::schedule::Kind;

    #[test]
    fn the_least_put_is_that_of_the_schedule() {
        let (ranks, element) = (6, 4);
        let mut builder = Builder::new(ranks);
        for (from, to) in (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to))) {
            if from != to {
                builder.edge(from, to, 1_000_000_000, 1000);
            }
        }
        let network = builder.build().unwrap();
        let mut compared = 0;
        for (algorithm, pieces) in Algorithm::OVER_LINKS
            .into_iter()
            .flat_map(|a| [(a, 1), (a, 7)])
        {
            for (op, bytes) in [(Op::AllReduce, 100_004), (Op::AllGather, 96_000)] {
                let Ok(programs) = Template::Flat(algorithm).programs(op, ranks, false) else {
                    continue;
                };
                let geometries = geometries(&programs, bytes, element, pieces).unwrap();
                let setting = Setting { slots: 4 };
                let schedule =
                    schedule(&programs, &network, bytes, &geometries, element, setting).unwrap();
                let puts = schedule.steps.iter().filter(|step| step.kind == Kind::Put);
                let least = puts.map(|step| step.bytes).min();
                let counted = least_put(&programs, &geometries).map(|put| put * element);
                assert_eq!(counted, least, "{algorithm} {op} in {pieces} pieces");
                compared += 1;
            }
        }
        assert!(compared > 20, "{compared}");
    }
}
