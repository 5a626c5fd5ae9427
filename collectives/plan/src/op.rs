//! The operations that programs carry, and the names by which people know them.

mod kind;

use std::fmt;
use std::ops::Range;

use crate::ir::Buffer;

pub use kind::{OpKind, UnknownOp};

/// An operation of a communicator, as one rank calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// Every rank gets the reduction of all inputs.
    AllReduce,
    /// Rank `r` gets block `r` of the reduction of all inputs.
    ReduceScatter,
    /// Every rank gets the inputs of all, in rank order.
    AllGather,
    /// Every rank gets the input of the root.
    Broadcast {
        /// The rank that has the input.
        root: u32,
    },
    /// The root gets the reduction of all inputs.
    Reduce {
        /// The rank that gets it.
        root: u32,
    },
    /// The root gets the inputs of all, in rank order.
    Gather {
        /// The rank that gets them.
        root: u32,
    },
    /// Rank `r` gets block `r` of the input of the root.
    Scatter {
        /// The rank that has the input.
        root: u32,
    },
    /// Rank `r` gets block `r` of every rank's input, in rank order.
    AllToAll,
    /// No rank leaves before every rank has entered.
    Barrier,
    /// Sends to one rank, which calls [`Op::Recv`].
    Send {
        /// The receiving rank.
        to: u32,
    },
    /// Receives from one rank, which calls [`Op::Send`].
    Recv {
        /// The sending rank.
        from: u32,
    },
}

impl Op {
    /// The operation without its root or peer.
    #[must_use]
    pub fn kind(self) -> OpKind {
        match self {
            Op::AllReduce => OpKind::AllReduce,
            Op::ReduceScatter => OpKind::ReduceScatter,
            Op::AllGather => OpKind::AllGather,
            Op::Broadcast { .. } => OpKind::Broadcast,
            Op::Reduce { .. } => OpKind::Reduce,
            Op::Gather { .. } => OpKind::Gather,
            Op::Scatter { .. } => OpKind::Scatter,
            Op::AllToAll => OpKind::AllToAll,
            Op::Barrier => OpKind::Barrier,
            Op::Send { .. } => OpKind::Send,
            Op::Recv { .. } => OpKind::Recv,
        }
    }

    /// The name that NCCL and MPI users know, without the root or the peer.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.kind().name()
    }

    /// Whether the operation combines elements, so that data type and reduction matter.
    #[must_use]
    pub fn reduces(self) -> bool {
        matches!(self, Op::AllReduce | Op::ReduceScatter | Op::Reduce { .. })
    }

    /// Whether every rank of the communicator takes part.
    #[must_use]
    pub fn is_collective(self) -> bool {
        !matches!(self, Op::Send { .. } | Op::Recv { .. })
    }

    /// The rank that has the input, or gets the output, alone.
    #[must_use]
    pub fn root(self) -> Option<u32> {
        match self {
            Op::Broadcast { root }
            | Op::Reduce { root }
            | Op::Gather { root }
            | Op::Scatter { root } => Some(root),
            _ => None,
        }
    }

    /// Whether the message has a share for each rank: a rank's input or output is one of them.
    #[must_use]
    pub fn has_block_per_rank(self) -> bool {
        matches!(
            self,
            Op::AllGather
                | Op::ReduceScatter
                | Op::Gather { .. }
                | Op::Scatter { .. }
                | Op::AllToAll
        )
    }

    /// Whether the output may take the place of the input, as far as the two have the same shape; `direct` asks for
    /// plans that reach into the peers' buffers. Such an all_to_all would overwrite what peers have yet to read.
    #[must_use]
    pub fn runs_in_place(self, direct: bool) -> bool {
        !(direct && self == Op::AllToAll)
    }

    /// The *parts* of the message: what the caller can give sizes of.
    ///
    /// One for each rank where [`Op::has_block_per_rank`], but for all_to_all two: what goes to
    /// the rank, and what comes from it. One in all where not.
    #[must_use]
    pub fn parts(self, ranks: u32) -> u32 {
        match self {
            Op::AllToAll => ranks.saturating_mul(2),
            op if op.has_block_per_rank() => ranks,
            _ => 1,
        }
    }

    /// The parts that a buffer of `rank` holds.
    ///
    /// Empty where the operation doesn't use the buffer on this rank. Element 0 of the buffer is
    /// the first element of the first of these parts. Scratch is not the caller's: it may hold
    /// anything.
    #[must_use]
    pub fn holds(self, buffer: Buffer, rank: u32, ranks: u32) -> Range<u32> {
        let all = 0..self.parts(ranks);
        let own = rank..rank + 1;
        match (self, buffer) {
            (_, Buffer::Scratch) => all,
            (Op::Barrier, _) => 0..0,
            (Op::AllToAll, Buffer::In) => 0..ranks,
            (Op::AllToAll, Buffer::Out) => ranks..all.end,
            (Op::AllGather | Op::Gather { .. }, Buffer::In) => own,
            (Op::ReduceScatter | Op::Scatter { .. }, Buffer::Out) => own,
            (Op::Send { .. }, Buffer::Out) | (Op::Recv { .. }, Buffer::In) => 0..0,
            (Op::Broadcast { root } | Op::Scatter { root }, Buffer::In) if root != rank => 0..0,
            (Op::Reduce { root } | Op::Gather { root }, Buffer::Out) if root != rank => 0..0,
            _ => all,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Broadcast { root }
            | Op::Reduce { root }
            | Op::Gather { root }
            | Op::Scatter { root } => write!(f, "{}(root {root})", self.name()),
            Op::Send { to } => write!(f, "send(to {to})"),
            Op::Recv { from } => write!(f, "recv(from {from})"),
            op => f.write_str(op.name()),
        }
    }
}
