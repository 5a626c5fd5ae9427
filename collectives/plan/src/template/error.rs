//! Data that is no template.

/// Why some data is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A template has at least one rank, ring, tree, level or route.
    #[error("a template needs at least one {what}")]
    Empty {
        /// What is missing.
        what: &'static str,
    },
    /// More than can be numbered.
    #[error("{count} {what} are too many")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many.
        count: usize,
    },
    /// A rank that the communicator doesn't have.
    #[error("{what} {index} names rank {rank}, but there are {ranks} ranks")]
    NoSuchRank {
        /// "order", "ring", "tree", "level" or "route".
        what: &'static str,
        /// Its number in the data.
        index: usize,
        /// The rank.
        rank: u32,
        /// Ranks of the communicator.
        ranks: u32,
    },
    /// A rank is there twice, or not at all.
    #[error("{what} {index} has rank {rank} twice, or not at all")]
    NotOnce {
        /// "order", "ring", "tree", "level" or "route".
        what: &'static str,
        /// Its number in the data.
        index: usize,
        /// The rank.
        rank: u32,
    },
    /// A share of nothing, or shares that add up to more than can be counted.
    #[error("{what} {index} has no weight, or the weights add up to more than 2^63")]
    Weight {
        /// "ring", "tree" or "route".
        what: &'static str,
        /// Its number in the data.
        index: usize,
    },
    /// A tree in which some rank doesn't reach the root.
    #[error("rank {rank} of tree {index} doesn't reach the root: its parents go round in a circle")]
    Circle {
        /// The tree's number in the data.
        index: usize,
        /// The rank.
        rank: u32,
    },
    /// Levels that don't fit on each other.
    #[error("level {index} {why}")]
    Levels {
        /// The level.
        index: usize,
        /// In which way.
        why: String,
    },
}
