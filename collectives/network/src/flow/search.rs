//! The two searches of Dinic's algorithm, both from the sink.

use super::{Capacity, Flow};
use crate::VertexId;

const UNSEEN: u32 = u32::MAX;

/// What a search knows, kept between searches so that none of them allocates.
#[derive(Clone, Debug)]
pub(super) struct Search<C> {
    /// How far each vertex is from the sink, `UNSEEN` if nobody looked.
    level: Vec<u32>,
    /// The vertices seen, in the order of their levels.
    seen: Vec<VertexId>,
    /// For each vertex seen, the arc to look at next.
    next: Vec<u32>,
    /// The way from the sink to where the search stands: arcs, and what all of them can carry.
    path: Vec<(u32, C)>,
}

impl<C> Search<C> {
    pub(super) fn new(vertices: usize) -> Self {
        Self {
            level: vec![UNSEEN; vertices],
            seen: Vec::new(),
            next: vec![0; vertices],
            path: Vec::new(),
        }
    }

    pub(super) fn reaches(&self, vertex: VertexId) -> bool {
        self.level[vertex as usize] != UNSEEN
    }

    pub(super) fn seen(&self) -> &[VertexId] {
        &self.seen
    }
}

impl<C: Capacity> Flow<C> {
    /// Finds how far vertices are from the sink, up to the first that has a supply and all that are
    /// as far as that one. False if none has.
    pub(super) fn find_levels(&mut self, sink: VertexId) -> bool {
        for vertex in self.search.seen.drain(..) {
            self.search.level[vertex as usize] = UNSEEN;
        }
        self.see(sink, 0);
        let mut last = if self.supply[sink as usize] > C::ZERO {
            0
        } else {
            UNSEEN
        };
        let mut at = 0;
        while let Some(&vertex) = self.search.seen.get(at) {
            at += 1;
            let level = self.search.level[vertex as usize];
            if level >= last {
                break;
            }
            for arc in self.arcs(vertex) {
                let tail = self.heads[arc];
                let seen = self.search.level[tail as usize] != UNSEEN;
                if seen || self.residual[self.mates[arc] as usize] == C::ZERO {
                    continue;
                }
                self.see(tail, level + 1);
                if self.supply[tail as usize] > C::ZERO {
                    last = level + 1;
                }
            }
        }
        last != UNSEEN
    }

    fn see(&mut self, vertex: VertexId, level: u32) {
        self.search.level[vertex as usize] = level;
        self.search.next[vertex as usize] = self.starts[vertex as usize];
        self.search.seen.push(vertex);
    }

    /// Sends up to `wanted` along ways on which each arc leads one level down, until there is none.
    pub(super) fn fill_levels(&mut self, sink: VertexId, wanted: C) -> C {
        let mut sent = C::ZERO;
        let mut path = std::mem::take(&mut self.search.path);
        path.clear();
        let mut at = sink;
        while sent < wanted {
            let room = path
                .last()
                .map_or(wanted - sent, |&(_, room)| room.min(wanted - sent));
            if self.supply[at as usize] > C::ZERO {
                let amount = room.min(self.supply[at as usize]);
                self.carry(at, &path, amount);
                sent += amount;
                // Back to before the first arc that is full now, or where the supply has run out.
                let full = path
                    .iter()
                    .position(|&(arc, _)| self.residual[arc as usize] == C::ZERO);
                let keep = full.unwrap_or(path.len());
                if let Some(&(arc, _)) = path.get(keep) {
                    at = self.heads[arc as usize];
                }
                path.truncate(keep);
                for (_, room) in &mut path {
                    *room -= amount;
                }
                continue;
            }
            let level = self.search.level[at as usize];
            let end = self.starts[at as usize + 1];
            let mut next = self.search.next[at as usize];
            let found = loop {
                if next == end {
                    break None;
                }
                let arc = self.mates[next as usize];
                let tail = self.heads[next as usize];
                if self.residual[arc as usize] > C::ZERO
                    && self.search.level[tail as usize] == level + 1
                {
                    break Some((arc, tail));
                }
                next += 1;
            };
            self.search.next[at as usize] = next;
            if let Some((arc, tail)) = found {
                path.push((arc, room.min(self.residual[arc as usize])));
                at = tail;
            } else {
                // Nothing comes from here: step back and do not look again.
                let Some((arc, _)) = path.pop() else { break };
                at = self.heads[arc as usize];
                self.search.next[at as usize] += 1;
            }
        }
        self.search.path = path;
        sent
    }

    /// Sends an amount from a vertex with a supply along a path of arcs, each ending where the one
    /// before it begins.
    fn carry(&mut self, from: VertexId, path: &[(u32, C)], amount: C) {
        let supply = self.supply[from as usize];
        if supply != C::UNLIMITED {
            if let Some(journal) = &mut self.journal {
                journal.supplies.push((from, supply));
            }
            self.supply[from as usize] = supply - amount;
        }
        for &(arc, _) in path {
            let (arc, mate) = (arc as usize, self.mates[arc as usize] as usize);
            if let Some(journal) = &mut self.journal {
                journal.arcs.push((arc as u32, self.residual[arc]));
                journal.arcs.push((mate as u32, self.residual[mate]));
            }
            self.residual[arc] -= amount;
            self.residual[mate] += amount;
        }
    }
}
