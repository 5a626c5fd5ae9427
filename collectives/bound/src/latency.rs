//! The time that no message can do without: data must get from where it is to where it is needed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use unisono_network::{Network, Symmetry, VertexId};

use crate::Op;

/// The longest of the shortest paths that an op needs, in nanoseconds. Ranks that are not joined do
/// not count.
pub(crate) fn longest(network: &Network, op: Op) -> u64 {
    if network.edges().iter().all(|edge| edge.latency_ns == 0) {
        return 0;
    }
    let ranks = network.ranks() as usize;
    let farthest = |search: &mut Search, network: &Network, from: u32| {
        let distances = search.from(network, from);
        let reached = distances[..ranks]
            .iter()
            .filter(|distance| **distance != FAR);
        reached.max().copied().unwrap_or(0)
    };
    let mut search = Search::default();
    match op {
        Op::Broadcast { root } | Op::Scatter { root } => farthest(&mut search, network, root),
        Op::Reduce { root } | Op::Gather { root } => {
            farthest(&mut search, &network.reversed(), root)
        }
        Op::SendRecv { from, to } => match search.from(network, from)[to as usize] {
            FAR => 0,
            distance => distance,
        },
        // What a rank ends with depends on what every other rank began with.
        Op::AllGather | Op::ReduceScatter | Op::AllReduce { .. } | Op::AllToAll => {
            let from_each =
                (different(network).into_iter()).map(|rank| farthest(&mut search, network, rank));
            from_each.max().unwrap_or(0)
        }
    }
}

/// Ranks from which everything may be seen: of many that are alike, one is enough.
fn different(network: &Network) -> Vec<u32> {
    let symmetry = match network.ranks() {
        0..=MANY => None,
        _ => Symmetry::of(network),
    };
    let ranks = |vertices: &[VertexId]| {
        let ranks = vertices
            .iter()
            .filter_map(|&vertex| network.rank_of(vertex));
        ranks.collect()
    };
    match symmetry {
        Some(symmetry) => ranks(symmetry.vertices().representatives()),
        None => (0..network.ranks()).collect(),
    }
}

/// Up to so many ranks it is faster to search from all of them.
const MANY: u32 = 2048;

const FAR: u64 = u64::MAX;

/// Dijkstra's search, with what it needs kept between searches.
#[derive(Default)]
struct Search {
    distances: Vec<u64>,
    waiting: BinaryHeap<Reverse<(u64, VertexId)>>,
}

impl Search {
    fn from(&mut self, network: &Network, start: VertexId) -> &[u64] {
        self.distances.clear();
        self.distances.resize(network.vertices().len(), FAR);
        self.distances[start as usize] = 0;
        self.waiting.push(Reverse((0, start)));
        while let Some(Reverse((distance, vertex))) = self.waiting.pop() {
            if distance > self.distances[vertex as usize] {
                continue;
            }
            for &edge in network.out_edges(vertex) {
                let edge = network.edge(edge);
                let next = distance.saturating_add(edge.latency_ns);
                if next < self.distances[edge.to as usize] {
                    self.distances[edge.to as usize] = next;
                    self.waiting.push(Reverse((next, edge.to)));
                }
            }
        }
        &self.distances
    }
}
