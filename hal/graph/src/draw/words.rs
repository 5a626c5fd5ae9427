//! How parts of a graph are named in drawings.

use std::collections::BTreeSet;

use crate::{LinkGraph, Node, NodeId, Vertex, VertexId, VertexKind, units};

/// Numbers as ranges: `0-3, 7`.
pub(super) fn ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    let numbers: BTreeSet<u32> = numbers.into_iter().collect();
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let text = |(first, last)| {
        if first == last {
            format!("{first}")
        } else {
            format!("{first}-{last}")
        }
    };
    runs.into_iter().map(text).collect::<Vec<_>>().join(", ")
}

/// A number and what is counted: `1 rank`, `4 ranks`.
pub(super) fn count(number: usize, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

/// A set of vertices in a few words: `ranks 0-3`, `switch leaf0`.
pub(super) fn vertices(graph: &LinkGraph, ids: &BTreeSet<VertexId>) -> String {
    let ranks: Vec<u32> = ids
        .iter()
        .filter_map(|id| graph.vertex(*id).rank())
        .collect();
    let others: Vec<&Vertex> = ids
        .iter()
        .map(|id| graph.vertex(*id))
        .filter(|v| v.rank().is_none())
        .collect();
    let mut parts = Vec::new();
    if !ranks.is_empty() {
        let word = if ranks.len() == 1 { "rank" } else { "ranks" };
        parts.push(format!("{word} {}", ranges(ranks)));
    }
    match others[..] {
        [] => {}
        [one] => parts.push(one.label()),
        _ => {
            let switches = others
                .iter()
                .all(|v| matches!(v.kind, VertexKind::Switch(_)));
            let what = if switches {
                "switches"
            } else {
                "other vertices"
            };
            parts.push(format!("{} {what}", others.len()));
        }
    }
    parts.join(" and ")
}

/// What a machine has, but for its devices: `94 GiB, 2 NUMA nodes, 64 cores`.
pub(super) fn machine(graph: &LinkGraph, node: &Node) -> String {
    let numa: Vec<_> = of_node(graph, node.id)
        .filter_map(|vertex| match &vertex.kind {
            VertexKind::Numa(numa) => Some(numa),
            _ => None,
        })
        .collect();
    let sockets: BTreeSet<u32> = numa.iter().filter_map(|numa| numa.socket).collect();
    let cores = numa.iter().map(|numa| u64::from(numa.cores)).sum::<u64>();
    let mut parts = Vec::new();
    if !sockets.is_empty() {
        parts.push(count(sockets.len(), "socket"));
    }
    if numa.len() > 1 {
        parts.push(count(numa.len(), "NUMA node"));
    }
    if cores > 0 {
        parts.push(count(usize::try_from(cores).unwrap_or(usize::MAX), "core"));
    }
    if node.memory_bytes > 0 {
        parts.push(units::size(node.memory_bytes));
    }
    parts.join(", ")
}

/// The vertices of a node.
pub(super) fn of_node(graph: &LinkGraph, node: NodeId) -> impl Iterator<Item = &Vertex> {
    graph
        .vertices()
        .iter()
        .filter(move |vertex| vertex.node == Some(node))
}

/// The graph in one line: `4 ranks on 2 nodes, 24 links`.
pub(super) fn summary(graph: &LinkGraph) -> String {
    let devices = graph
        .vertices()
        .iter()
        .filter(|vertex| vertex.device().is_some())
        .count();
    let mut text = match graph.rank_count() {
        0 => count(devices, "device"),
        ranks => count(ranks, "rank"),
    };
    if !graph.nodes().is_empty() {
        text.push_str(&format!(" on {}", count(graph.nodes().len(), "node")));
    }
    let switches = graph
        .vertices()
        .iter()
        .filter(|vertex| matches!(vertex.kind, VertexKind::Switch(_)))
        .count();
    if switches > 0 {
        text.push_str(&format!(
            ", {switches} {}",
            if switches == 1 { "switch" } else { "switches" }
        ));
    }
    text.push_str(&format!(", {}", count(graph.links().len(), "link")));
    text
}

/// The start of the graph's hash.
pub(super) fn short_hash(graph: &LinkGraph) -> String {
    graph.hash().to_string()[..12].to_owned()
}
