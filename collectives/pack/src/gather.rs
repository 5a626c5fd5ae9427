//! Packings for all_gather, reduce_scatter, broadcast and reduce.

mod even;
mod exact;
mod loose;
mod relay;
mod shallow;

use unisono_bound::{Op, bound};
use unisono_network::{EdgeId, Network, Rational, to_f64};

use crate::error::PackError;
use crate::mates::mates;
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
    turned(network, all_gather)
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
    turned(network, |network| broadcast(network, root))
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

/// In-trees from a construction of out-trees: on a network that is the same both ways the mirror
/// image, else what it makes of the reversed network.
fn turned(
    network: &Network,
    out_trees: impl FnOnce(&Network) -> Result<Packing, PackError>,
) -> Result<Packing, PackError> {
    let mates = mates(network);
    let mut packing = match &mates {
        Some(_) => out_trees(network)?,
        None => out_trees(&network.reversed())?,
    };
    packing.turn(mates.as_deref());
    Ok(packing)
}

impl Packing {
    /// What went out comes in, over each edge's mate, or over the same edge of the reversed network.
    pub(crate) fn turn(&mut self, mates: Option<&[EdgeId]>) {
        self.way = match self.way {
            Way::Out => Way::In,
            Way::In => Way::Out,
        };
        for path in self.trees.iter_mut().flat_map(|tree| &mut tree.paths) {
            path.reverse();
            for edge in path {
                *edge = mates.map_or(*edge, |mates| mates[*edge as usize]);
            }
        }
    }
}

/// Shallow out-trees for all_gather, one or a few for each root: the fastest that simple
/// constructions give, on networks of any size. They may not reach the bound; on regular networks
/// they do.
///
/// # Errors
/// If some rank cannot reach another, or no simple construction suits the network.
pub fn shallow_all_gather(network: &Network) -> Result<Packing, PackError> {
    match unisono_bound::bound(network, Op::AllGather)?.limit.high() {
        Some(bound) => shallow(network, bound).ok_or(PackError::Irregular),
        None => Ok(alone(network)),
    }
}

/// Shallow in-trees for reduce_scatter.
///
/// # Errors
/// As for [`shallow_all_gather`].
pub fn shallow_reduce_scatter(network: &Network) -> Result<Packing, PackError> {
    turned(network, shallow_all_gather)
}

/// Trees within this part of the bound are as good as any.
const CLOSE: f64 = 0.002;

/// Whether a packing is as fast as the bound.
fn reaches(packing: &Packing, bound: Rational) -> bool {
    to_f64(packing.bytes_per_second() / bound) >= 1.0 - CLOSE
}

/// The first shallow packing that reaches the bound, or the fastest.
fn shallow(network: &Network, bound: Rational) -> Option<Packing> {
    // With more copies of each tree loads are more even, and there are more trees.
    let copies = [1, 2, 4].into_iter();
    let copies = copies.filter(|&copies| shallow::is_quick(network, copies));
    let islands = std::iter::once_with(|| shallow::over_islands(network));
    let shortest = copies.map(|copies| shallow::along_shortest(network, copies));
    fastest_of(network, bound, islands.chain(shortest).flatten())
}

/// The first of several choices of trees that reaches the bound, or the fastest.
fn fastest_of(
    network: &Network,
    bound: Rational,
    choices: impl Iterator<Item = Vec<Tree>>,
) -> Option<Packing> {
    let mut best: Option<Packing> = None;
    for trees in choices {
        let packing = full_speed(network, trees);
        let faster = |best: &Packing| packing.bytes_per_second() > best.bytes_per_second();
        if best.as_ref().is_none_or(faster) {
            let done = reaches(&packing, bound);
            best = Some(packing);
            if done {
                break;
            }
        }
    }
    best
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

/// Shallow trees if they reach the bound, else trees that fit exactly.
fn out_trees(network: &Network, roots: Roots) -> Result<Packing, PackError> {
    let plain = Plain::new(network)?;
    let Some(bound) = bound(&plain.network, roots.op())?.limit.high() else {
        return Ok(alone(network));
    };
    let shallow = match roots {
        Roots::All => shallow(network, bound),
        Roots::One(root) => fastest_of(network, bound, relay::over_islands(network, root, bound)),
    };
    let vertices = network.vertices().len();
    if vertices > MOST_VERTICES {
        return of_many(network, &plain, roots, bound, shallow)?.ok_or(PackError::TooLarge {
            vertices,
            max: MOST_VERTICES,
        });
    }
    let shallow = shallow.filter(|packing| reaches(packing, bound));
    if let (Roots::All, Some(packing)) = (roots, &shallow) {
        return Ok(packing.clone());
    }
    let trees = match exact::trees(&plain.network, roots)? {
        Some(trees) => trees,
        None => loose::trees(&plain.network, roots, loose::WORK),
    };
    // No trees would be a plan that moves nothing.
    if trees.is_empty() {
        return Err(PackError::TooMuchWork);
    }
    let fitted = full_speed(network, plain.back(trees));
    // One root has few trees that fit exactly; where they are deeper, the shallow ones are better.
    Ok(match shallow {
        Some(shallow) if shallow.depth() < fitted.depth() => shallow,
        _ => fitted,
    })
}

/// The same on a network with more than [`MOST_VERTICES`]: trees fit exactly there only if they have
/// one root and no switches must be removed first. None if there are no trees at all.
fn of_many(
    network: &Network,
    plain: &Plain,
    roots: Roots,
    bound: Rational,
    shallow: Option<Packing>,
) -> Result<Option<Packing>, PackError> {
    let Roots::One(root) = roots else {
        return Ok(shallow);
    };
    if shallow
        .as_ref()
        .is_some_and(|packing| reaches(packing, bound))
    {
        return Ok(shallow);
    }
    let switches = plain.network.vertices().len() > plain.network.ranks() as usize;
    if !switches && let Some(trees) = exact::trees(&plain.network, roots)? {
        return Ok(Some(full_speed(network, plain.back(trees))));
    }
    let along = relay::along_shortest(network, root, bound);
    let along = along.map(|trees| full_speed(network, trees));
    Ok(shallow
        .into_iter()
        .chain(along)
        .max_by_key(Packing::bytes_per_second))
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
