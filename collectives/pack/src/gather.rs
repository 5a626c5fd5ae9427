//! Packings for all_gather, reduce_scatter, broadcast and reduce.

use unisono_network::Network;

use crate::capacity::{common_divisor, own, strands, units};
use crate::error::PackError;
use crate::grow::{Grown, grow};
use crate::split::remove_switches;
use crate::strands::Strands;
use crate::strength::strength;
use crate::tree::{Packing, Tree, Unit, Way};

/// The most vertices (ranks and switches) for which trees are packed one by one.
pub const MOST_VERTICES: usize = 160;

/// Out-trees for all_gather: the trees of every root have the same sum of weights.
///
/// # Errors
/// If some rank cannot reach another, or the network has more than [`MOST_VERTICES`] vertices.
pub fn all_gather(network: &Network) -> Result<Packing, PackError> {
    out_trees(network, &vec![1; network.ranks() as usize])
}

/// In-trees for reduce_scatter: the trees of every root have the same sum of weights.
///
/// # Errors
/// As for [`all_gather`].
pub fn reduce_scatter(network: &Network) -> Result<Packing, PackError> {
    Ok(turned(all_gather(&network.reversed())?))
}

/// Out-trees for a broadcast from a root.
///
/// # Errors
/// As for [`all_gather`], or if there is no such rank.
pub fn broadcast(network: &Network, root: u32) -> Result<Packing, PackError> {
    out_trees(network, &only(network, root)?)
}

/// In-trees for a reduction to a root.
///
/// # Errors
/// As for [`all_gather`], or if there is no such rank.
pub fn reduce(network: &Network, root: u32) -> Result<Packing, PackError> {
    Ok(turned(broadcast(&network.reversed(), root)?))
}

fn only(network: &Network, root: u32) -> Result<Vec<i64>, PackError> {
    let ranks = network.ranks();
    if root >= ranks {
        return Err(PackError::UnknownRank { rank: root, ranks });
    }
    Ok((0..ranks).map(|rank| i64::from(rank == root)).collect())
}

/// A packing of the reversed network as one of the network: what went out comes in.
fn turned(packing: Packing) -> Packing {
    let turn = |mut tree: Tree| {
        for path in &mut tree.paths {
            path.reverse();
        }
        tree
    };
    Packing {
        way: match packing.way {
            Way::Out => Way::In,
            Way::In => Way::Out,
        },
        trees: packing.trees.into_iter().map(turn).collect(),
        unit: packing.unit,
    }
}

/// Trees whose roots' weights are in the given proportion.
fn out_trees(network: &Network, weights: &[i64]) -> Result<Packing, PackError> {
    let n = network.vertices().len();
    let ranks = weights.len();
    if n > MOST_VERTICES {
        return Err(PackError::TooLarge {
            vertices: n,
            max: MOST_VERTICES,
        });
    }
    if ranks == 1 {
        return Ok(alone(network));
    }
    let units = units(&own(network));
    let (numerator, denominator) = strength(network, &units.capacity, weights)?;
    // In these units capacities and weights are whole numbers.
    let divisor = common_divisor(
        units
            .capacity
            .iter()
            .map(|&capacity| capacity * denominator)
            .chain([numerator]),
    );
    let capacity: Vec<i64> = units
        .capacity
        .iter()
        .map(|&capacity| capacity * denominator / divisor)
        .collect();
    let weights: Vec<i64> = weights
        .iter()
        .map(|&weight| weight * numerator / divisor)
        .collect();
    let mut strands = strands(network, &capacity);
    if !remove_switches(&mut strands, n, ranks, &weights) {
        unreachable!("TODO");
    }
    let mut matrix = vec![0; ranks * ranks];
    for from in 0..ranks {
        for to in 0..ranks {
            matrix[from * ranks + to] = strands.capacity(from, to);
        }
    }
    let grown = grow(&matrix, &weights).expect("enough flows to each rank");
    let trees = grown
        .into_iter()
        .flat_map(|tree| laid(tree, &mut strands))
        .collect();
    Ok(Packing {
        way: Way::Out,
        trees,
        unit: Unit {
            numerator: (units.unit as u64) * divisor as u64,
            denominator: denominator as u64,
        },
    })
}

/// The one rank's tree: it has everything at once.
fn alone(network: &Network) -> Packing {
    let widest = network.edges().iter().map(|edge| edge.bytes_per_second);
    Packing {
        way: Way::Out,
        trees: vec![Tree {
            root: 0,
            weight: 1,
            parents: vec![0],
            paths: vec![vec![]],
        }],
        unit: Unit {
            numerator: widest.max().unwrap_or(1),
            denominator: 1,
        },
    }
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
