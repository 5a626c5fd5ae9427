//! All shortest paths from one vertex.

use std::cmp::Reverse;

use crate::{EdgeId, Network, VertexId};

const FAR: u32 = u32::MAX;
const NO_EDGE: EdgeId = EdgeId::MAX;

/// How far each vertex is, and the edge by which it is best reached.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    /// Edges from the root, `FAR` where nothing leads.
    pub(super) level: Vec<u32>,
    width: Vec<u64>,
    by: Vec<EdgeId>,
    order: Vec<VertexId>,
    switched: bool,
}

impl Tree {
    /// Finds everything from a root. If `switched`, paths end at the first rank they meet.
    pub(super) fn grow(&mut self, network: &Network, root: VertexId, switched: bool) {
        let vertices = network.vertices().len();
        for (list, value) in [(&mut self.level, FAR), (&mut self.by, NO_EDGE)] {
            list.clear();
            list.resize(vertices, value);
        }
        self.width.clear();
        self.width.resize(vertices, 0);
        self.switched = switched;
        self.level[root as usize] = 0;
        self.width[root as usize] = u64::MAX;
        self.order.clear();
        self.order.push(root);
        let mut at = 0;
        while let Some(&vertex) = self.order.get(at) {
            at += 1;
            if !self.may_pass(network, vertex) {
                continue;
            }
            // By now all edges from the level before have been looked at: the width is final.
            for &id in network.out_edges(vertex) {
                let edge = network.edge(id);
                let (to, level) = (edge.to as usize, self.level[vertex as usize] + 1);
                if self.level[to] == FAR {
                    self.level[to] = level;
                    self.order.push(edge.to);
                } else if self.level[to] != level {
                    continue;
                }
                let width = self.width[vertex as usize].min(edge.bytes_per_second);
                let better = (Reverse(width), stride(network, id), id);
                if better < self.reached(network, to) {
                    self.width[to] = width;
                    self.by[to] = id;
                }
            }
        }
    }

    /// How a vertex is reached so far, as something to compare: widest first, then by stride.
    fn reached(&self, network: &Network, vertex: usize) -> (Reverse<u64>, (u32, bool), EdgeId) {
        match self.by[vertex] {
            NO_EDGE => (Reverse(0), (u32::MAX, true), NO_EDGE),
            by => (Reverse(self.width[vertex]), stride(network, by), by),
        }
    }

    /// Whether paths go on from a vertex.
    pub(super) fn may_pass(&self, network: &Network, vertex: VertexId) -> bool {
        !self.switched || self.level[vertex as usize] == 0 || network.rank_of(vertex).is_none()
    }

    pub(super) fn reaches(&self, vertex: VertexId) -> bool {
        self.level[vertex as usize] != FAR
    }

    /// The edges from the root to a vertex.
    pub(super) fn path(&self, network: &Network, to: VertexId) -> Option<Vec<EdgeId>> {
        let mut at = to;
        let mut path = Vec::with_capacity(self.level[to as usize].min(64) as usize);
        while self.level[at as usize] > 0 {
            let by = self.by[at as usize];
            if by == NO_EDGE {
                return None;
            }
            path.push(by);
            at = network.edge(by).from;
        }
        path.reverse();
        Some(path)
    }
}

/// How far apart in numbers the ends of an edge are, around the end, and whether it goes down. On a
/// torus numbered row by row all edges of a row are closer than those of a column, so paths go
/// column first, then row, whoever asks: no link is crowded only because its ends have small numbers.
fn stride(network: &Network, edge: EdgeId) -> (u32, bool) {
    let edge = network.edge(edge);
    let apart = edge.from.abs_diff(edge.to);
    let around = network.vertices().len() as u32 - apart;
    (apart.min(around), (edge.to > edge.from) == (around < apart))
}
