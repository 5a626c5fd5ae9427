//! The part of a graph that some of its ranks see, as a smaller communicator does.

use std::collections::BTreeMap;

use crate::{Builder, GraphError, LinkGraph, NewLink, VertexId, VertexKind};

impl LinkGraph {
    /// The graph of a communicator of some of this one's ranks: rank 0 is the first one given, and
    /// so on. Devices of other ranks, and their links, are left out; everything else stays.
    ///
    /// # Errors
    /// If the graph does not have a rank, or one is given twice.
    pub fn subset(&self, ranks: &[u32]) -> Result<Self, GraphError> {
        let mut numbers: BTreeMap<VertexId, u32> = BTreeMap::new();
        for (number, &rank) in (0u32..).zip(ranks) {
            let vertex = self.rank(rank).ok_or(GraphError::UnknownRank { rank })?;
            if numbers.insert(vertex, number).is_some() {
                let name = self.vertex(vertex).name.clone();
                return Err(GraphError::DuplicateRank {
                    rank: number,
                    first: name.clone(),
                    second: name,
                });
            }
        }
        let mut builder = Builder::new();
        for node in self.nodes() {
            builder.node(node.clone());
        }
        let groups: Vec<_> = self
            .capacity_groups()
            .iter()
            .map(|group| builder.capacity_group(group.clone()))
            .collect();
        let mut kept = BTreeMap::new();
        for (id, vertex) in self.vertex_ids() {
            let mut vertex = vertex.clone();
            if let VertexKind::Device(device) = &mut vertex.kind
                && device.rank.is_some()
            {
                let Some(number) = numbers.get(&id) else {
                    continue;
                };
                device.rank = Some(*number);
            }
            kept.insert(id, builder.vertex(vertex));
        }
        for link in self.links() {
            let (Some(&from), Some(&to)) = (kept.get(&link.from), kept.get(&link.to)) else {
                continue;
            };
            builder.link(NewLink {
                from,
                to,
                plugin: link.plugin.clone(),
                kind: link.kind.clone(),
                link_type: link.link_type,
                bytes_per_second: link.bytes_per_second,
                written_bytes_per_second: link.written_bytes_per_second,
                latency_ns: link.latency_ns,
                shared: link.shared.map(|group| groups[group.index()]),
                rail: link.rail,
                source: link.source.clone(),
            });
        }
        builder.build()
    }
}
