//! Whether a packing is what it claims to be, found without knowing how it was made.

use unisono_network::{EdgeId, Network, Rational, to_f64};

use crate::all_to_all::Routing;
use crate::rings::Rings;
use crate::tree::{Packing, PairPacking, Tree, Way};

/// What is wrong with a packing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// Parents that do not lead to the root, or an order that does not have each rank once.
    #[error("tree or ring {tree} does not visit all ranks")]
    NotSpanning {
        /// The place of the tree or ring.
        tree: usize,
    },
    /// Edges that do not lead from the parent to the rank by switches alone, or from a rank to the
    /// next of its ring.
    #[error("in tree or ring {tree} the edges at rank {rank} do not lead where they should")]
    BrokenPath {
        /// The place of the tree or ring.
        tree: usize,
        /// The rank.
        rank: u32,
    },
    /// A tree or ring of no weight.
    #[error("tree or ring {tree} has no weight")]
    NoWeight {
        /// The place of the tree or ring.
        tree: usize,
    },
    /// The trees of a pair do not belong together.
    #[error("the trees of pair {pair} differ in root or weight")]
    Mismatch {
        /// The pair's place.
        pair: usize,
    },
    /// A route's edges do not lead along its ranks.
    #[error("the edges of route {route} do not lead along its ranks")]
    BrokenRoute {
        /// The route's place.
        route: usize,
    },
    /// A pair whose routes do not add up.
    #[error(
        "the routes from rank {from} to rank {to} have weight {weight}, not all of their share"
    )]
    Share {
        /// The source.
        from: u32,
        /// The destination.
        to: u32,
        /// What its routes add up to.
        weight: u64,
    },
    /// More than a link can carry.
    #[error("edge {edge} carries {load:.0} B/s and has room for {capacity}")]
    Overload {
        /// The edge, or the first of the group that is over.
        edge: EdgeId,
        /// What all trees together put on it.
        load: f64,
        /// What it can carry.
        capacity: u64,
    },
}

/// Checks that all trees span all ranks and that no edge or group of edges carries more than it
/// can, in exact arithmetic.
///
/// # Errors
/// The first flaw.
pub fn packing(network: &Network, packing: &Packing) -> Result<(), Flaw> {
    let mut loads = vec![0; network.edges().len()];
    for (place, tree) in packing.trees.iter().enumerate() {
        add(network, place, tree, packing.way, &mut loads)?;
    }
    fits(network, packing.unit, &loads)
}

/// The same for pairs of trees, which flow at once.
///
/// # Errors
/// The first flaw.
pub fn pairs(network: &Network, packing: &PairPacking) -> Result<(), Flaw> {
    let mut loads = vec![0; network.edges().len()];
    for (place, pair) in packing.pairs.iter().enumerate() {
        let ends = |tree: &Tree| (tree.root, tree.weight);
        if ends(&pair.reduce) != ends(&pair.distribute) {
            return Err(Flaw::Mismatch { pair: place });
        }
        add(network, place, &pair.reduce, Way::In, &mut loads)?;
        add(network, place, &pair.distribute, Way::Out, &mut loads)?;
    }
    fits(network, packing.unit, &loads)
}

/// Checks that every ordered pair of ranks has routes of the right weight that lead from one to the
/// other, and that no edge or group of edges carries more than it can, in exact arithmetic.
///
/// # Errors
/// The first flaw.
pub fn routing(network: &Network, routing: &Routing) -> Result<(), Flaw> {
    let ranks = network.ranks() as usize;
    let mut loads = vec![0; network.edges().len()];
    let mut weights = vec![0u64; ranks * ranks];
    for (place, route) in routing.routes.iter().enumerate() {
        let stops = follow(network, &route.edges);
        let Some((from, to)) = stops.filter(|stops| *stops == route.ranks).and_then(ends) else {
            return Err(Flaw::BrokenRoute { route: place });
        };
        weights[from as usize * ranks + to as usize] += route.weight;
        for &edge in &route.edges {
            loads[edge as usize] += i128::from(route.weight);
        }
    }
    for (pair, &weight) in weights.iter().enumerate() {
        let (from, to) = (pair / ranks, pair % ranks);
        if from != to && weight != routing.weight {
            return Err(Flaw::Share {
                from: from as u32,
                to: to as u32,
                weight,
            });
        }
    }
    fits(network, routing.unit, &loads)
}

/// Checks that every ring visits every rank once, that its edges lead along its order, and that no
/// edge or group of edges carries more than it can, in exact arithmetic.
///
/// # Errors
/// The first flaw.
pub fn rings(network: &Network, rings: &Rings) -> Result<(), Flaw> {
    let mut loads = vec![0; network.edges().len()];
    for (place, ring) in rings.rings.iter().enumerate() {
        let mut sorted = ring.order.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..network.ranks()) || ring.paths.len() != ring.order.len() {
            return Err(Flaw::NotSpanning { tree: place });
        }
        if ring.weight == 0 {
            return Err(Flaw::NoWeight { tree: place });
        }
        for (at, path) in ring.paths.iter().enumerate() {
            let rank = ring.order[at];
            let next = ring.order[(at + 1) % ring.order.len()];
            if rank != next && follow(network, path).and_then(ends) != Some((rank, next)) {
                return Err(Flaw::BrokenPath { tree: place, rank });
            }
            for &edge in path {
                loads[edge as usize] += i128::from(ring.weight);
            }
        }
    }
    fits(network, rings.unit, &loads)
}

fn ends(stops: Vec<u32>) -> Option<(u32, u32)> {
    Some((*stops.first()?, *stops.last()?))
}

/// The ranks along edges, if each edge begins where the one before ends.
fn follow(network: &Network, path: &[EdgeId]) -> Option<Vec<u32>> {
    let first = network.edges().get(*path.first()? as usize)?;
    let mut at = first.from;
    let mut stops = vec![network.rank_of(at)?];
    for &id in path {
        let edge = network.edges().get(id as usize)?;
        if edge.from != at {
            return None;
        }
        at = edge.to;
        stops.extend(network.rank_of(at));
    }
    Some(stops)
}

/// Looks at one tree and adds its loads.
fn add(
    network: &Network,
    place: usize,
    tree: &Tree,
    way: Way,
    loads: &mut [i128],
) -> Result<(), Flaw> {
    let ranks = network.ranks();
    let counts = [tree.parents.len(), tree.paths.len()];
    let rooted = tree.root < ranks && tree.parents.get(tree.root as usize) == Some(&tree.root);
    if counts != [ranks as usize; 2] || !rooted || tree.depth().is_none() {
        return Err(Flaw::NotSpanning { tree: place });
    }
    if tree.weight == 0 {
        return Err(Flaw::NoWeight { tree: place });
    }
    for rank in (0..ranks).filter(|&rank| rank != tree.root) {
        let parent = tree.parents[rank as usize];
        let path = &tree.paths[rank as usize];
        let (from, to) = match way {
            Way::Out => (parent, rank),
            Way::In => (rank, parent),
        };
        if !joins(network, path, from, to) {
            return Err(Flaw::BrokenPath { tree: place, rank });
        }
        for &edge in path {
            loads[edge as usize] += i128::from(tree.weight);
        }
    }
    Ok(())
}

/// Whether edges lead from one rank to another, by switches alone.
fn joins(network: &Network, path: &[EdgeId], from: u32, to: u32) -> bool {
    follow(network, path).is_some_and(|stops| stops == [from, to])
        && path
            .last()
            .is_some_and(|&last| network.edge(last).to == network.vertex_of(to))
}

fn fits(network: &Network, unit: Rational, loads: &[i128]) -> Result<(), Flaw> {
    let fits = |edge: EdgeId, load: i128, capacity: u64| {
        let load = unit * load;
        if load > Rational::from(i128::from(capacity)) {
            return Err(Flaw::Overload {
                edge,
                load: to_f64(load),
                capacity,
            });
        }
        Ok(())
    };
    for ((id, edge), &load) in (0..).zip(network.edges()).zip(loads) {
        fits(id, load, edge.bytes_per_second)?;
    }
    for group in network.groups() {
        let sum = group.edges.iter().map(|&edge| loads[edge as usize]).sum();
        fits(group.edges[0], sum, group.bytes_per_second)?;
    }
    Ok(())
}
