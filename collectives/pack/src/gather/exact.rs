//! Trees by Edmonds' theorem: switches removed, then trees grown.

use unisono_network::Network;

use crate::capacity::{gcd, strands, units};
use crate::error::PackError;
use crate::grow::{Grown, grow};
use crate::split::remove_switches;
use crate::strands::Strands;
use crate::strength::strength;
use crate::tree::Tree;

/// Trees whose roots' weights are in the given proportion, as many as fit. None if the switches
/// could not be removed.
///
/// # Errors
/// If some rank cannot be reached from a root.
pub(super) fn trees(network: &Network, weights: &[i64]) -> Result<Option<Vec<Tree>>, PackError> {
    let n = network.vertices().len();
    let ranks = weights.len();
    let rounded = units(network);
    let (numerator, denominator) = strength(network, &rounded, weights)?;
    // In these units capacities and weights are whole numbers, whatever they have in common.
    let scaled: Vec<i64> = rounded
        .iter()
        .map(|&capacity| capacity * denominator)
        .collect();
    let divisor = scaled.iter().copied().fold(numerator, gcd);
    let capacity: Vec<i64> = scaled.iter().map(|capacity| capacity / divisor).collect();
    let weights: Vec<i64> = weights
        .iter()
        .map(|weight| weight * numerator / divisor)
        .collect();
    let mut strands = strands(network, &capacity);
    if !remove_switches(&mut strands, n, ranks, &weights) {
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
