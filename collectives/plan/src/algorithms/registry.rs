//! The names of the algorithms, and which operations each has.

use std::fmt;
use std::str::FromStr;

use crate::ir::Op;

use super::Unsupported;

/// A family of plans. The order is the order in which ties are broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// One exchange between the two ranks of a send and a receive.
    Direct,
    /// Everybody to everybody, once.
    MeshOneShot,
    /// Everybody to the owner of each block, and the owner to everybody.
    MeshTwoShot,
    /// Whole messages between partners at doubling distances.
    RecursiveDoubling,
    /// Halves between partners at halving distances, then back.
    HalvingDoubling,
    /// Neighbour to neighbour, one way round.
    Ring,
    /// Signals at doubling distances.
    Dissemination,
    /// Neighbour to neighbour, both ways round.
    BidirectionalRing,
    /// Blocks of many ranks at halving distances, for any number of ranks.
    Nhr,
    /// Blocks of many ranks at doubling distances, for any number of ranks.
    Bruck,
    /// One partner after the other.
    Pairwise,
    /// Twice as many ranks with each round.
    Binomial,
    /// Shares to everybody first; then everybody gathers them. For reduce the same backwards.
    ScatterAllGather,
    /// Two binary trees, each for half of the message.
    DoubleBinaryTree,
    /// A pipeline from rank to rank.
    Chain,
    /// Everybody reads everybody's memory: no slots.
    MeshRead,
    /// Everybody leaves what others need in memory of its own, once, and all read it there.
    MeshShared,
    /// The same, for an all_reduce in one exchange: everybody reads all inputs.
    MeshSharedOneShot,
    /// Sums go from neighbour to neighbour, and each leaves its own where all read it.
    RingShared,
}

impl Algorithm {
    /// Every algorithm, in the order that breaks ties.
    pub const ALL: [Algorithm; 19] = [
        Algorithm::Direct,
        Algorithm::MeshOneShot,
        Algorithm::MeshTwoShot,
        Algorithm::RecursiveDoubling,
        Algorithm::HalvingDoubling,
        Algorithm::Ring,
        Algorithm::Dissemination,
        Algorithm::BidirectionalRing,
        Algorithm::Nhr,
        Algorithm::Bruck,
        Algorithm::Pairwise,
        Algorithm::Binomial,
        Algorithm::ScatterAllGather,
        Algorithm::DoubleBinaryTree,
        Algorithm::Chain,
        Algorithm::MeshRead,
        Algorithm::MeshShared,
        Algorithm::MeshSharedOneShot,
        Algorithm::RingShared,
    ];

    /// Those that move bytes over links alone, whatever is behind them: all but [`Algorithm::MeshRead`] and those that
    /// [show](Algorithm::shows_puts) what they put.
    pub const OVER_LINKS: [Algorithm; 15] = {
        let mut some = [Algorithm::Direct; 15];
        let mut at = 0;
        while at < some.len() {
            some[at] = Self::ALL[at];
            at += 1;
        }
        some
    };

    /// The name in configuration files and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Direct => "direct",
            Algorithm::MeshOneShot => "mesh_one_shot",
            Algorithm::MeshTwoShot => "mesh_two_shot",
            Algorithm::RecursiveDoubling => "recursive_doubling",
            Algorithm::HalvingDoubling => "halving_doubling",
            Algorithm::Ring => "ring",
            Algorithm::Dissemination => "dissemination",
            Algorithm::BidirectionalRing => "bidirectional_ring",
            Algorithm::Nhr => "nhr",
            Algorithm::Bruck => "bruck",
            Algorithm::Pairwise => "pairwise",
            Algorithm::Binomial => "binomial",
            Algorithm::ScatterAllGather => "scatter_all_gather",
            Algorithm::DoubleBinaryTree => "double_binary_tree",
            Algorithm::Chain => "chain",
            Algorithm::MeshRead => "mesh_read",
            Algorithm::MeshShared => "mesh_shared",
            Algorithm::MeshSharedOneShot => "mesh_shared_one_shot",
            Algorithm::RingShared => "ring_shared",
        }
    }

    /// Whether there is a plan for this operation, at this number of ranks.
    ///
    /// `windowed` asks for the plan that reads and writes the peers' windows. One rank alone is
    /// served by a local copy, under the name of any algorithm that has the operation.
    pub fn supports(self, op: Op, ranks: u32, windowed: bool) -> Result<(), Unsupported> {
        let no = |reason| {
            Err(Unsupported::NoPlan {
                algorithm: self.name(),
                op: op.name(),
                windowed,
                reason,
            })
        };
        if ranks == 0 {
            return no("a communicator has at least one rank");
        }
        let gathers = matches!(op, Op::AllGather | Op::ReduceScatter);
        let whole = matches!(op, Op::Broadcast { .. } | Op::Reduce { .. });
        let (has, has_windowed) = match self {
            Algorithm::Direct => (!op.is_collective(), !op.is_collective()),
            Algorithm::MeshOneShot => (
                op.is_collective(),
                gathers || matches!(op, Op::AllToAll | Op::Broadcast { .. }),
            ),
            Algorithm::MeshTwoShot => (
                matches!(op, Op::AllReduce | Op::Broadcast { .. }),
                matches!(op, Op::AllReduce | Op::Reduce { .. }),
            ),
            Algorithm::RecursiveDoubling => (matches!(op, Op::AllReduce | Op::Barrier), false),
            Algorithm::HalvingDoubling
            | Algorithm::Ring
            | Algorithm::BidirectionalRing
            | Algorithm::Nhr => (gathers || op == Op::AllReduce, false),
            Algorithm::Dissemination => (op == Op::Barrier, false),
            Algorithm::Bruck => (gathers || op == Op::AllToAll, false),
            Algorithm::Pairwise => (op == Op::AllToAll, false),
            Algorithm::Binomial => (
                op.root().is_some() || gathers || matches!(op, Op::AllReduce | Op::Barrier),
                false,
            ),
            Algorithm::DoubleBinaryTree => (whole || op == Op::AllReduce, false),
            Algorithm::ScatterAllGather | Algorithm::Chain => (whole, false),
            Algorithm::MeshRead => (
                gathers || matches!(op, Op::AllReduce | Op::AllToAll | Op::Broadcast { .. }),
                false,
            ),
            Algorithm::MeshShared => (
                matches!(
                    op,
                    Op::AllReduce | Op::AllToAll | Op::Broadcast { .. } | Op::Barrier
                ) || gathers,
                false,
            ),
            Algorithm::MeshSharedOneShot | Algorithm::RingShared => (op == Op::AllReduce, false),
        };
        match (has, windowed, has_windowed) {
            (_, true, true) | (true, false, _) => Ok(()),
            (false, false, true) => no("this algorithm has this operation over windows only"),
            (true, true, false) => no("this algorithm has no plan over windows for this operation"),
            (false, _, false) => no("this algorithm doesn't have this operation"),
        }
    }

    /// Whether the parts of the message may have different sizes: all_gather_v and its like.
    ///
    /// In all_to_all a rank may then know no sizes but those of what it sends and gets. Elsewhere
    /// every rank knows them all. Over windows it has to know its peers' too.
    #[must_use]
    pub fn allows_unequal(self, op: Op) -> bool {
        let pairs = matches!(self, Algorithm::MeshOneShot | Algorithm::Pairwise);
        // A peer's sizes are not told with where its buffers are.
        let reads = self == Algorithm::MeshRead;
        op.has_block_per_rank() && (op != Op::AllToAll || pairs) && !reads
    }

    /// Whether each element of the result is the left fold of the inputs in rank order, as
    /// deterministic mode demands. True for operations that don't reduce.
    #[must_use]
    pub fn folds_in_rank_order(self, op: Op) -> bool {
        !op.reduces()
            || matches!(
                self,
                Algorithm::MeshOneShot
                    | Algorithm::MeshTwoShot
                    | Algorithm::MeshRead
                    | Algorithm::MeshShared
                    | Algorithm::MeshSharedOneShot
            )
    }

    /// Whether ranks read their peers' buffers, wherever these lie: no windows, but memory that peers let others read.
    #[must_use]
    pub fn reads_peers(self) -> bool {
        self == Algorithm::MeshRead
    }

    /// Those in which most bytes go to a rank that is near in the order of the ranks, and of which plans are made core by core
    /// (`Fabric::with_cores`).
    pub(crate) const BY_NEIGHBOURS: [Algorithm; 4] = [
        Algorithm::Ring,
        Algorithm::Binomial,
        Algorithm::Chain,
        Algorithm::RingShared,
    ];

    /// Whether it is one of [`Self::BY_NEIGHBOURS`].
    pub(crate) fn goes_by_neighbours(self) -> bool {
        Self::BY_NEIGHBOURS.contains(&self)
    }

    /// Whether each rank shows what it puts: what is to everybody lies once, in its own memory ([`crate::ir`], *Shown
    /// puts*). [`Program::shows`](crate::Program::shows) says which puts these are.
    #[must_use]
    pub fn shows_puts(self) -> bool {
        matches!(
            self,
            Algorithm::MeshShared | Algorithm::MeshSharedOneShot | Algorithm::RingShared
        )
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no algorithm's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no algorithm; there are {}", Algorithm::ALL.map(Algorithm::name).join(", "))]
pub struct UnknownAlgorithm {
    /// What was given.
    pub name: String,
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let wanted = name.replace('-', "_");
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == wanted)
            .ok_or_else(|| UnknownAlgorithm { name: name.into() })
    }
}
