//! The search for automorphisms, and what they join.

use super::refine::Cells;
use super::{Merging, Symmetry};
use crate::VertexId;

/// How many arcs may be looked at in all: some tenths of a second.
const WORK: u64 = 30_000_000;

/// How many attempts at one class may fail before the rest of it is given up.
const FAILURES: u32 = 6;

/// Arcs both ways, with labels made ready for sums.
pub(super) struct Graph {
    pub(super) count: u32,
    out: Adjacent,
    into: Adjacent,
}

struct Adjacent {
    starts: Vec<u32>,
    /// The other end and the label.
    ends: Vec<(u32, u64)>,
    /// The arc, as given.
    arcs: Vec<u32>,
}

impl Graph {
    fn new(count: u32, arcs: &[(VertexId, VertexId, u64)]) -> Self {
        Self {
            count,
            out: Adjacent::new(
                count,
                arcs.iter().map(|&(from, to, label)| (from, to, label)),
            ),
            into: Adjacent::new(
                count,
                arcs.iter().map(|&(from, to, label)| (to, from, label)),
            ),
        }
    }

    /// The vertex of the first copy, and what to add to come back to this one.
    pub(super) fn base(&self, vertex: u32) -> (u32, u32) {
        if vertex < self.count {
            (vertex, 0)
        } else {
            (vertex - self.count, self.count)
        }
    }

    pub(super) fn arcs(&self, vertex: u32, forward: bool) -> &[(u32, u64)] {
        let adjacent = if forward { &self.out } else { &self.into };
        &adjacent.ends[adjacent.range(vertex)]
    }

    /// The arc between two vertices, and its label.
    fn arc(&self, from: u32, to: u32) -> Option<(u32, u64)> {
        let range = self.out.range(from);
        let place = self.out.ends[range.clone()]
            .binary_search_by_key(&to, |end| end.0)
            .ok()?;
        let place = range.start + place;
        Some((self.out.arcs[place], self.out.ends[place].1))
    }
}

impl Adjacent {
    fn new(count: u32, arcs: impl Iterator<Item = (u32, u32, u64)>) -> Self {
        let mut all: Vec<_> = (0u32..)
            .zip(arcs)
            .map(|(id, (at, end, label))| (at, end, mixed(label), id))
            .collect();
        all.sort_unstable();
        let mut starts = vec![0; count as usize + 1];
        for arc in &all {
            starts[arc.0 as usize + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        Self {
            starts,
            ends: all.iter().map(|arc| (arc.1, arc.2)).collect(),
            arcs: all.iter().map(|arc| arc.3).collect(),
        }
    }

    fn range(&self, vertex: u32) -> std::ops::Range<usize> {
        let vertex = vertex as usize;
        self.starts[vertex] as usize..self.starts[vertex + 1] as usize
    }
}

/// Spreads labels over all bits, so that sums of different labels hardly ever agree. Where they do,
/// a renumbering that is none is proposed, and refused by the check.
fn mixed(label: u64) -> u64 {
    let mut bits = label.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) | 1
}

/// Finds the classes.
pub(super) fn find(colours: &[u64], arcs: &[(VertexId, VertexId, u64)]) -> Symmetry {
    let graph = Graph::new(colours.len() as u32, arcs);
    let mut cells = Cells::new(colours);
    let all = cells.starts();
    cells.refine(&graph, all);
    let mut finder = Finder {
        budget: WORK.saturating_sub(cells.work),
        vertices: Merging::new(colours.len()),
        arcs: Merging::new(arcs.len()),
        graph: &graph,
    };
    finder.join_vertices(&cells);
    finder.join_arcs(&cells);
    Symmetry {
        vertices: finder.vertices.classes(),
        arcs: finder.arcs.classes(),
    }
}

struct Finder<'a> {
    graph: &'a Graph,
    budget: u64,
    vertices: Merging,
    arcs: Merging,
}

impl Finder<'_> {
    /// Tries to take the first vertex of each cell to each other one.
    fn join_vertices(&mut self, cells: &Cells) {
        for start in cells.starts() {
            let members: Vec<u32> = self.first_copies(cells, start);
            let mut failures = 0;
            for &member in members.iter().skip(1) {
                let known = self.vertices.top(member) == self.vertices.top(members[0]);
                if known || failures == FAILURES {
                    continue;
                }
                if !self.attempt(cells.clone(), &[(members[0], member)]) {
                    failures += 1;
                }
            }
        }
    }

    /// Tries to turn the arcs around one vertex of each class into each other.
    fn join_arcs(&mut self, cells: &Cells) {
        for vertex in 0..self.graph.count {
            if self.vertices.top(vertex) != vertex {
                continue;
            }
            // Cells with this vertex singled out: arcs to vertices of one cell look alike.
            let mut around = cells.clone();
            let waiting = around.single_out(vertex, vertex + self.graph.count);
            if self.budget == 0 || !around.refine(self.graph, waiting) {
                continue;
            }
            self.budget = self.budget.saturating_sub(around.work - cells.work);
            for forward in [true, false] {
                let mut ends: Vec<u32> = self
                    .graph
                    .arcs(vertex, forward)
                    .iter()
                    .map(|end| end.0)
                    .collect();
                ends.sort_by_key(|end| (around.cell_of(*end), *end));
                for of_cell in
                    ends.chunk_by(|one, other| around.cell_of(*one) == around.cell_of(*other))
                {
                    self.join_arcs_to(&around, vertex, of_cell, forward);
                }
            }
        }
    }

    fn join_arcs_to(&mut self, around: &Cells, vertex: u32, ends: &[u32], forward: bool) {
        let arc = |end: u32| {
            let (from, to) = if forward {
                (vertex, end)
            } else {
                (end, vertex)
            };
            self.graph.arc(from, to).map(|(arc, _)| arc)
        };
        let arcs: Vec<u32> = ends.iter().filter_map(|end| arc(*end)).collect();
        let mut failures = 0;
        for place in 1..arcs.len().min(ends.len()) {
            let known = self.arcs.top(arcs[0]) == self.arcs.top(arcs[place]);
            if known || failures == FAILURES {
                continue;
            }
            if !self.attempt(around.clone(), &[(ends[0], ends[place])]) {
                failures += 1;
            }
        }
    }

    /// Looks for an automorphism that takes some vertices to others, and joins what it takes to
    /// each other.
    fn attempt(&mut self, mut cells: Cells, pairs: &[(u32, u32)]) -> bool {
        let before = cells.work;
        let found = self.complete(&mut cells, pairs);
        self.budget = self.budget.saturating_sub(cells.work - before);
        let Some(image) = found.filter(|image| self.is_automorphism(image)) else {
            return false;
        };
        for (vertex, &to) in (0..).zip(&image) {
            self.vertices.join(vertex, to);
            for place in self.graph.out.range(vertex) {
                let head = self.graph.out.ends[place].0;
                if let Some((arc, _)) = self.graph.arc(to, image[head as usize]) {
                    self.arcs.join(self.graph.out.arcs[place], arc);
                }
            }
        }
        self.budget = self.budget.saturating_sub(self.graph.out.arcs.len() as u64);
        true
    }

    /// Singles out pairs until each vertex has one partner, going on as the first pair began: by the
    /// same distance in numbers where the cell allows it, which makes long cycles and so few attempts.
    fn complete(&self, cells: &mut Cells, pairs: &[(u32, u32)]) -> Option<Vec<u32>> {
        let count = self.graph.count;
        let before = cells.work;
        let mut step = 0;
        for &(from, to) in pairs {
            if cells.cell_of(from) != cells.cell_of(to + count) {
                return None;
            }
            let waiting = cells.single_out(from, to + count);
            if !cells.refine(self.graph, waiting) {
                return None;
            }
            step = to + count - from;
        }
        for vertex in 0..count {
            let members = cells.members(cells.cell_of(vertex));
            if members.len() == 2 {
                continue;
            }
            if cells.work - before > self.budget {
                return None;
            }
            let there = |partner: &u32| cells.cell_of(*partner) == cells.cell_of(vertex);
            let first = members
                .iter()
                .copied()
                .filter(|member| *member >= count)
                .min();
            let partner = [(vertex + step) % count + count, vertex + count]
                .into_iter()
                .find(there);
            let waiting = {
                let partner = partner.or(first)?;
                cells.single_out(vertex, partner)
            };
            if !cells.refine(self.graph, waiting) {
                return None;
            }
        }
        let partner = |vertex: u32| {
            let members = cells.members(cells.cell_of(vertex));
            members
                .iter()
                .find(|member| **member >= count)
                .map(|member| member - count)
        };
        (0..count).map(partner).collect()
    }

    /// Whether every arc goes to an arc of the same label. As many arcs come out as go in, so none
    /// is left over; that no two vertices go to one follows from cells having one of each copy.
    fn is_automorphism(&self, image: &[u32]) -> bool {
        (0..self.graph.count).all(|vertex| {
            self.graph.arcs(vertex, true).iter().all(|&(head, label)| {
                let arc = self.graph.arc(image[vertex as usize], image[head as usize]);
                arc.is_some_and(|(_, there)| there == label)
            })
        })
    }

    /// The vertices of the first copy in a cell, in order.
    fn first_copies(&self, cells: &Cells, start: u32) -> Vec<u32> {
        let members = cells.members(start).iter().copied();
        let mut first: Vec<u32> = members
            .filter(|member| *member < self.graph.count)
            .collect();
        first.sort_unstable();
        first
    }
}
