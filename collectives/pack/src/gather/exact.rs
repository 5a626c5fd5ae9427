//! Trees by Edmonds' theorem: switches removed, then trees grown.
//!
//! The flows that removing switches keeps grow with the third power of the vertices; where there are
//! none, a thousand ranks are no difficulty.

use unisono_bound::bound;
use unisono_network::Network;

use super::Roots;
use crate::capacity::{gcd, rounded, strands};
use crate::error::PackError;
use crate::grow::{Grown, grow};
use crate::split::remove_switches;
use crate::strands::Strands;
use crate::tree::Tree;

/// Trees of roots, as many as fit. None if the switches could not be removed, or it takes too long.
///
/// # Errors
/// If some rank cannot be reached from a root.
pub(super) fn trees(network: &Network, roots: Roots) -> Result<Option<Vec<Tree>>, PackError> {
    let n = network.vertices().len();
    let ranks = network.ranks() as usize;
    let rounded = rounded(network)?;
    let Some(rate) = bound(&rounded, roots.op())?.limit.low() else {
        return Ok(None);
    };
    let share = rate / i128::from(roots.count(network.ranks()));
    // In these units capacities and weights are whole numbers, whatever they have in common.
    let (weight, times) = (*share.numer() as i64, *share.denom() as i64);
    let capacity = rounded
        .edges()
        .iter()
        .map(|edge| edge.bytes_per_second as i64 * times);
    let capacity: Vec<i64> = capacity.collect();
    let divisor = capacity.iter().copied().fold(weight, gcd);
    let capacity: Vec<i64> = capacity.iter().map(|capacity| capacity / divisor).collect();
    let weights: Vec<i64> = (0..network.ranks())
        .map(|rank| if roots.has(rank) { weight / divisor } else { 0 })
        .collect();
    let mut strands = strands(network, &capacity);
    if n > ranks && !remove_switches(&mut strands, n, ranks, &weights) {
        return Ok(None);
    }
    let mut matrix = vec![0; ranks * ranks];
    for from in 0..ranks {
        for to in 0..ranks {
            matrix[from * ranks + to] = strands.capacity(from, to);
        }
    }
    let grown = grow(&matrix, &weights);
    Ok(grown.map(|trees| {
        trees
            .into_iter()
            .flat_map(|tree| laid(tree, &mut strands))
            .collect()
    }))
}

/// Lays a tree onto physical paths. Where no single path has room for all of its weight, it becomes
/// several trees that differ in paths only.
fn laid(grown: Grown, strands: &mut Strands) -> Vec<Tree> {
    let mut trees = Vec::new();
    let mut left = grown.weight;
    while left > 0 {
        let mut weight = left;
        let mut paths = vec![Vec::new(); grown.parents.len()];
        for (rank, &parent) in grown.parents.iter().enumerate() {
            if rank == grown.root {
                continue;
            }
            let Some(strand) = strands.widest(parent as usize, rank) else {
                return trees;
            };
            weight = weight.min(strand.capacity);
            paths[rank].clone_from(&strand.path);
        }
        for (rank, &parent) in grown.parents.iter().enumerate() {
            strands.take(parent as usize, rank, &paths[rank], weight);
        }
        left -= weight;
        trees.push(Tree {
            root: grown.root as u32,
            weight: weight as u64,
            parents: grown.parents.clone(),
            paths,
        });
    }
    trees
}
