//! Packings for all_gather, reduce_scatter, broadcast and reduce.

mod exact;
mod loose;

use unisono_network::{Network, Rational};

use crate::error::PackError;
use crate::plain::Plain;
use crate::tree::{Packing, Tree, Way};
use crate::whole::fastest;

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
    let vertices = network.vertices().len();
    if vertices > MOST_VERTICES {
        return Err(PackError::TooLarge {
            vertices,
            max: MOST_VERTICES,
        });
    }
    if network.ranks() == 1 {
        return Ok(alone(network));
    }
    let plain = Plain::new(network)?;
    let trees = match exact::trees(&plain.network, weights)? {
        Some(trees) => trees,
        None => loose::trees(&plain.network, weights),
    };
    let mut loads = vec![0; network.edges().len()];
    let mut lay = |mut tree: Tree| {
        for path in &mut tree.paths {
            *path = plain.path(path);
            for &edge in path.iter() {
                loads[edge as usize] += tree.weight;
            }
        }
        tree
    };
    let trees = trees.into_iter().map(&mut lay).collect();
    Ok(Packing {
        way: Way::Out,
        trees,
        unit: fastest(network, &loads),
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
        unit: Rational::from(i128::from(widest.max().unwrap_or(1))),
    }
}
