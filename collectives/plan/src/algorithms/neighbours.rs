//! Who exchanges with whom, for the cost model to look at the links between them.

use crate::ir::Blocks;

use super::binary_tree::BinaryTree;
use super::halves::levels;

/// One exchange of halving.
#[derive(Debug, Clone, Default)]
pub(crate) struct Halving {
    /// The most messages that a rank takes.
    pub(crate) most: u64,
    /// Who gives to whom the blocks of which ranks.
    pub(crate) gifts: Vec<(u32, u32, Blocks)>,
}

/// The exchanges of halving, the widest first.
pub(crate) fn halvings(ranks: u32) -> Vec<Halving> {
    let mut all: Vec<Halving> = Vec::new();
    for rank in 0..ranks {
        for (index, level) in levels(rank, ranks).iter().enumerate() {
            if all.len() == index {
                all.push(Halving {
                    most: 1,
                    gifts: Vec::new(),
                });
            }
            let Halving { most, gifts } = &mut all[index];
            *most = (*most).max(level.takes().len() as u64);
            gifts.push((rank, level.gives, level.sent));
        }
    }
    all
}

/// The edges of both trees of a double binary tree over all ranks, both ways.
pub(crate) fn tree_edges(ranks: u32) -> Vec<(u32, u32)> {
    let mut edges = Vec::new();
    for shift in [0, 1] {
        let tree = BinaryTree::new(ranks, shift);
        for rank in 0..ranks {
            if let Some(parent) = tree.node(rank).parent {
                edges.extend([(rank, parent), (parent, rank)]);
            }
        }
    }
    edges
}
