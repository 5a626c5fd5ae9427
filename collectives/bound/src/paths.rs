//! Shortest paths under lengths that a program has given to arcs, and what they use.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::problem::Problem;

/// Dijkstra's search on a problem's arcs, with everything that it needs kept.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    ranks: u32,
    /// For each vertex, where its outgoing arcs begin; one more at the end. Arcs are in that order.
    starts: Vec<u32>,
    heads: Vec<u32>,
    tails: Vec<u32>,
    distance: Vec<u64>,
    by: Vec<u32>,
    order: Vec<u32>,
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    below: Vec<u32>,
}

/// Longer than any path.
const FAR: u64 = u64::MAX;

impl Paths {
    pub(crate) fn new(problem: &Problem) -> Self {
        let vertices = problem.vertices as usize;
        let mut starts = vec![0; vertices + 1];
        for arc in &problem.arcs {
            starts[arc.from as usize + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        Self {
            ranks: problem.ranks,
            starts,
            heads: problem.arcs.iter().map(|arc| arc.to).collect(),
            tails: problem.arcs.iter().map(|arc| arc.from).collect(),
            distance: vec![FAR; vertices],
            by: vec![u32::MAX; vertices],
            order: Vec::with_capacity(vertices),
            waiting: BinaryHeap::new(),
            below: vec![0; vertices],
        }
    }

    /// Finds the shortest paths from a vertex, by the length of each arc. Gives the distances to all
    /// ranks together. Lengths must be so small that no path's length overflows.
    pub(crate) fn from(&mut self, start: u32, length: impl Fn(u32) -> u64) -> u128 {
        self.distance.fill(FAR);
        self.order.clear();
        self.distance[start as usize] = 0;
        self.by[start as usize] = u32::MAX;
        self.waiting.push(Reverse((0, start)));
        while let Some(Reverse((distance, vertex))) = self.waiting.pop() {
            if distance > self.distance[vertex as usize] {
                continue;
            }
            self.order.push(vertex);
            for arc in self.starts[vertex as usize]..self.starts[vertex as usize + 1] {
                let head = self.heads[arc as usize] as usize;
                let next = distance.saturating_add(length(arc));
                if next < self.distance[head] {
                    self.distance[head] = next;
                    self.by[head] = arc;
                    self.waiting.push(Reverse((next, head as u32)));
                }
            }
        }
        let ranks = &self.distance[..self.ranks as usize];
        ranks.iter().map(|distance| u128::from(*distance)).sum()
    }

    /// The vertices reached, the nearest first.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    /// For each arc of the tree just found, how many ranks lie behind it.
    pub(crate) fn uses(&mut self, mut see: impl FnMut(u32, u32)) {
        for vertex in 0..self.below.len() {
            self.below[vertex] = u32::from(vertex < self.ranks as usize);
        }
        for &vertex in self.order.iter().rev() {
            let arc = self.by[vertex as usize];
            let below = self.below[vertex as usize];
            if arc != u32::MAX && below > 0 {
                see(arc, below);
                self.below[self.tails[arc as usize] as usize] += below;
            }
        }
    }
}
