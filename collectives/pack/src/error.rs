//! Why there is no packing.

use unisono_bound::BoundError;

/// A packing that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// A rank that is not there, or one that cannot be reached.
    #[error(transparent)]
    Bound(#[from] BoundError),
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
    /// No simple construction suits the network.
    #[error(
        "the network has no islands joined by switches and is no network of ranks alone: pack trees \
         one by one"
    )]
    Irregular,
    /// A search that found no trees in the work that it may take.
    #[error(
        "no trees were found within the work that packing may take: use an algorithm that needs no search"
    )]
    TooMuchWork,
    /// A network that cannot be rebuilt without shared capacities: it is too large.
    #[error(transparent)]
    Network(#[from] unisono_network::NetworkError),
}

impl PackError {
    /// No path leads from one rank to another.
    pub(crate) fn unreachable(from: u32, to: u32) -> Self {
        Self::Bound(BoundError::Disconnected { from, to })
    }
}
