//! Shallow trees for a broadcast, on networks of any size.
//!
//! A root's own link is often the narrow place: it can send its data once, not once to each. So it
//! sends each other rank a part, and each hands its part on as in all_gather, over the shallow trees
//! of that. Such a tree is hung up at the root: the way from the rank to the root is turned around,
//! and all else stays below what it hung below. On one switch every rank then sends as much as it
//! receives. On islands with a rail for each place, a part first goes to its rail's rank within the
//! root's island, so that all rails leave that at once.
//!
//! Links that are fuller than others then, as close to the root, are relieved by [`even_out`].

use unisono_network::levels::levels;
use unisono_network::{Network, Rational};

use super::even::even_out;
use super::shallow::{self, laid};
use crate::tree::Tree;

/// Trees of one root and weight 1 over islands, in several choices; none if there are no islands. They
/// are evened out as far as the bound can be reached, in bytes a second.
///
/// The first choices have a tree by way of each rank outside of the root's island, on the highest level
/// and then on lower ones: what enters another island anyway need not be handed on within the root's
/// first. The last one has a tree by way of every other rank.
pub(super) fn over_islands(
    network: &Network,
    root: u32,
    bound: Rational,
) -> impl Iterator<Item = Vec<Tree>> {
    let levels = levels(network);
    let homes = levels.levels().iter().rev().skip(1).map(move |level| {
        let home = level.groups.iter().find(|group| group.contains(&root));
        home.cloned().unwrap_or_default()
    });
    let homes: Vec<Vec<u32>> = homes.chain([vec![root]]).collect();
    let trees = shallow::over_islands(network);
    homes
        .into_iter()
        .filter_map(move |home| from(network, trees.as_deref()?, root, &home, bound))
}

/// Trees along shortest ways, one by way of each other rank; none if there are switches.
pub(super) fn along_shortest(network: &Network, root: u32, bound: Rational) -> Option<Vec<Tree>> {
    let trees = shallow::along_shortest(network, 1)?;
    from(network, &trees, root, &[root], bound)
}

/// Trees by way of all ranks but those at home.
fn from(
    network: &Network,
    trees: &[Tree],
    root: u32,
    home: &[u32],
    bound: Rational,
) -> Option<Vec<Tree>> {
    let others = trees.iter().filter(|tree| !home.contains(&tree.root));
    let parents = others.map(|tree| (root, hung_up(tree.root, tree.parents.clone(), root)));
    let mut trees = laid(network, parents.collect()).filter(|trees| !trees.is_empty())?;
    even_out(network, &mut trees, bound);
    Some(trees)
}

/// The parents of a tree, seen from another root.
fn hung_up(old: u32, mut parents: Vec<u32>, root: u32) -> Vec<u32> {
    let (mut child, mut at) = (root, root);
    while at != old {
        let above = parents[at as usize];
        parents[at as usize] = child;
        (child, at) = (at, above);
    }
    parents[old as usize] = child;
    parents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_way_to_the_root_turns() {
        // 0 has 1 and 2, 1 has 3 and 4, 4 has 5.
        let turned = hung_up(0, vec![0, 0, 0, 1, 1, 4], 4);
        assert_eq!(turned, [1, 4, 0, 1, 4, 4]);
        assert_eq!(hung_up(0, vec![0, 0, 1], 0), [0, 0, 1]);
    }
}
