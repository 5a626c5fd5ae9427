//! A packing of spanning trees.

use std::sync::Arc;

use super::TemplateError;

/// A spanning tree: each rank's parent is one step closer to the root.
///
/// In an *out-tree* data goes from the root to the leaves, each rank sends to its children; in an
/// *in-tree* it goes from the leaves to the root and is reduced on the way, each rank sends to its
/// parent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tree {
    root: u32,
    weight: u64,
    parents: Arc<[u32]>,
}

impl Tree {
    /// A tree in which `parents[r]` is the parent of rank `r`, and the root its own. `weight` is
    /// the tree's share, relative to the other trees'; not zero.
    #[must_use]
    pub fn new(root: u32, weight: u64, parents: impl Into<Arc<[u32]>>) -> Self {
        Self {
            root,
            weight,
            parents: parents.into(),
        }
    }

    /// The rank at the root.
    #[must_use]
    pub fn root(&self) -> u32 {
        self.root
    }

    /// The tree's share, relative to the other trees'.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// The parent of each rank; the root is its own.
    #[must_use]
    pub fn parents(&self) -> &Arc<[u32]> {
        &self.parents
    }

    /// Hops from the root to the farthest rank, of a tree that was checked.
    pub(crate) fn depth(&self) -> u64 {
        let mut depth: Vec<Option<u64>> = vec![None; self.parents.len()];
        if let Some(root) = depth.get_mut(self.root as usize) {
            *root = Some(0);
        }
        let mut path = Vec::new();
        for rank in 0..self.parents.len() {
            let mut at = rank;
            while depth[at].is_none() {
                path.push(at);
                at = self.parents[at] as usize;
            }
            let mut here = depth[at].unwrap_or(0);
            while let Some(below) = path.pop() {
                here += 1;
                depth[below] = Some(here);
            }
        }
        depth.into_iter().flatten().max().unwrap_or(0)
    }

    /// Checks that every rank reaches the root.
    fn check(&self, index: usize, ranks: u32) -> Result<(), TemplateError> {
        let what = "tree";
        if self.parents.len() != ranks as usize {
            let rank = (self.parents.len() as u32).min(ranks);
            return Err(TemplateError::NotOnce { what, index, rank });
        }
        let named = self.parents.iter().chain([&self.root]);
        if let Some(&rank) = named.into_iter().find(|&&rank| rank >= ranks) {
            return Err(TemplateError::NoSuchRank {
                what,
                index,
                rank,
                ranks,
            });
        }
        let mut reaches = vec![false; ranks as usize];
        reaches[self.root as usize] = self.parents[self.root as usize] == self.root;
        let mut path = Vec::new();
        for rank in 0..ranks {
            let mut at = rank;
            while !reaches[at as usize] {
                path.push(at);
                at = self.parents[at as usize];
                if path.len() > ranks as usize {
                    return Err(TemplateError::Circle { index, rank });
                }
            }
            for at in path.drain(..) {
                reaches[at as usize] = true;
            }
        }
        Ok(())
    }
}

/// Trees that carry shares of a message side by side.
///
/// - all_gather: every rank is the root of out-trees, which share its block by their weights.
/// - broadcast: the root's out-trees share the message.
/// - reduce_scatter and reduce: the same with in-trees.
/// - all_reduce: for each root, what its in-trees bring its out-trees take away; both weights add
///   up to the same, and a root's share of the message is that sum.
///
/// In-trees are data of their own, since a link may be faster one way than the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Trees {
    ranks: u32,
    out_trees: Arc<[Tree]>,
    in_trees: Arc<[Tree]>,
}

impl Trees {
    /// Trees over `ranks` ranks. Either kind may be absent where no operation needs it.
    pub fn new(
        ranks: u32,
        out_trees: impl Into<Arc<[Tree]>>,
        in_trees: impl Into<Arc<[Tree]>>,
    ) -> Result<Self, TemplateError> {
        let (out_trees, in_trees) = (out_trees.into(), in_trees.into());
        if out_trees.is_empty() && in_trees.is_empty() {
            return Err(TemplateError::Empty { what: "tree" });
        }
        if ranks == 0 {
            return Err(TemplateError::Empty { what: "rank" });
        }
        for trees in [&out_trees, &in_trees] {
            check_weights("tree", trees.iter().map(Tree::weight))?;
            for (index, tree) in trees.iter().enumerate() {
                tree.check(index, ranks)?;
            }
            if trees.len() >= 1 << 31 {
                return Err(TemplateError::TooMany {
                    what: "trees",
                    count: trees.len(),
                });
            }
        }
        Ok(Self {
            ranks,
            out_trees,
            in_trees,
        })
    }

    /// Ranks that the trees span.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Whether the trees of every rank have the same sum of weights, so that ranks can have equal
    /// blocks.
    #[must_use]
    pub fn roots_are_alike(&self) -> bool {
        [&self.out_trees, &self.in_trees].into_iter().all(|trees| {
            let mut sums = vec![0; self.ranks as usize];
            for tree in trees.iter() {
                sums[tree.root as usize] += tree.weight;
            }
            sums.iter().all(|sum| *sum == sums[0])
        })
    }

    /// The trees from their roots to all.
    #[must_use]
    pub fn out_trees(&self) -> &[Tree] {
        &self.out_trees
    }

    /// The trees from all to their roots.
    #[must_use]
    pub fn in_trees(&self) -> &[Tree] {
        &self.in_trees
    }
}

/// Weights are not zero, and their sum can be counted.
pub(super) fn check_weights(
    what: &'static str,
    weights: impl Iterator<Item = u64>,
) -> Result<(), TemplateError> {
    let mut sum = 0u64;
    for (index, weight) in weights.enumerate() {
        sum = match sum.checked_add(weight) {
            Some(sum) if weight > 0 && sum <= 1 << 63 => sum,
            _ => return Err(TemplateError::Weight { what, index }),
        };
    }
    Ok(())
}
