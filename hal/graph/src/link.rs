//! Links: directed, between two vertices, with a bandwidth and a latency.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::VertexId;

/// The fastest link that is believed: 1 PB/s. Sums and products of sane numbers of links stay
/// far from overflow.
pub(crate) const MAX_BYTES_PER_SECOND: u64 = 1_000_000_000_000_000;
/// The slowest answer that is believed: 1000 s.
pub(crate) const MAX_LATENCY_NS: u64 = 1_000_000_000_000;

/// A link of one graph, by its place in [`LinkGraph::links`](crate::LinkGraph::links).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

impl LinkId {
    /// Its place.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A capacity group of one graph, by its place in
/// [`LinkGraph::capacity_groups`](crate::LinkGraph::capacity_groups).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub(crate) u32);

impl GroupId {
    /// Its place.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Links that share one capacity, such as all that leave by one network card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapacityGroup {
    /// Its name, unique in its graph.
    pub name: String,
    /// What all its links together can carry, in bytes a second.
    pub bytes_per_second: u64,
}

/// A directed link. Two links of one plugin and kind between the same ends are two real links, told
/// apart by their `index`; the other direction is a link of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where bytes enter.
    pub from: VertexId,
    /// Where bytes leave.
    pub to: VertexId,
    /// The plugin that drives it; empty in planning graphs.
    pub plugin: String,
    /// Its kind, as its plugin names it: "shm", "tcp".
    pub kind: String,
    /// How bytes are moved over it.
    pub link_type: LinkType,
    /// Bandwidth from `from` to `to` in bytes a second, never 0: by whichever end moves the bytes faster.
    pub bytes_per_second: u64,
    /// What a mapped link carries where the sender writes, in bytes a second, if that is less than where the receiver
    /// reads.
    pub written_bytes_per_second: Option<u64>,
    /// Latency in nanoseconds, 0 if it is not modelled.
    pub latency_ns: u64,
    /// The capacity that it shares with others, if it does.
    pub shared: Option<GroupId>,
    /// The rail it belongs to, 0 if there are none.
    pub rail: u32,
    /// Its number among parallel links, from 0.
    pub index: u32,
    /// Who said so.
    pub source: Source,
}

impl Link {
    /// What it carries where the sender moves the bytes, in bytes a second.
    pub(crate) fn written(&self) -> u64 {
        self.written_bytes_per_second
            .unwrap_or(self.bytes_per_second)
    }
}

/// How bytes are moved over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkType {
    /// One end's memory is imported by the other: ordinary stream commands move the bytes.
    Mapped,
    /// The link itself moves the bytes.
    Posted,
}

impl LinkType {
    /// Its name in files and drawings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mapped => "mapped",
            Self::Posted => "posted",
        }
    }
}

/// Who said that a link is there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Its plugin.
    Plugin,
    /// A planning graph, or code.
    Given,
    /// An overlay; the text says which, such as `cluster.yaml:12`.
    Overlay(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugin => f.write_str("plugin"),
            Self::Given => f.write_str("given"),
            Self::Overlay(text) => f.write_str(text),
        }
    }
}
