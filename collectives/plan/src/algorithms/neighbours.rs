//! Who exchanges with whom, for the cost model to look at the links between them.

use super::binary_tree::BinaryTree;
use super::halves::levels;

/// The pairs of each level of halving, sender first, and the most messages that a rank takes there.
pub(crate) fn halvings(ranks: u32) -> Vec<(u64, Vec<(u32, u32)>)> {
    let mut all: Vec<(u64, Vec<(u32, u32)>)> = Vec::new();
    for rank in 0..ranks {
        for (index, level) in levels(rank, ranks).iter().enumerate() {
            if all.len() == index {
                all.push((1, Vec::new()));
            }
            let (most, pairs) = &mut all[index];
            *most = (*most).max(level.takes().len() as u64);
            pairs.push((rank, level.gives));
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
