//! Why there is no packing.

/// A packing that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// Some rank cannot be reached from another.
    #[error("no path leads from rank {from} to rank {to}: the operation needs one")]
    Unreachable {
        /// The rank where bytes would begin.
        from: u32,
        /// The rank that they cannot reach.
        to: u32,
    },
    /// A rank that the network does not have.
    #[error("there is no rank {rank}: the network has {ranks} ranks, numbered from 0")]
    UnknownRank {
        /// The rank.
        rank: u32,
        /// How many there are.
        ranks: u32,
    },
    /// A network beyond what the general construction is used for.
    #[error(
        "the network has {vertices} vertices, and trees are packed on at most {max}: use a template \
         that needs no search, such as the hierarchical one"
    )]
    TooLarge {
        /// How many vertices there are.
        vertices: usize,
        /// The most that are taken.
        max: usize,
    },
    /// A network that cannot be rebuilt without shared capacities: it is too large.
    #[error(transparent)]
    Network(#[from] unisono_network::NetworkError),
}
