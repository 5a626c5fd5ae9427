//! Arcs by their heads, in one array, with the class of each.

use crate::collapse::Collapse;
use crate::problem::Problem;

/// The arcs that enter each vertex. *Places* are positions in this order.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    starts: Vec<u32>,
    pub(super) tails: Vec<u32>,
    pub(super) classes: Vec<u32>,
    /// For each arc of the problem, its place.
    pub(super) places: Vec<u32>,
}

impl Incoming {
    pub(super) fn new(problem: &Problem, collapse: &Collapse) -> Self {
        let mut starts = vec![0; problem.vertices as usize + 1];
        for arc in &problem.arcs {
            starts[arc.to as usize + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        let mut next = starts.clone();
        let mut incoming = Self {
            starts,
            tails: vec![0; problem.arcs.len()],
            classes: vec![0; problem.arcs.len()],
            places: vec![0; problem.arcs.len()],
        };
        for (id, arc) in (0..).zip(&problem.arcs) {
            let place = next[arc.to as usize];
            next[arc.to as usize] += 1;
            incoming.tails[place as usize] = arc.from;
            incoming.classes[place as usize] = collapse.arcs.of(id);
            incoming.places[id as usize] = place;
        }
        incoming
    }

    /// The places of the arcs that enter a vertex.
    pub(super) fn of(&self, vertex: u32) -> std::ops::Range<usize> {
        let vertex = vertex as usize;
        self.starts[vertex] as usize..self.starts[vertex + 1] as usize
    }
}
