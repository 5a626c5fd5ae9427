//! Overlays: the links that no plugin can see, or that one gets wrong.
//!
//! They come from the cluster file and have the last word. Every link they touch is marked with
//! where they come from, so that a drawing or an explanation can say so.

use std::fmt;

use crate::{DeviceId, GraphError, LinkGraph, LinkType, NodeId};

/// One change to a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlay {
    /// Where it comes from, for people: `cluster.yaml:12`.
    pub origin: String,
    /// Where the link begins.
    pub from: Endpoint,
    /// Where the link ends.
    pub to: Endpoint,
    /// Whether the other direction is meant too.
    pub both_directions: bool,
    /// The kind of link.
    pub kind: String,
    /// What becomes of it.
    pub action: OverlayAction,
}

/// What an overlay does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverlayAction {
    /// The links of this kind between the ends are this one, whatever was reported.
    Set {
        /// The plugin that drives it.
        plugin: String,
        /// How bytes are moved over it.
        link_type: LinkType,
        /// Bandwidth in bytes a second.
        bytes_per_second: u64,
        /// Latency in nanoseconds.
        latency_ns: u64,
        /// The capacity that it shares with all links that name it: as much as one of them has alone.
        /// The ways back share another, of the same size.
        shared: Option<String>,
    },
    /// The links that are there have these figures; what is `None` stays.
    Adjust {
        /// Bandwidth in bytes a second. Where writes are slower than reads, they stay so in proportion.
        bytes_per_second: Option<u64>,
        /// Latency in nanoseconds.
        latency_ns: Option<u64>,
        /// The capacity that they share, as above.
        shared: Option<String>,
    },
    /// There is no such link.
    Remove,
}

/// One end of an overlay's link. It must name exactly one vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The device of a rank.
    Rank(u32),
    /// A device by identity.
    Device(NodeId, DeviceId),
    /// Any vertex by its name, on a host if one is given.
    Named {
        /// Host name of the node; none for what is part of no node or if the name is enough.
        host: Option<String>,
        /// Name of the vertex.
        name: String,
    },
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rank(rank) => write!(f, "rank {rank}"),
            Self::Device(node, device) => write!(f, "device {device} of node {node}"),
            Self::Named {
                host: Some(host),
                name,
            } => write!(f, "`{name}` of host `{host}`"),
            Self::Named { host: None, name } => write!(f, "`{name}`"),
        }
    }
}

impl LinkGraph {
    /// A new graph with these changes, made in the order given.
    ///
    /// # Errors
    /// If an end names no vertex or several, if an `Adjust` or a `Remove` finds no link, or if the
    /// result is no valid graph.
    pub fn overlay(&self, overlays: &[Overlay]) -> Result<LinkGraph, GraphError> {
        apply::apply(self, overlays)
    }
}

mod apply;
