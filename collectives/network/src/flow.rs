//! Maximum flow on integer capacities, made for many flows on one network.
//!
//! Bounds ask for one flow to each rank, from sources that grow or shrink only a little between
//! two questions. So a [`Flow`] keeps what flows already, has *supplies* at vertices in the place of one
//! source, and searches from the sink backward: with supplies close by, a question costs what is
//! close by, however large the network.
//!
//! The algorithm is Dinic's: shortest augmenting paths, all of one length at a time.

mod capacity;
mod search;

pub use capacity::Capacity;

use crate::{EdgeId, Network, VertexId};

/// What flows in a network, and what still could.
///
/// Edges between the same two vertices are one arc here, and the two directions of a pair of
/// vertices are each other's way back: a flow one way can always be taken back.
#[derive(Clone, Debug)]
pub struct Flow<C> {
    /// For each vertex, where its outgoing arcs begin; one more at the end.
    starts: Vec<u32>,
    heads: Vec<VertexId>,
    /// For each arc, the one back.
    mates: Vec<u32>,
    /// What each arc can still carry, what comes back taken as more room.
    residual: Vec<C>,
    capacity: Vec<C>,
    /// What may still enter at each vertex.
    supply: Vec<C>,
    search: search::Search<C>,
    journal: Option<Journal<C>>,
}

/// What was before, for each change since the journal began.
#[derive(Clone, Debug, Default)]
struct Journal<C> {
    arcs: Vec<(u32, C)>,
    supplies: Vec<(VertexId, C)>,
}

impl<C: Capacity> Flow<C> {
    /// No flow, no supply; arcs by tail, head and capacity. Those of capacity zero, and loops, are
    /// as if they were not there; parallel ones add up.
    ///
    /// # Panics
    /// If an end is not below `vertices`.
    pub fn new(vertices: u32, arcs: impl IntoIterator<Item = (VertexId, VertexId, C)>) -> Self {
        let mut both: Vec<(VertexId, VertexId, C)> = Vec::new();
        for (tail, head, capacity) in arcs {
            if tail != head && capacity > C::ZERO {
                both.extend([(tail, head, capacity), (head, tail, C::ZERO)]);
            }
        }
        both.sort_unstable();
        both.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        let mut starts = vec![0; vertices as usize + 1];
        for &(tail, ..) in &both {
            starts[tail as usize + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        // The arcs into a vertex, by tail, are the ways back of those out of it, by head.
        let mut next: Vec<u32> = starts.clone();
        let mates = both
            .iter()
            .map(|&(_, head, _)| {
                let mate = next[head as usize];
                next[head as usize] += 1;
                mate
            })
            .collect();
        let capacity: Vec<C> = both.iter().map(|arc| arc.2).collect();
        Self {
            starts,
            heads: both.iter().map(|arc| arc.1).collect(),
            mates,
            residual: capacity.clone(),
            capacity,
            supply: vec![C::ZERO; vertices as usize],
            search: search::Search::new(vertices as usize),
            journal: None,
        }
    }

    /// The arcs of a network, each edge's capacity as a function gives it.
    pub fn of(network: &Network, capacity: impl Fn(EdgeId) -> C) -> Self {
        let vertices = network.vertices().len() as u32;
        let edges = (0..).zip(network.edges());
        Self::new(
            vertices,
            edges.map(|(id, edge)| (edge.from, edge.to, capacity(id))),
        )
    }

    /// Lets so much more enter at a vertex than has until now; [`Capacity::UNLIMITED`] for any
    /// amount.
    pub fn set_supply(&mut self, vertex: VertexId, amount: C) {
        if let Some(journal) = &mut self.journal {
            let before = self.supply[vertex as usize];
            journal.supplies.push((vertex, before));
        }
        self.supply[vertex as usize] = amount;
    }

    /// What may still enter at a vertex.
    pub fn supply(&self, vertex: VertexId) -> C {
        self.supply[vertex as usize]
    }

    /// Takes everything back: no flow. Supplies stay as they are.
    pub fn clear(&mut self) {
        self.residual.clone_from(&self.capacity);
        self.journal = None;
    }

    /// Remembers from here on what changes, for [`undo`](Self::undo).
    pub fn mark(&mut self) {
        let journal = self.journal.get_or_insert_default();
        journal.arcs.clear();
        journal.supplies.clear();
    }

    /// Takes back what has changed since the last [`mark`](Self::mark), and marks here again.
    pub fn undo(&mut self) {
        if let Some(journal) = &mut self.journal {
            for (arc, before) in journal.arcs.drain(..).rev() {
                self.residual[arc as usize] = before;
            }
            for (vertex, before) in journal.supplies.drain(..).rev() {
                self.supply[vertex as usize] = before;
            }
        }
    }

    /// Sends up to `wanted` more from supplies to a vertex, beside what flows already and by
    /// turning it elsewhere where that helps. Gives how much: less than wanted only if no more can
    /// be sent, and then [`reaches`](Self::reaches) shows why.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn send(&mut self, sink: VertexId, wanted: C) -> C {
        let mut sent = C::ZERO;
        while sent < wanted && self.find_levels(sink) {
            sent += self.fill_levels(sink, wanted - sent);
        }
        sent
    }

    /// Whether more could flow from a vertex to the sink, after a [`send`](Self::send) that found
    /// less than wanted. These vertices are the sink's side of a smallest cut: no other side of a
    /// smallest cut is smaller.
    pub fn reaches(&self, vertex: VertexId) -> bool {
        self.search.reaches(vertex)
    }

    /// The vertices for which [`reaches`](Self::reaches) holds, the sink first.
    pub fn sink_side(&self) -> &[VertexId] {
        self.search.seen()
    }

    fn arcs(&self, vertex: VertexId) -> std::ops::Range<usize> {
        let vertex = vertex as usize;
        self.starts[vertex] as usize..self.starts[vertex + 1] as usize
    }
}

#[cfg(test)]
mod tests;
