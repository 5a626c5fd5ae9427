//! From a link graph to a network.

use unisono_graph::{LinkGraph, VertexKind};

use crate::builder::{build, number};
use crate::{Edge, Network, NetworkError, Vertex, VertexId};

impl Network {
    /// The network of all ranks of a graph in a file's text, in any format that
    /// [`LinkGraph::from_json`] reads.
    ///
    /// # Errors
    /// The first thing that is wrong with the text, or as for [`from_graph`](Self::from_graph).
    pub fn from_json(text: &str) -> Result<Self, NetworkError> {
        Self::from_graph(&LinkGraph::from_json(text)?)
    }

    /// The network of all ranks of a graph.
    ///
    /// Devices without a rank are left out with their links. Parallel links stay several edges;
    /// [`link_of`](Self::link_of) leads back from each.
    ///
    /// # Errors
    /// If the graph has no rank, or its ranks are not 0, 1, 2 and so on.
    pub fn from_graph(graph: &LinkGraph) -> Result<Self, NetworkError> {
        let ranks = number(graph.rank_count());
        for (expected, rank) in (0..).zip(graph.ranks()) {
            if rank != expected {
                return Err(NetworkError::MissingRank {
                    missing: expected,
                    highest: graph.ranks().next_back().unwrap_or(rank),
                });
            }
        }
        let mut vertices: Vec<Vertex> = (0..ranks).map(|rank| Vertex::Compute { rank }).collect();
        let ids: Vec<Option<VertexId>> = graph
            .vertices()
            .iter()
            .map(|vertex| match &vertex.kind {
                VertexKind::Device(device) => device.rank,
                kind => {
                    let reduces = matches!(kind, VertexKind::Switch(switch) if switch.reduces);
                    vertices.push(Vertex::Switch { reduces });
                    Some(number(vertices.len() - 1))
                }
            })
            .collect();
        let mut edges = Vec::with_capacity(graph.links().len());
        let mut links = Vec::with_capacity(graph.links().len());
        for (place, link) in graph.links().iter().enumerate() {
            let ends = (ids[link.from.index()], ids[link.to.index()]);
            let (Some(from), Some(to)) = ends else {
                continue;
            };
            edges.push(Edge {
                from,
                to,
                bytes_per_second: link.bytes_per_second,
                latency_ns: link.latency_ns,
                group: link.shared.map(|group| number(group.index())),
            });
            links.push(number(place));
        }
        let groups: Vec<u64> = graph
            .capacity_groups()
            .iter()
            .map(|group| group.bytes_per_second)
            .collect();
        build(ranks, vertices, edges, &groups, links)
    }
}
