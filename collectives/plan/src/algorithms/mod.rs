//! The algorithms, one file each, and the registry that names them.

mod bidirectional_ring;
mod binary_tree;
mod binomial;
mod bruck;
mod chain;
mod direct;
mod dissemination;
mod double_binary_tree;
mod fold;
mod halves;
pub(crate) mod halving_doubling;
mod halving_groups;
mod layout;
mod mesh_one_shot;
mod mesh_read;
mod mesh_shared;
mod mesh_two_shot;
pub(crate) mod neighbours;
mod nhr;
pub(crate) mod pairwise;
mod recursive_doubling;
mod registry;
mod ring;
mod ring_shared;
mod scatter_all_gather;
pub(crate) mod team;
mod windows;

use crate::builder::{Builder, input, out};
use crate::ir::{Blocks, Op, Program};

pub use layout::Layout;
pub use registry::{Algorithm, UnknownAlgorithm};

/// What a program is generated for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The operation, as this rank calls it.
    pub op: Op,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// The rank whose program is wanted.
    pub rank: u32,
    /// Whether to use the peers' windows instead of slots.
    pub windowed: bool,
    /// Whether the heads of a binomial tree's subtrees are at alternate ends: for ranks that share cores. Elsewhere messages
    /// go as far as the powers of two, which is what links are often good for.
    pub turns: bool,
}

/// How many ranks that follow each other are near each other. The last ones may be fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Runs {
    /// The first so many.
    pub(crate) first: u32,
    /// Behind them always so many.
    pub(crate) others: u32,
}

impl Runs {
    /// None are known to be.
    pub(crate) const NONE: Self = Self {
        first: 1,
        others: 1,
    };
}

/// A program that can't be generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// The registry has no such plan.
    #[error("{algorithm} can't run {op}{}: {reason}", if *windowed { " over windows" } else { "" })]
    NoPlan {
        /// The name of the algorithm or template asked for.
        algorithm: &'static str,
        /// The operation's name.
        op: &'static str,
        /// Whether windows were asked for.
        windowed: bool,
        /// Why not.
        reason: &'static str,
    },
    /// A rank, root or peer that the communicator doesn't have.
    #[error("{what} {rank} is not in a communicator of {ranks} ranks")]
    NoSuchRank {
        /// "rank", "root" or "peer".
        what: &'static str,
        /// Its number.
        rank: u32,
        /// Ranks of the communicator.
        ranks: u32,
    },
    /// A send to oneself, or a receive from oneself.
    #[error("rank {rank} can't send to or receive from itself by messages; copy instead")]
    Itself {
        /// The rank.
        rank: u32,
    },
}

/// Generates the program of one rank, in time linear in its length: at most a few steps for each
/// peer.
pub fn generate(algorithm: Algorithm, shape: &Shape) -> Result<Program, Unsupported> {
    generate_in_runs(algorithm, shape, Runs::NONE)
}

/// [`generate`] where ranks that follow each other are near each other, in runs.
pub(crate) fn generate_in_runs(
    algorithm: Algorithm,
    shape: &Shape,
    runs: Runs,
) -> Result<Program, Unsupported> {
    let Shape {
        op,
        ranks,
        windowed,
        ..
    } = *shape;
    algorithm.supports(op, ranks, windowed)?;
    check_ranks(shape)?;
    let mut b = Builder::new(shape, Layout::of_shape(algorithm, shape)).in_runs(runs);
    if ranks == 1 {
        alone(&mut b);
        return Ok(b.finish());
    }
    match algorithm {
        Algorithm::Direct if windowed => direct::build_windowed(&mut b),
        Algorithm::Direct => direct::build(&mut b),
        Algorithm::MeshOneShot | Algorithm::MeshTwoShot if windowed => windows::build(&mut b),
        Algorithm::MeshOneShot => mesh_one_shot::build(&mut b),
        Algorithm::MeshTwoShot => mesh_two_shot::build(&mut b),
        Algorithm::MeshRead => mesh_read::build(&mut b),
        Algorithm::MeshShared => mesh_shared::build(&mut b),
        // The plan is the same: what is put to all is shown.
        Algorithm::MeshSharedOneShot => mesh_one_shot::build(&mut b),
        Algorithm::RingShared => ring_shared::build(&mut b),
        Algorithm::RecursiveDoubling => recursive_doubling::build(&mut b),
        Algorithm::HalvingDoubling => halving_doubling::build(&mut b),
        Algorithm::Ring => ring::build(&mut b),
        Algorithm::Dissemination => dissemination::build(&mut b),
        Algorithm::BidirectionalRing => bidirectional_ring::build(&mut b),
        Algorithm::Nhr => nhr::build(&mut b),
        Algorithm::Bruck => bruck::build(&mut b),
        Algorithm::Pairwise => pairwise::build(&mut b),
        Algorithm::Binomial => binomial::build(&mut b),
        Algorithm::ScatterAllGather => scatter_all_gather::build(&mut b),
        Algorithm::DoubleBinaryTree => double_binary_tree::build(&mut b),
        Algorithm::Chain => chain::build(&mut b),
    }
    Ok(b.finish())
}

/// The program of one rank for a reduce over windows whose root has its output where no peer reaches it: as that of
/// [`Algorithm::MeshTwoShot`], but that the root reduces alone. What other ranks do is what is left of their programs there
/// without the reductions.
///
/// # Errors
/// If it is no reduce, or there is no such rank or root.
pub fn generate_reduce_alone(shape: &Shape) -> Result<Program, Unsupported> {
    let Op::Reduce { root } = shape.op else {
        return Err(Unsupported::NoPlan {
            algorithm: Algorithm::MeshTwoShot.name(),
            op: shape.op.name(),
            windowed: shape.windowed,
            reason: "only the root of a reduce reduces alone",
        });
    };
    check_ranks(shape)?;
    let layout = Layout::of_shape(Algorithm::MeshTwoShot, shape);
    let mut b = Builder::new(shape, layout);
    match shape.ranks {
        1 => alone(&mut b),
        _ => windows::reduce_alone(&mut b, root),
    }
    Ok(b.finish())
}

/// The rank itself, the root and the peer are there.
pub(crate) fn check_ranks(shape: &Shape) -> Result<(), Unsupported> {
    let Shape {
        op, ranks, rank, ..
    } = *shape;
    check_rank("rank", rank, ranks)?;
    match op {
        Op::Broadcast { root }
        | Op::Reduce { root }
        | Op::Gather { root }
        | Op::Scatter { root } => check_rank("root", root, ranks)?,
        Op::Send { to: peer } | Op::Recv { from: peer } => {
            check_rank("peer", peer, ranks)?;
            if peer == rank {
                return Err(Unsupported::Itself { rank });
            }
        }
        Op::AllReduce | Op::ReduceScatter | Op::AllGather | Op::AllToAll | Op::Barrier => {}
    }
    Ok(())
}

fn check_rank(what: &'static str, rank: u32, ranks: u32) -> Result<(), Unsupported> {
    if rank < ranks {
        Ok(())
    } else {
        Err(Unsupported::NoSuchRank { what, rank, ranks })
    }
}

/// One rank alone: the output is the input.
pub(crate) fn alone(b: &mut Builder) {
    match b.op() {
        Op::Barrier => {}
        Op::AllToAll => {
            let half = b.all().count / 2;
            b.copy(out(Blocks::new(half, half)), input(Blocks::new(0, half)));
        }
        _ => b.copy(out(b.all()), input(b.all())),
    }
}
