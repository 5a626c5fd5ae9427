//! Loads evened out: ranks move to other parents until no link is fuller than it must be.
//!
//! A step from a parent to a child over the fullest link is led from another rank of the same tree
//! instead, over the way whose fullest link is the least full, if that is less full than the link
//! was. Each move makes a full link emptier and none as full, so that it ends; shallow trees stay
//! shallow, since among ways that are empty enough the parent closest to the root is taken.

use std::collections::BinaryHeap;

use unisono_network::{EdgeId, Network, Rational, VertexId, to_f64};

use crate::nearest::Entry;
use crate::tree::Tree;

/// Edges that all searches may look at, about a second: a count, so that every host ends alike.
const MOST_LOOKS: usize = 100_000_000;

/// A link is full beyond this part of what it carries at the bound.
const FULL: f64 = 1.001;

/// Evens out trees of weight 1 as far as all together flow as fast as the bound, in bytes a second.
/// Capacities that edges share are not looked at.
pub(super) fn even_out(network: &Network, trees: &mut [Tree], bound: Rational) {
    let full = FULL * trees.len() as f64 / to_f64(bound);
    let mut loads = Loads::new(network, trees, full);
    // The fullest first; entries that are not true any more are passed over.
    let mut overfull: BinaryHeap<Fullness> = (0..network.edges().len() as EdgeId)
        .filter(|&edge| loads.ratio(edge) > full)
        .map(|edge| Fullness(loads.ratio(edge), edge))
        .collect();
    while let Some(Fullness(ratio, edge)) = overfull.pop() {
        if ratio > loads.ratio(edge) {
            continue;
        }
        let mut uses = std::mem::take(&mut loads.uses[edge as usize]);
        let mut kept = Vec::new();
        while let Some((number, rank)) = uses.pop() {
            if loads.ratio(edge) <= full || loads.looks > MOST_LOOKS {
                kept.push((number, rank));
                break;
            }
            let tree = &mut trees[number as usize];
            if !tree.paths[rank as usize].contains(&edge) {
                continue;
            }
            match loads.relieve(tree, number, rank, ratio) {
                true => {
                    let path = tree.paths[rank as usize].iter();
                    let over = path.filter(|&&edge| loads.ratio(edge) > full);
                    overfull.extend(over.map(|&edge| Fullness(loads.ratio(edge), edge)));
                }
                false => kept.push((number, rank)),
            }
        }
        uses.append(&mut kept);
        loads.uses[edge as usize].append(&mut uses);
        if loads.looks > MOST_LOOKS {
            return;
        }
    }
}

/// How full a link is; the fullest is the greatest.
#[derive(PartialEq)]
struct Fullness(f64, EdgeId);

impl Eq for Fullness {}

impl Ord for Fullness {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let fuller = self.0.total_cmp(&other.0);
        fuller.then_with(|| other.1.cmp(&self.1))
    }
}

impl PartialOrd for Fullness {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

struct Loads<'n> {
    network: &'n Network,
    /// Trees over each edge.
    loads: Vec<u64>,
    /// For each edge the trees and children whose steps lead over it, and maybe some that did.
    uses: Vec<Vec<(u32, u32)>>,
    /// How full a link may be: seconds for each unit of weight.
    full: f64,
    /// For each vertex how full the way from it to the child would be, and its first edge.
    best: Vec<(f64, EdgeId)>,
    looks: usize,
}

impl<'n> Loads<'n> {
    fn new(network: &'n Network, trees: &[Tree], full: f64) -> Self {
        let edges = network.edges().len();
        let mut loads = vec![0; edges];
        let mut uses = vec![Vec::new(); edges];
        for (number, tree) in (0u32..).zip(trees) {
            for (rank, path) in (0u32..).zip(&tree.paths) {
                for &edge in path {
                    loads[edge as usize] += 1;
                    uses[edge as usize].push((number, rank));
                }
            }
        }
        Self {
            network,
            loads,
            uses,
            full,
            best: vec![(f64::INFINITY, EdgeId::MAX); network.vertices().len()],
            looks: 0,
        }
    }

    fn ratio(&self, edge: EdgeId) -> f64 {
        self.with(edge, 0)
    }

    /// How full an edge is with so much more.
    fn with(&self, edge: EdgeId, more: u64) -> f64 {
        (self.loads[edge as usize] + more) as f64 / self.network.edge(edge).bytes_per_second as f64
    }

    /// Leads a rank's data from another parent, if all links on the way stay less full than `ratio`.
    fn relieve(&mut self, tree: &mut Tree, number: u32, rank: u32, ratio: f64) -> bool {
        for &edge in &tree.paths[rank as usize] {
            self.loads[edge as usize] -= 1;
        }
        let found = self.search(tree, rank).filter(|(after, _)| *after < ratio);
        if let Some((_, parent)) = found {
            let path = self.path(parent, rank);
            for &edge in &path {
                self.uses[edge as usize].push((number, rank));
            }
            tree.parents[rank as usize] = parent;
            tree.paths[rank as usize] = path;
        }
        for &edge in &tree.paths[rank as usize] {
            self.loads[edge as usize] += 1;
        }
        found.is_some()
    }

    /// The best parent for a rank, and how full the way from there would be: of those whose ways are
    /// empty enough the one closest to the root, else the one with the emptiest way.
    fn search(&mut self, tree: &Tree, rank: u32) -> Option<(f64, u32)> {
        self.best.fill((f64::INFINITY, EdgeId::MAX));
        self.best[rank as usize].0 = 0.0;
        let mut heap = BinaryHeap::from([Entry(0.0, rank)]);
        let mut parent: Option<(f64, u32, f64, u32)> = None;
        while let Some(Entry(ratio, at)) = heap.pop() {
            if ratio > self.best[at as usize].0 {
                continue;
            }
            if at != rank && self.network.rank_of(at).is_some() {
                if let Some(depth) = depth_without(tree, at, rank) {
                    let new = (ratio.max(self.full), depth, ratio, at);
                    let better = |old: &(f64, u32, f64, u32)| {
                        let by_ratio = new.0.total_cmp(&old.0).then(new.1.cmp(&old.1));
                        by_ratio.then(new.2.total_cmp(&old.2)).is_lt()
                    };
                    if parent.as_ref().is_none_or(better) {
                        parent = Some(new);
                    }
                }
                continue;
            }
            for &edge in self.network.in_edges(at) {
                self.looks += 1;
                let from = self.network.edge(edge).from;
                let next = ratio.max(self.with(edge, 1));
                if next < self.best[from as usize].0 {
                    self.best[from as usize] = (next, edge);
                    heap.push(Entry(next, from));
                }
            }
        }
        parent.map(|(_, _, ratio, at)| (ratio, at))
    }

    /// The way from a parent that the last search found.
    fn path(&self, parent: u32, rank: u32) -> Vec<EdgeId> {
        let mut path = Vec::new();
        let mut at: VertexId = parent;
        while at != rank {
            let edge = self.best[at as usize].1;
            path.push(edge);
            at = self.network.edge(edge).to;
        }
        path
    }
}

/// How deep a rank is in a tree; none if it is below another one.
fn depth_without(tree: &Tree, mut at: u32, above: u32) -> Option<u32> {
    let mut depth = 0;
    while at != tree.root {
        if at == above {
            return None;
        }
        at = tree.parents[at as usize];
        depth += 1;
    }
    Some(depth)
}
