//! What is run and recorded: an operation, by an algorithm, on a number of ranks.

use std::fmt;

use unisono::plan::template::Family;
use unisono::{Algorithm, Op};

/// One recorded run: two calls of the same shape after each other, the second in place where the
/// operation can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The operation.
    pub op: Op,
    /// How.
    pub algorithm: Family,
    /// Whether the plan reaches into windows.
    pub windowed: bool,
    /// Ranks.
    pub ranks: u32,
}

/// What an element of an output must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The sum of this element of all inputs, each once.
    Sum(u32),
    /// This element of that rank's input.
    Of(u32, u32),
}

/// Calls of a case.
pub(crate) const CALLS: u32 = 2;

/// Every operation, for a number of ranks; the last rank is the root.
pub const OPS: [fn(u32) -> Op; 11] = [
    |_| Op::AllReduce,
    |_| Op::ReduceScatter,
    |_| Op::AllGather,
    |_| Op::AllToAll,
    |_| Op::Barrier,
    |p| Op::Broadcast { root: p - 1 },
    |p| Op::Reduce { root: p - 1 },
    |p| Op::Gather { root: p - 1 },
    |p| Op::Scatter { root: p - 1 },
    |p| Op::Send { to: p - 1 },
    |p| Op::Recv { from: p - 1 },
];

impl Case {
    /// Every plan that there is on this number of ranks.
    pub fn all(ranks: u32) -> impl Iterator<Item = Self> {
        OPS.into_iter().flat_map(move |op| {
            let op = op(ranks);
            Algorithm::ALL.into_iter().flat_map(move |algorithm| {
                [false, true].into_iter().filter_map(move |windowed| {
                    // A send is recorded with its receive.
                    let is = algorithm.supports(op, ranks, windowed).is_ok()
                        && !matches!(op, Op::Recv { .. });
                    is.then_some(Self {
                        op,
                        algorithm: algorithm.into(),
                        windowed,
                        ranks,
                    })
                })
            })
        })
    }

    /// Every operation by nodes first, which there may or may not be. But for barriers: a communicator
    /// ends with one, which must be.
    pub fn hierarchical(ranks: u32) -> impl Iterator<Item = Self> {
        let cases = OPS.into_iter().map(move |op| Self {
            op: op(ranks),
            algorithm: Family::Hierarchical,
            windowed: false,
            ranks,
        });
        cases.filter(|case| case.op.is_collective() && case.op != Op::Barrier)
    }

    /// Whether ranks reach into each other's buffers.
    pub(crate) fn reaches_peers(&self) -> bool {
        self.windowed || self.algorithm == Family::from(Algorithm::MeshRead)
    }

    /// Whether it is for ranks that all share memory.
    pub(crate) fn shares_memory(&self) -> bool {
        let shows = |algorithm: Algorithm| {
            algorithm.shows_puts() && self.algorithm == Family::from(algorithm)
        };
        self.reaches_peers() || Algorithm::ALL.into_iter().any(shows)
    }

    /// The name of its communicator, by which its plan is forced.
    pub(crate) fn name(&self) -> String {
        let how = if self.windowed { "windowed" } else { "staged" };
        format!("{}/{}/{how}", self.op.kind(), self.algorithm)
    }

    /// Elements of one rank's share: of a few pieces, and no multiple of anything.
    pub(crate) fn share(&self) -> u32 {
        match self.op {
            Op::Barrier => 0,
            _ => 19,
        }
    }

    /// Elements of the input and of the output.
    pub(crate) fn elements(&self) -> (u32, u32) {
        let (one, all) = (self.share(), self.share() * self.ranks);
        match self.op {
            Op::AllReduce | Op::Broadcast { .. } | Op::Reduce { .. } | Op::AllToAll => (all, all),
            Op::ReduceScatter | Op::Scatter { .. } => (all, one),
            Op::AllGather | Op::Gather { .. } => (one, all),
            Op::Send { .. } | Op::Recv { .. } | Op::Barrier => (one, one),
        }
    }

    /// Whether a rank gives an input.
    pub(crate) fn has_input(&self, rank: u32) -> bool {
        match self.op {
            Op::Broadcast { root } | Op::Scatter { root } => rank == root,
            Op::Send { .. } => rank == self.sender(),
            _ => true,
        }
    }

    /// Whether a rank gets an output.
    pub(crate) fn has_output(&self, rank: u32) -> bool {
        match self.op {
            Op::Reduce { root } | Op::Gather { root } => rank == root,
            Op::Send { to } => rank == to,
            _ => true,
        }
    }

    /// Who sends, in a send.
    pub(crate) fn sender(&self) -> u32 {
        0
    }

    /// What element `i` of a rank's output must hold.
    pub(crate) fn wanted(&self, rank: u32, i: u32) -> Wanted {
        let one = self.share();
        match self.op {
            Op::AllReduce | Op::Reduce { .. } => Wanted::Sum(i),
            Op::ReduceScatter => Wanted::Sum(rank * one + i),
            Op::AllGather | Op::Gather { .. } => Wanted::Of(i / one, i % one),
            Op::AllToAll => Wanted::Of(i / one, rank * one + i % one),
            Op::Scatter { root } => Wanted::Of(root, rank * one + i),
            Op::Broadcast { root } => Wanted::Of(root, i),
            Op::Send { .. } | Op::Recv { .. } | Op::Barrier => Wanted::Of(self.sender(), i),
        }
    }

    /// Whether the call of this number tells who only sends of the others: of short calls with a root one in eight does
    /// (the executor's `Planned::of_call`).
    fn is_answered(&self, call: u32) -> bool {
        self.op.root().is_none() || self.reaches_peers() || call.is_multiple_of(8)
    }

    /// Whether `other` must have entered the call of this number when it ends on `rank`: the table of
    /// [`unisono::plan::ir`].
    pub(crate) fn must_hear(&self, call: u32, rank: u32, other: u32) -> bool {
        match self.op {
            _ if rank == other => false,
            Op::Broadcast { root } | Op::Scatter { root }
                if rank == root && !self.is_answered(call) =>
            {
                false
            }
            Op::Broadcast { root } | Op::Scatter { root } if rank == root => {
                // Those to which it puts something.
                let distance = (other + self.ranks - root) % self.ranks;
                let is = |algorithm: Algorithm| self.algorithm == Family::from(algorithm);
                if is(Algorithm::Chain) {
                    distance == 1
                } else if is(Algorithm::Binomial) || is(Algorithm::ScatterAllGather) {
                    distance.is_power_of_two()
                } else {
                    true
                }
            }
            Op::Broadcast { root } | Op::Scatter { root } => other == root,
            Op::Reduce { root } | Op::Gather { root } => rank == root,
            // The executor leaves out what would tell the sender of its receiver.
            Op::Send { to } => (rank, other) == (to, self.sender()),
            _ => true,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let windowed = if self.windowed { " over windows" } else { "" };
        let (op, algorithm, ranks) = (self.op, self.algorithm, self.ranks);
        write!(f, "{op} by {algorithm}{windowed} on {ranks} ranks")
    }
}
