//! What can be wrong with a graph, a report or a file.

use crate::{NodeId, link::MAX_BYTES_PER_SECOND, link::MAX_LATENCY_NS};

/// A graph that cannot be. Vertices are named as people know them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A link ends at something the graph does not have.
    #[error(
        "link {link} ends at vertex {vertex}, and there is none: add the vertex or drop the link"
    )]
    DanglingLink {
        /// The link.
        link: String,
        /// The end that is missing.
        vertex: String,
    },
    /// A link joins a vertex to itself.
    #[error("link {link} joins {vertex} to itself: a link needs two ends")]
    SelfLink {
        /// The link.
        link: String,
        /// Both its ends.
        vertex: String,
    },
    /// A bandwidth of zero, or one that no link has.
    #[error(
        "link {link} has a bandwidth of {bytes_per_second} B/s: give 1 to {MAX_BYTES_PER_SECOND}, or leave the link out"
    )]
    Bandwidth {
        /// The link.
        link: String,
        /// What was given.
        bytes_per_second: u64,
    },
    /// What the sender writes over a link is not less than what the link carries, or the link is not mapped.
    #[error(
        "link {link} has {written} B/s written of {bytes_per_second} B/s: give less, of a mapped link, or leave it out"
    )]
    Written {
        /// The link.
        link: String,
        /// What was given.
        written: u64,
        /// What the link carries, by whichever end is faster.
        bytes_per_second: u64,
    },
    /// A latency that no link has.
    #[error("link {link} has a latency of {latency_ns} ns: give at most {MAX_LATENCY_NS}")]
    Latency {
        /// The link.
        link: String,
        /// What was given.
        latency_ns: u64,
    },
    /// A capacity group of no or of an impossible capacity, or an unknown group.
    #[error("capacity group {group}: {problem}")]
    CapacityGroup {
        /// The group.
        group: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Two vertices bear one rank.
    #[error("rank {rank} is on two devices, {first} and {second}: a rank uses one")]
    DuplicateRank {
        /// The rank.
        rank: u32,
        /// A device that bears it.
        first: String,
        /// The other.
        second: String,
    },
    /// A vertex is part of a node that the graph does not have.
    #[error("{vertex} is part of node {node}, and there is none: add the node")]
    UnknownNode {
        /// The vertex.
        vertex: String,
        /// The node that is missing.
        node: NodeId,
    },
    /// Two descriptions of one vertex or node that cannot both be right.
    #[error("{what} is described twice, and the descriptions differ: {first} and {second}")]
    Conflict {
        /// The vertex or node.
        what: String,
        /// One description.
        first: String,
        /// The other.
        second: String,
    },
    /// A name that is empty, too long, or holds control characters.
    #[error("{what} `{name}` is no name: give 1 to {max} bytes without control characters")]
    Name {
        /// What it should name.
        what: &'static str,
        /// What was given, escaped.
        name: String,
        /// The longest that is taken.
        max: usize,
    },
    /// Two reports for one rank.
    #[error("rank {rank} reported twice: ranks must be given once each")]
    DuplicateReport {
        /// The rank.
        rank: u32,
    },
    /// A report names a device that it does not list.
    #[error("rank {rank}: {field} names a device that plugin `{plugin}` does not report: {device}")]
    UnknownDevice {
        /// Whose report it is.
        rank: u32,
        /// The part of the report.
        field: &'static str,
        /// The plugin.
        plugin: String,
        /// The device.
        device: String,
    },
    /// An overlay names an end that the graph does not have, or that is not one alone.
    #[error("{origin}: {endpoint} names {found} vertices of the graph: name exactly one")]
    Endpoint {
        /// The overlay's origin, such as `cluster.yaml:12`.
        origin: String,
        /// The end, as it was given.
        endpoint: String,
        /// How many it names.
        found: usize,
    },
    /// An overlay takes away a link that is not there.
    #[error("{origin}: there is no link {link} to {verb}")]
    NothingToChange {
        /// The overlay's origin, such as `cluster.yaml:12`.
        origin: String,
        /// The link.
        link: String,
        /// What was to happen to it.
        verb: &'static str,
    },
    /// A rank that the graph does not have.
    #[error("there is no rank {rank} in the graph")]
    UnknownRank {
        /// The rank.
        rank: u32,
    },
    /// More vertices, links or groups than a graph can number.
    #[error("the graph has more than {max} {what}")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many there may be.
        max: usize,
    },
}

/// Bytes that are no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "bytes from a peer are no node report: {0}; run the same version of the library on all ranks"
)]
pub struct ReportError(pub(crate) String);

/// A file that is no graph, with the place that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}{}: {message}", field_of(.field))]
pub struct JsonError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The field, such as `links[3].kind`; empty for the whole file.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

fn field_of(field: &str) -> String {
    if field.is_empty() {
        String::new()
    } else {
        format!(", field `{field}`")
    }
}
