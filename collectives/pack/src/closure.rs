//! Shortest ways between ranks by switches alone, for given prices of edges.

use std::collections::BinaryHeap;

use unisono_network::{EdgeId, Network, VertexId};

use crate::nearest::Entry;

/// For each ordered pair of ranks, the cheapest way that no other rank is on.
pub(crate) struct Closure<'a> {
    network: &'a Network,
    ranks: usize,
    distance: Vec<f64>,
    /// For each rank and vertex, the edge by which the way from the rank arrives.
    arrival: Vec<Option<EdgeId>>,
}

impl<'a> Closure<'a> {
    /// Finds all ways. Edges with an infinite price are not used.
    pub(crate) fn new(network: &'a Network, prices: &[f64]) -> Self {
        let ranks = network.ranks() as usize;
        let n = network.vertices().len();
        let mut distance = vec![f64::INFINITY; ranks * ranks];
        let mut arrival = vec![None; ranks * n];
        let mut search = Search::new(n);
        for from in 0..ranks {
            let arrival = &mut arrival[from * n..(from + 1) * n];
            search.run(network, prices, from as VertexId, arrival);
            for to in (0..ranks).filter(|&to| to != from) {
                distance[from * ranks + to] = search.distance[to];
            }
        }
        Self {
            network,
            ranks,
            distance,
            arrival,
        }
    }

    /// What the way costs; infinite if there is none.
    pub(crate) fn distance(&self, from: usize, to: usize) -> f64 {
        self.distance[from * self.ranks + to]
    }

    /// The edges of the way, in order.
    pub(crate) fn path(&self, from: usize, to: usize) -> Vec<EdgeId> {
        let n = self.network.vertices().len();
        let mut path = Vec::new();
        let mut at = to;
        while at != from {
            let Some(edge) = self.arrival[from * n + at] else {
                break;
            };
            path.push(edge);
            at = self.network.edge(edge).from as usize;
        }
        path.reverse();
        path
    }
}

/// Dijkstra's search, which ends at ranks.
struct Search {
    distance: Vec<f64>,
    heap: BinaryHeap<Entry>,
}

impl Search {
    fn new(n: usize) -> Self {
        Self {
            distance: vec![f64::INFINITY; n],
            heap: BinaryHeap::new(),
        }
    }

    fn run(
        &mut self,
        network: &Network,
        prices: &[f64],
        from: VertexId,
        arrival: &mut [Option<EdgeId>],
    ) {
        self.distance.fill(f64::INFINITY);
        self.distance[from as usize] = 0.0;
        self.heap.push(Entry(0.0, from));
        while let Some(Entry(distance, at)) = self.heap.pop() {
            let inner = at == from || network.rank_of(at).is_none();
            if !inner || distance > self.distance[at as usize] {
                continue;
            }
            for &id in network.out_edges(at) {
                let to = network.edge(id).to;
                let next = distance + prices[id as usize];
                if next < self.distance[to as usize] {
                    self.distance[to as usize] = next;
                    arrival[to as usize] = Some(id);
                    self.heap.push(Entry(next, to));
                }
            }
        }
    }
}
