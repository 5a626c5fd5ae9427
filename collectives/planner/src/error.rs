//! Why there is no plan.

use unisono_bound::BoundError;
use unisono_pack::PackError;
use unisono_plan::{GeometryError, Unsupported};
use unisono_simulate::SimulateError;

use crate::programs::ProgramError;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// An algorithm that doesn't have the operation.
    #[error("{algorithm} can't run {op}")]
    Unfit {
        /// The algorithm.
        algorithm: String,
        /// The operation.
        op: &'static str,
    },
    /// A name that is no algorithm's, or one that has nothing for this operation here.
    #[error("no candidate is called {name:?}; for this operation there are {}", there.join(", "))]
    NoSuchAlgorithm {
        /// What was asked for.
        name: String,
        /// What there is.
        there: Vec<String>,
    },
    /// Nothing can run it: the reasons, one for each candidate.
    #[error("no candidate can run {op}: {}", why.join("; "))]
    NoCandidate {
        /// The operation.
        op: &'static str,
        /// Each candidate's reason.
        why: Vec<String>,
    },
    /// A candidate with more steps than can be simulated.
    #[error("{algorithm} has {steps} steps, too many to simulate")]
    TooLong {
        /// The algorithm.
        algorithm: String,
        /// About how many.
        steps: u64,
    },
    /// A candidate that sends less at once than is worth a message.
    #[error("{algorithm} would cut {op} into puts of {bytes} bytes, too small for a message")]
    TooFine {
        /// The algorithm.
        algorithm: String,
        /// The operation.
        op: &'static str,
        /// The smallest put.
        bytes: u64,
    },
    /// A rank that isn't there.
    #[error("there is no rank {rank}: there are {ranks}, numbered from 0")]
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// How many there are.
        ranks: u32,
    },
    /// There is no bound, so there is no plan either.
    #[error(transparent)]
    Bound(#[from] BoundError),
    /// No packing.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// No program.
    #[error(transparent)]
    Program(#[from] Unsupported),
    /// Programs that don't make a schedule.
    #[error(transparent)]
    Schedule(#[from] ProgramError),
    /// A message that can't be cut.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// A schedule that can't be simulated.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}
