//! A tree as one needs it to walk it.

use unisono_network::EdgeId;
use unisono_pack::Tree;

pub(super) struct Shape<'t> {
    pub(super) tree: &'t Tree,
    /// The ranks, each after its parent.
    pub(super) order: Vec<u32>,
    pub(super) children: Vec<Vec<u32>>,
    /// Hops from the root.
    pub(super) depth: Vec<u32>,
    /// Hops to the farthest leaf below.
    pub(super) height: Vec<u32>,
}

impl<'t> Shape<'t> {
    /// None if some rank doesn't lead to the root.
    pub(super) fn new(tree: &'t Tree) -> Option<Self> {
        let count = tree.parents.len();
        let mut children = vec![Vec::new(); count];
        for (rank, &parent) in (0u32..).zip(&tree.parents) {
            if rank != tree.root {
                children.get_mut(parent as usize)?.push(rank);
            }
        }
        let mut order = vec![tree.root];
        let mut depth = vec![0; count];
        let mut at = 0;
        while let Some(&rank) = order.get(at) {
            at += 1;
            for &child in children.get(rank as usize)? {
                depth[child as usize] = depth[rank as usize] + 1;
                order.push(child);
            }
        }
        if order.len() != count {
            return None;
        }
        let mut height = vec![0; count];
        for &rank in order.iter().rev().filter(|&&rank| rank != tree.root) {
            let parent = tree.parents[rank as usize] as usize;
            height[parent] = height[parent].max(height[rank as usize] + 1);
        }
        Some(Self {
            tree,
            order,
            children,
            depth,
            height,
        })
    }

    pub(super) fn root(&self) -> u32 {
        self.tree.root
    }

    pub(super) fn parent(&self, rank: u32) -> u32 {
        self.tree.parents[rank as usize]
    }

    /// The edges between a rank and its parent.
    pub(super) fn path(&self, rank: u32) -> &'t [EdgeId] {
        &self.tree.paths[rank as usize]
    }

    pub(super) fn tallest(&self) -> u32 {
        self.height[self.tree.root as usize]
    }
}
