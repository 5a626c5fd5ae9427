//! Shallow trees for a broadcast behind switches.
//!
//! A root's own link is the narrow place: it can send its data once, not once to each. So it sends
//! each other rank a part, and each hands its part on as in all_gather, over the shallow trees of
//! that. On one switch every rank then sends as much as it receives. (Over islands the root would also have to
//! pass on what others send to its island, which is too much: there trees that fit exactly are taken.)

use unisono_network::Network;

use super::shallow::over_islands;
use crate::paths::{Relays, beside};
use crate::tree::Tree;

/// Trees of one root and weight 1, one by way of each other rank; none if the root cannot reach all
/// by switches alone, or there are no islands.
pub(super) fn trees(network: &Network, root: u32) -> Option<Vec<Tree>> {
    let others = || (0..network.ranks()).filter(|&rank| rank != root);
    let steps: Vec<(u32, u32, u64)> = others().map(|rank| (root, rank, 1)).collect();
    let first = beside(network, &steps, Relays::Never).ok()?;
    let mut trees = over_islands(network)?;
    trees.retain(|tree| tree.root != root);
    for (tree, path) in trees.iter_mut().zip(first) {
        let relay = tree.root as usize;
        // What hung below the root still does; the rest hangs below the relay.
        tree.parents[root as usize] = root;
        tree.paths[root as usize] = Vec::new();
        tree.parents[relay] = root;
        tree.paths[relay] = path;
        tree.root = root;
    }
    Some(trees)
}
