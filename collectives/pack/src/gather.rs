//! Packings for all_gather, reduce_scatter, broadcast and reduce.

mod exact;
mod loose;
mod shallow;

use unisono_bound::{Op, bound};
use unisono_network::{Network, Rational, to_f64};

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
    out_trees(network, Roots::All)
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
    out_trees(network, Roots::One(root))
}

/// In-trees for a reduction to a root.
///
/// # Errors
/// As for [`all_gather`], or if there is no such rank.
pub fn reduce(network: &Network, root: u32) -> Result<Packing, PackError> {
    Ok(turned(broadcast(&network.reversed(), root)?))
}

/// Whose trees are packed.
#[derive(Clone, Copy, Debug)]
enum Roots {
    /// Every rank's, with equal sums of weights.
    All,
    /// One rank's.
    One(u32),
}

impl Roots {
    fn has(self, rank: u32) -> bool {
        match self {
            Self::All => true,
            Self::One(root) => rank == root,
        }
    }

    fn count(self, ranks: u32) -> u32 {
        match self {
            Self::All => ranks,
            Self::One(_) => 1,
        }
    }

    /// The operation that they serve.
    fn op(self) -> Op {
        match self {
            Self::All => Op::AllGather,
            Self::One(root) => Op::Broadcast { root },
        }
    }
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

/// Shallow out-trees for all_gather, one or a few for each root: the fastest that simple
/// constructions give, on networks of any size. They may not reach the bound; on regular networks
/// they do.
///
/// # Errors
/// If some rank cannot reach another, or no simple construction suits the network.
pub fn shallow_all_gather(network: &Network) -> Result<Packing, PackError> {
    if network.ranks() == 1 {
        return Ok(alone(network));
    }
    // The first of the fastest, which has the fewest trees.
    let mut fastest: Option<Packing> = None;
    for packing in shallow(network) {
        let faster = |best: &Packing| packing.bytes_per_second() > best.bytes_per_second();
        if fastest.as_ref().is_none_or(faster) {
            fastest = Some(packing);
        }
    }
    fastest.ok_or(PackError::Irregular)
}

/// Shallow in-trees for reduce_scatter.
///
/// # Errors
/// As for [`shallow_all_gather`].
pub fn shallow_reduce_scatter(network: &Network) -> Result<Packing, PackError> {
    Ok(turned(shallow_all_gather(&network.reversed())?))
}

fn shallow(network: &Network) -> Vec<Packing> {
    /// Trees of this many ranks are not made several times: that would be much for little.
    const LARGE: u32 = 256;
    let several = if network.ranks() < LARGE { 4 } else { 1 };
    let mut candidates = vec![shallow::over_islands(network)];
    for each in [1, 2, 4].into_iter().filter(|each| *each <= several) {
        candidates.push(shallow::along_shortest(network, each));
    }
    let candidates = candidates.into_iter().flatten();
    candidates.map(|trees| full_speed(network, trees)).collect()
}

/// Out-trees at the speed at which some link is full.
fn full_speed(network: &Network, trees: Vec<Tree>) -> Packing {
    let mut loads = vec![0; network.edges().len()];
    for tree in &trees {
        for &edge in tree.paths.iter().flatten() {
            loads[edge as usize] += tree.weight;
        }
    }
    Packing {
        way: Way::Out,
        trees,
        unit: fastest(network, &loads),
    }
}

/// Shallow trees are taken if they are this close to the bound; else trees that fit exactly.
const CLOSE: f64 = 0.001;

fn out_trees(network: &Network, roots: Roots) -> Result<Packing, PackError> {
    let vertices = network.vertices().len();
    let plain = Plain::new(network)?;
    let bound = bound(&plain.network, roots.op())?.limit.high();
    let Some(bound) = bound else {
        return Ok(alone(network));
    };
    let shallow = match roots {
        Roots::All => shallow_all_gather(network).ok(),
        Roots::One(_) => None,
    };
    let share = |packing: &Packing| to_f64(packing.bytes_per_second() / bound);
    if shallow
        .as_ref()
        .is_some_and(|packing| share(packing) >= 1.0 - CLOSE)
        || vertices > MOST_VERTICES
    {
        return shallow.ok_or(PackError::TooLarge {
            vertices,
            max: MOST_VERTICES,
        });
    }
    let mut trees = match exact::trees(&plain.network, roots)? {
        Some(trees) => trees,
        None => loose::trees(&plain.network, roots),
    };
    for path in trees.iter_mut().flat_map(|tree| &mut tree.paths) {
        *path = plain.path(path);
    }
    Ok(full_speed(network, trees))
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
