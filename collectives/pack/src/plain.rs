//! A network without shared capacities, which carries the same.
//!
//! Constructions want each edge to have its own capacity. Edges that share one mostly leave (or
//! enter) one vertex, as all that go by one network card do: then a switch in their way, reached by
//! one edge of the shared capacity, says the same. Other groups are divided among their edges in
//! proportion.

use unisono_network::{Builder, Edge, EdgeId, Group, Network, NetworkError};

use crate::tree::Tree;

/// The network, and which edges are the given network's.
pub(crate) struct Plain {
    pub(crate) network: Network,
    /// For each edge the one of the given network; none for an edge to or from an added switch.
    origin: Vec<Option<EdgeId>>,
}

impl Plain {
    pub(crate) fn new(network: &Network) -> Result<Self, NetworkError> {
        let mut builder = Builder::new(network.ranks());
        for _ in network.ranks()..network.vertices().len() as u32 {
            builder.switch(false);
        }
        let mut edges = network.edges().to_vec();
        let mut origin = Vec::new();
        for group in network.groups() {
            if sum(&edges, group) <= u128::from(group.bytes_per_second) {
                continue;
            }
            let first = edges[group.edges[0] as usize];
            let all = |test: &dyn Fn(&Edge) -> bool| {
                group.edges.iter().all(|&edge| test(&edges[edge as usize]))
            };
            if all(&|edge| edge.from == first.from) {
                let switch = builder.switch(false);
                builder.edge(first.from, switch, group.bytes_per_second, 0);
                origin.push(None);
                for &edge in &group.edges {
                    edges[edge as usize].from = switch;
                }
            } else if all(&|edge| edge.to == first.to) {
                let switch = builder.switch(false);
                builder.edge(switch, first.to, group.bytes_per_second, 0);
                origin.push(None);
                for &edge in &group.edges {
                    edges[edge as usize].to = switch;
                }
            } else {
                divide(&mut edges, group);
            }
        }
        for (id, edge) in (0..).zip(&edges) {
            builder.edge(
                edge.from,
                edge.to,
                edge.bytes_per_second.max(1),
                edge.latency_ns,
            );
            origin.push(Some(id));
        }
        Ok(Self {
            network: builder.build()?,
            origin,
        })
    }

    /// Trees in terms of the given network.
    pub(crate) fn back(&self, mut trees: Vec<Tree>) -> Vec<Tree> {
        for path in trees.iter_mut().flat_map(|tree| &mut tree.paths) {
            *path = self.path(path);
        }
        trees
    }

    /// A path in terms of the given network.
    pub(crate) fn path(&self, path: &[EdgeId]) -> Vec<EdgeId> {
        path.iter()
            .filter_map(|&edge| self.origin[edge as usize])
            .collect()
    }
}

fn sum(edges: &[Edge], group: &Group) -> u128 {
    let capacities = group
        .edges
        .iter()
        .map(|&edge| edges[edge as usize].bytes_per_second);
    capacities.map(u128::from).sum()
}

fn divide(edges: &mut [Edge], group: &Group) {
    let sum = sum(edges, group);
    for &edge in &group.edges {
        let capacity = &mut edges[edge as usize].bytes_per_second;
        *capacity = (u128::from(*capacity) * u128::from(group.bytes_per_second) / sum) as u64;
    }
}
