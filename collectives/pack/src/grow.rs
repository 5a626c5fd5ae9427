//! Trees packed into a network of ranks alone.
//!
//! Edmonds showed that trees with given roots fit into a network exactly when enough flows from the
//! roots to each rank. So trees are grown one at a time, edge by edge, and an edge is taken only if
//! afterwards still enough flows for all trees that are yet to come. A tree has a weight: as many
//! equal trees are grown at once as the network allows, so that there are few of them (Bérczi and
//! Frank, "Packing arborescences", 2009).
//!
//! Edges near the root are tried first, and wide ones among them: trees are as shallow as
//! what is left allows.

use crate::flow::{Residual, UNBOUNDED};

/// A tree over ranks: for each rank its parent; the root's is the root.
#[derive(Clone, Debug)]
pub(crate) struct Grown {
    pub(crate) root: usize,
    pub(crate) weight: i64,
    pub(crate) parents: Vec<u32>,
}

/// Packs trees whose weights add up to `weights` for each root. `capacity` is a matrix of ranks;
/// what flows to each rank must be at least the sum of weights.
///
/// `None` if it is not, or if that takes more than [`MOST_WORK`].
pub(crate) fn grow(capacity: &[i64], weights: &[i64]) -> Option<Vec<Grown>> {
    let n = weights.len();
    let mut state = Grower {
        n,
        residual: Residual::new(n + 1),
        left: vec![0; n],
        outside: vec![0; (n + 1).div_ceil(64)],
    };
    for (root, &weight) in weights.iter().enumerate() {
        state.leave(root, weight);
    }
    for from in 0..n {
        for to in 0..n {
            if capacity[from * n + to] > 0 {
                state.residual.add(from, to, capacity[from * n + to]);
            }
        }
    }
    let mut trees = Vec::new();
    for root in 0..n {
        while state.left[root] > 0 {
            trees.push(state.tree(root)?);
        }
    }
    Some(trees)
}

/// Words that searches may look at, a few seconds: a count, so that every host gives up alike.
const MOST_WORK: u64 = 4_000_000_000;

struct Grower {
    n: usize,
    /// What trees have left; vertex `n` is the source of the flows of the tests.
    residual: Residual,
    /// For each root the weight of the trees that are still to be grown.
    left: Vec<i64>,
    /// The ranks that the present tree has not reached, as bits.
    outside: Vec<u64>,
}

impl Grower {
    /// One tree, of as much weight as can be. Takes its edges and its weight.
    fn tree(&mut self, root: usize) -> Option<Grown> {
        let n = self.n;
        let mut weight = self.left[root];
        self.leave(root, -weight);
        let mut parents = vec![u32::MAX; n];
        parents[root] = root as u32;
        let mut joined = vec![root];
        for to in (0..n).filter(|&to| to != root) {
            self.outside[to / 64] |= 1 << (to % 64);
        }
        // What each edge was found to allow at most: it only shrinks while the tree grows.
        let mut known = vec![i64::MAX; n * n];
        let mut used: Vec<(usize, usize)> = Vec::new();
        while joined.len() < n {
            let mut best: Option<(i64, usize, usize)> = None;
            'search: for &from in &joined {
                let mut exits: Vec<usize> = self.residual.open_to(from, &self.outside).collect();
                exits.sort_by_key(|&to| std::cmp::Reverse(self.residual.room(from, to)));
                for to in exits {
                    let bound = known[from * n + to];
                    if bound < weight && bound <= best.map_or(0, |(most, ..)| most) {
                        continue;
                    }
                    if self.residual.work() > MOST_WORK {
                        return None;
                    }
                    let allowed = self.allowed(from, to, weight);
                    known[from * n + to] = if allowed < weight { allowed } else { i64::MAX };
                    if allowed > best.map_or(0, |(most, ..)| most) {
                        best = Some((allowed, from, to));
                    }
                    if allowed >= weight {
                        break 'search;
                    }
                }
            }
            let (allowed, from, to) = best?;
            if allowed < weight {
                // The rest of the weight is for another tree: give back what it took.
                for &(from, to) in &used {
                    self.residual.add(from, to, weight - allowed);
                }
                self.leave(root, weight - allowed);
                weight = allowed;
            }
            self.residual.add(from, to, -weight);
            used.push((from, to));
            parents[to] = from as u32;
            self.outside[to / 64] &= !(1 << (to % 64));
            joined.push(to);
        }
        Some(Grown {
            root,
            weight,
            parents,
        })
    }

    /// Leaves more weight to be grown.
    fn leave(&mut self, root: usize, weight: i64) {
        self.left[root] += weight;
        self.residual.add(self.n, root, weight);
    }

    /// How much of a tree of this weight may take an edge, so that all that is left still fits.
    fn allowed(&mut self, from: usize, to: usize, weight: i64) -> i64 {
        let source = self.n;
        let others: i64 = self.left.iter().sum();
        let weight = weight.min(self.residual.room(from, to));
        self.residual.begin();
        self.residual.add(source, from, UNBOUNDED);
        let found = self.residual.augment(source, to, others + weight);
        self.residual.take_back();
        self.residual.add(source, from, -UNBOUNDED);
        (found - others).min(weight)
    }
}
