//! What bounds are asked for.

/// A collective, as far as its bound is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Everybody gets what everybody has.
    AllGather,
    /// Everybody gets its block of the sum.
    ReduceScatter,
    /// Everybody gets the whole sum.
    AllReduce {
        /// Whether switches that can reduce do so.
        in_network: bool,
    },
    /// Everybody gets what the root has.
    Broadcast {
        /// The rank that has it.
        root: u32,
    },
    /// The root gets the sum.
    Reduce {
        /// The rank that gets it.
        root: u32,
    },
    /// Everybody gets its block of what the root has.
    Scatter {
        /// The rank that has it.
        root: u32,
    },
    /// The root gets what everybody has.
    Gather {
        /// The rank that gets it.
        root: u32,
    },
    /// Everybody gets a block from everybody.
    AllToAll,
    /// One rank gets what another has.
    SendRecv {
        /// The rank that has it.
        from: u32,
        /// The rank that gets it.
        to: u32,
    },
}

impl Op {
    /// The op that is this one with every byte flowing the other way, and so has the same bound on
    /// the network with every edge turned around.
    pub fn mirrored(self) -> Self {
        match self {
            Self::AllGather => Self::ReduceScatter,
            Self::ReduceScatter => Self::AllGather,
            Self::Broadcast { root } => Self::Reduce { root },
            Self::Reduce { root } => Self::Broadcast { root },
            Self::Scatter { root } => Self::Gather { root },
            Self::Gather { root } => Self::Scatter { root },
            Self::SendRecv { from, to } => Self::SendRecv { from: to, to: from },
            same @ (Self::AllReduce { .. } | Self::AllToAll) => same,
        }
    }
}
