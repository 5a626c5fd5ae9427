//! The operations that programs carry, and the names by which people know them.

use std::fmt;
use std::str::FromStr;

use crate::ir::{Blocks, Buffer};

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
        matches!(self, Op::AllReduce | Op::ReduceScatter)
    }

    /// Whether every rank of the communicator takes part.
    #[must_use]
    pub fn is_collective(self) -> bool {
        !matches!(self, Op::Send { .. } | Op::Recv { .. })
    }

    /// Whether blocks are tied to ranks: there are as many blocks as ranks, all of one size.
    #[must_use]
    pub fn has_block_per_rank(self) -> bool {
        matches!(self, Op::AllGather | Op::ReduceScatter)
    }

    /// The blocks that a buffer of `rank` holds, of a message of `blocks` blocks.
    ///
    /// Empty where the operation doesn't use the buffer on this rank. Element 0 of the buffer is
    /// the first element of the first of these blocks.
    #[must_use]
    pub fn holds(self, buffer: Buffer, rank: u32, blocks: u32) -> Blocks {
        let all = Blocks::new(0, blocks);
        let own = Blocks::one(rank);
        match (self, buffer) {
            (_, Buffer::Scratch) => all,
            (Op::Barrier, _) => Blocks::NONE,
            (Op::AllGather, Buffer::In) | (Op::ReduceScatter, Buffer::Out) => own,
            (Op::Send { .. }, Buffer::Out) | (Op::Recv { .. }, Buffer::In) => Blocks::NONE,
            (Op::Broadcast { root }, Buffer::In) if root != rank => Blocks::NONE,
            _ => all,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Broadcast { root } => write!(f, "broadcast(root {root})"),
            Op::Send { to } => write!(f, "send(to {to})"),
            Op::Recv { from } => write!(f, "recv(from {from})"),
            op => f.write_str(op.name()),
        }
    }
}

/// An operation without its root or peer: what configuration and tables name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// See [`Op::AllReduce`].
    AllReduce,
    /// See [`Op::ReduceScatter`].
    ReduceScatter,
    /// See [`Op::AllGather`].
    AllGather,
    /// See [`Op::Broadcast`].
    Broadcast,
    /// See [`Op::Barrier`].
    Barrier,
    /// See [`Op::Send`].
    Send,
    /// See [`Op::Recv`].
    Recv,
}

impl OpKind {
    /// Every kind of operation.
    pub const ALL: [OpKind; 7] = [
        OpKind::AllReduce,
        OpKind::ReduceScatter,
        OpKind::AllGather,
        OpKind::Broadcast,
        OpKind::Barrier,
        OpKind::Send,
        OpKind::Recv,
    ];

    /// The name that NCCL and MPI users know.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OpKind::AllReduce => "all_reduce",
            OpKind::ReduceScatter => "reduce_scatter",
            OpKind::AllGather => "all_gather",
            OpKind::Broadcast => "broadcast",
            OpKind::Barrier => "barrier",
            OpKind::Send => "send",
            OpKind::Recv => "recv",
        }
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no operation's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no operation; there are {}", OpKind::ALL.map(OpKind::name).join(", "))]
pub struct UnknownOp {
    /// What was given.
    pub name: String,
}

impl FromStr for OpKind {
    type Err = UnknownOp;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let wanted = name.replace('-', "_");
        OpKind::ALL
            .into_iter()
            .find(|kind| kind.name() == wanted)
            .ok_or_else(|| UnknownOp { name: name.into() })
    }
}
