//! Why there is no bound.

/// A network or an op that has no bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BoundError {
    /// The network is too large to have vertices of its own for shared capacities.
    #[error(transparent)]
    Network(#[from] unisono_network::NetworkError),
    /// Something must flow where nothing can.
    #[error("nothing leads from rank {from} to rank {to}: join them, or plan for fewer ranks")]
    Disconnected {
        /// Where it begins.
        from: u32,
        /// Where it should end.
        to: u32,
    },
    /// An op names a rank that the network does not have.
    #[error("there is no rank {rank}: the network has {ranks} ranks, numbered from 0")]
    UnknownRank {
        /// The rank.
        rank: u32,
        /// How many there are.
        ranks: u32,
    },
}
