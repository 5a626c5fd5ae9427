//! What can be wrong with a network.

/// A network that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A text that is no graph.
    #[error(transparent)]
    Json(#[from] unisono_graph::JsonError),
    /// There is no rank to plan for.
    #[error("the network has no ranks: give at least one device that computes")]
    NoRanks,
    /// A rank that the network does not have.
    #[error("there is no rank {rank}: the network has {ranks} ranks, numbered from 0")]
    UnknownRank {
        /// The rank.
        rank: u32,
        /// How many there are.
        ranks: u32,
    },
    /// A rank that is asked for twice.
    #[error("rank {rank} is given twice: each rank has one place")]
    DuplicateRank {
        /// The rank.
        rank: u32,
    },
    /// A graph whose ranks are not numbered 0, 1, 2 and so on.
    #[error(
        "the graph has a rank {highest} and no rank {missing}: number ranks from 0 without gaps"
    )]
    MissingRank {
        /// The first number that no device bears.
        missing: u32,
        /// The highest number that one bears.
        highest: u32,
    },
    /// An edge ends at a vertex that is not there.
    #[error("edge {edge} ends at vertex {vertex}, and there are {vertices}: add the vertex first")]
    UnknownVertex {
        /// The edge.
        edge: u32,
        /// Its missing end.
        vertex: u32,
        /// How many vertices there are.
        vertices: u32,
    },
    /// An edge joins a vertex to itself.
    #[error("edge {edge} joins vertex {vertex} to itself: an edge needs two ends")]
    SelfLoop {
        /// The edge.
        edge: u32,
        /// Both its ends.
        vertex: u32,
    },
    /// A capacity of zero, or one beyond what sums of capacities can hold.
    #[error("{what} has a capacity of {bytes_per_second} B/s: give 1 to {max}, or leave it out")]
    Capacity {
        /// The edge or group.
        what: String,
        /// What was given.
        bytes_per_second: u64,
        /// The most that is taken.
        max: u64,
    },
    /// A shared capacity that is not there.
    #[error("edge {edge} shares capacity {group}, and there are {groups}: add the group first")]
    UnknownGroup {
        /// The edge.
        edge: u32,
        /// The group.
        group: u32,
        /// How many groups there are.
        groups: u32,
    },
    /// More vertices, edges or groups than 32 bits can number.
    #[error("the network has more than {} {what}", u32::MAX)]
    TooMany {
        /// What there are too many of.
        what: &'static str,
    },
}
