//! The names of the operations.

use std::fmt;
use std::str::FromStr;

use super::Op;

/// An operation without its root or peer: what configuration and tables name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// See [`super::Op::AllReduce`].
    AllReduce,
    /// See [`super::Op::ReduceScatter`].
    ReduceScatter,
    /// See [`super::Op::AllGather`].
    AllGather,
    /// See [`super::Op::Broadcast`].
    Broadcast,
    /// See [`super::Op::Reduce`].
    Reduce,
    /// See [`super::Op::Gather`].
    Gather,
    /// See [`super::Op::Scatter`].
    Scatter,
    /// See [`super::Op::AllToAll`].
    AllToAll,
    /// See [`super::Op::Barrier`].
    Barrier,
    /// See [`super::Op::Send`].
    Send,
    /// See [`super::Op::Recv`].
    Recv,
}

impl OpKind {
    /// Every kind of operation.
    pub const ALL: [OpKind; 11] = [
        OpKind::AllReduce,
        OpKind::ReduceScatter,
        OpKind::AllGather,
        OpKind::Broadcast,
        OpKind::Reduce,
        OpKind::Gather,
        OpKind::Scatter,
        OpKind::AllToAll,
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
            OpKind::Reduce => "reduce",
            OpKind::Gather => "gather",
            OpKind::Scatter => "scatter",
            OpKind::AllToAll => "all_to_all",
            OpKind::Barrier => "barrier",
            OpKind::Send => "send",
            OpKind::Recv => "recv",
        }
    }

    /// The operation with this root, if it has one; a send goes to the one rank, a receive comes from the other.
    #[must_use]
    pub fn with(self, root: u32, [to, from]: [u32; 2]) -> Op {
        match self {
            OpKind::AllReduce => Op::AllReduce,
            OpKind::ReduceScatter => Op::ReduceScatter,
            OpKind::AllGather => Op::AllGather,
            OpKind::Broadcast => Op::Broadcast { root },
            OpKind::Reduce => Op::Reduce { root },
            OpKind::Gather => Op::Gather { root },
            OpKind::Scatter => Op::Scatter { root },
            OpKind::AllToAll => Op::AllToAll,
            OpKind::Barrier => Op::Barrier,
            OpKind::Send => Op::Send { to },
            OpKind::Recv => Op::Recv { from },
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
