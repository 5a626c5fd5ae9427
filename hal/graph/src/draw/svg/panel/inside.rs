//! What belongs together inside a panel: devices of a NUMA node, switches at one depth.

use std::collections::{BTreeMap, BTreeSet};

use super::chips::numa_parts;
use crate::{LinkGraph, NodeId, VertexId, VertexKind};

/// Devices by NUMA node, if one, two or four of them have devices; otherwise all together.
pub(super) fn regions(
    graph: &LinkGraph,
    node: Option<NodeId>,
    devices: &[VertexId],
) -> (Vec<Vec<VertexId>>, Vec<Vec<String>>) {
    let numa_of = |id: &VertexId| graph.vertex(*id).device().and_then(|device| device.numa);
    let mut by_numa: BTreeMap<Option<u32>, Vec<VertexId>> = BTreeMap::new();
    for device in devices {
        by_numa.entry(numa_of(device)).or_default().push(*device);
    }
    let known = !by_numa.contains_key(&None) && matches!(by_numa.len(), 1 | 2 | 4);
    if !known {
        return (vec![devices.to_vec()], Vec::new());
    }
    let title = |index: &Option<u32>| {
        let index = index.unwrap_or_default();
        let of_node = graph.vertices().iter().filter(|vertex| vertex.node == node);
        let numa = of_node.filter_map(|vertex| match &vertex.kind {
            VertexKind::Numa(numa) if numa.index == index => Some(numa),
            _ => None,
        });
        numa.map(numa_parts)
            .next()
            .unwrap_or_else(|| vec![format!("NUMA {index}")])
    };
    let titles = by_numa.keys().map(title).collect();
    (by_numa.into_values().collect(), titles)
}

/// What forwards, by how many links it is from a device.
pub(super) fn rings(
    graph: &LinkGraph,
    devices: &[VertexId],
    hubs: Vec<VertexId>,
) -> Vec<Vec<VertexId>> {
    let mut left: BTreeSet<VertexId> = hubs.into_iter().collect();
    let mut near: BTreeSet<VertexId> = devices.iter().copied().collect();
    let mut rings = Vec::new();
    while !left.is_empty() {
        let joined = |link: &&crate::Link| near.contains(&link.from) || near.contains(&link.to);
        let reached: BTreeSet<VertexId> = graph
            .links()
            .iter()
            .filter(joined)
            .flat_map(|link| [link.from, link.to])
            .collect();
        let mut ring: Vec<VertexId> = left
            .iter()
            .copied()
            .filter(|hub| reached.contains(hub))
            .collect();
        if ring.is_empty() {
            // Nothing leads there: it stands with the innermost.
            ring = left.iter().copied().collect();
        }
        left.retain(|hub| !ring.contains(hub));
        near.extend(&ring);
        rings.push(ring);
    }
    rings
}
