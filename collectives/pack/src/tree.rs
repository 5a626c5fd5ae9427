//! What a packing of trees is.

use unisono_network::{EdgeId, Rational};

/// Which way a tree's bytes flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// From the root to every rank, copied at each.
    Out,
    /// From every rank to the root, reduced at each.
    In,
}

/// A spanning tree over all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Where an out-tree begins and an in-tree ends.
    pub root: u32,
    /// Its share: of all bytes that the packing moves, this weight over the sum of weights.
    pub weight: u64,
    /// For each rank the next one on the way to the root; for the root itself, the root.
    pub parents: Vec<u32>,
    /// For each rank the edges between it and its parent, in the order in which bytes pass: from
    /// the parent in an out-tree, to the parent in an in-tree. All vertices between are switches.
    /// Empty for the root.
    pub paths: Vec<Vec<EdgeId>>,
}

impl Tree {
    /// The most hops between ranks from the root to any rank; `None` if some rank's parents do not
    /// lead to the root.
    pub fn depth(&self) -> Option<u32> {
        let mut deepest = 0;
        for rank in 0..self.parents.len() {
            let mut hops = 0;
            let mut at = rank;
            while at != self.root as usize {
                at = *self.parents.get(at)? as usize;
                hops += 1;
                if hops as usize > self.parents.len() {
                    return None;
                }
            }
            deepest = deepest.max(hops);
        }
        Some(deepest)
    }
}

/// Spanning trees that share the network's links: all of them flow at once, each at its weight
/// times [`unit`](Self::unit), and no link carries more than it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Which way the bytes flow.
    pub way: Way,
    /// The trees, by root.
    pub trees: Vec<Tree>,
    /// The rate of weight 1, in bytes a second.
    pub unit: Rational,
}

impl Packing {
    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.trees.iter().map(|tree| tree.weight).sum()
    }

    /// What all trees together move, in bytes a second: the algorithm bandwidth.
    pub fn bytes_per_second(&self) -> Rational {
        self.unit * i128::from(self.total())
    }

    /// The sum of the weights of the trees of each root.
    pub fn root_weights(&self) -> Vec<u64> {
        let ranks = self.trees.first().map_or(0, |tree| tree.parents.len());
        let mut weights = vec![0; ranks];
        for tree in &self.trees {
            weights[tree.root as usize] += tree.weight;
        }
        weights
    }

    /// The most hops from any root to any rank.
    pub fn depth(&self) -> u32 {
        let depths = self.trees.iter().filter_map(Tree::depth);
        depths.max().unwrap_or(0)
    }
}

/// Trees for all_reduce: a share is reduced along an in-tree to its root, and from there
/// distributed along an out-tree. Both flow at once, pipelined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairPacking {
    /// The pairs.
    pub pairs: Vec<Pair>,
    /// The rate of weight 1, in bytes a second.
    pub unit: Rational,
}

/// An in-tree and an out-tree of the same root and weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Along which the share is reduced.
    pub reduce: Tree,
    /// Along which the result is distributed.
    pub distribute: Tree,
}

impl PairPacking {
    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.pairs.iter().map(|pair| pair.reduce.weight).sum()
    }

    /// What all pairs together move, in bytes a second: the algorithm bandwidth.
    pub fn bytes_per_second(&self) -> Rational {
        self.unit * i128::from(self.total())
    }
}
