//! Which puts their receivers fetch: where links carry more if the receiver reads than if the sender writes.
//!
//! Every rank finds the same, as both ends of a channel must: it follows from the frozen link graph and from what the
//! ranks told each other while forming.

use unisono_graph::{DeviceClass, LinkGraph, LinkType, Way};

use super::recording::Records;

/// Whether anything is fetched in a communicator. Where calls are recorded their slots lie where those would from which
/// puts are fetched, so there everything is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fetches(bool);

impl Fetches {
    /// Of ranks that told this of their recordings.
    pub(super) fn of(records: &[Records]) -> Self {
        Self(Records::refusal(records).is_some())
    }

    /// Whether what goes this way between two ranks of the job is fetched.
    pub(super) fn has(self, graph: &LinkGraph, from: u32, to: u32, way: &Way) -> bool {
        let is_device = |rank| {
            let vertex = graph.rank(rank).map(|at| graph.vertex(at));
            let device = vertex.and_then(|vertex| vertex.device());
            device.is_some_and(|device| device.class != DeviceClass::Cpu)
        };
        let reads_faster = way.written_bytes_per_second.is_some();
        let is_mapped = way.link_type == LinkType::Mapped;
        self.0 && reads_faster && is_mapped && is_device(from) && is_device(to)
    }

    /// What the way carries, in bytes a second.
    pub(super) fn rate(self, graph: &LinkGraph, from: u32, to: u32, way: &Way) -> u64 {
        match way.written_bytes_per_second {
            Some(written) if !self.has(graph, from, to, way) => written,
            _ => way.bytes_per_second,
        }
    }
}
