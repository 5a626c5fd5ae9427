//! Trees by a linear program, where switches cannot be removed.
//!
//! If more can enter a switch than leave it, what each rank could get alone they cannot always get
//! together, so that no count of flows says which trees fit. Then: maximise the common factor of
//! the roots' weights; rows are edges, and for each root that its trees add up; a column is a tree,
//! and the best one for given prices of edges is the cheapest tree over cheapest ways by switches.

use unisono_network::{EdgeId, Network, to_f64};

use super::Roots;
use crate::arborescence::cheapest;
use crate::closure::Closure;
use crate::lp::{Column, Program};
use crate::tree::Tree;
use crate::whole::{fastest, shares};

/// Trees within this part of the bound are good enough.
const CLOSE: f64 = 0.002;

/// Rounds of new columns, and steps of the method a round.
const ROUNDS: usize = 200;
const STEPS: usize = 2000;

/// About how many numbers all steps may touch, each of which takes all pairs of rows: some seconds. What was found by
/// then fits, though it may not be the best.
pub(super) const WORK: usize = 3_000_000_000;

/// The sum of weights of each root is one of these.
const WEIGHTS: [u64; 10] = [1, 2, 3, 4, 6, 8, 12, 24, 120, 4096];

/// Trees of roots, equal sums of weights for all; every rank must be within reach of every root. None if `work` (see
/// [`WORK`]) was too little to find any.
pub(super) fn trees(network: &Network, roots: Roots, work: usize) -> Vec<Tree> {
    let edges = network.edges().len();
    let ranks = network.ranks();
    let roots: Vec<u32> = (0..ranks).filter(|&rank| roots.has(rank)).collect();
    let capacity: Vec<f64> = network
        .edges()
        .iter()
        .map(|edge| edge.bytes_per_second as f64)
        .collect();
    let scale = capacity.iter().copied().fold(0.0, f64::max);
    // A little slack for the roots, so that the first columns find room.
    let slack = std::iter::repeat_n(1e-6, roots.len());
    let limits: Vec<f64> = capacity.iter().map(|c| c / scale).chain(slack).collect();
    let mut program = Program::new(&limits);
    let common = (edges..edges + roots.len()).map(|row| (row, 1.0));
    program.add(Column {
        value: 1.0,
        uses: common.collect(),
    });
    // The tree of each column, by the column's name.
    let mut found: Vec<(usize, usize, Tree)> = Vec::new();
    let mut bound = f64::INFINITY;
    let mut left = work / (limits.len() * limits.len());
    for _ in 0..ROUNDS {
        for _ in 0..STEPS.min(left) {
            match program.known(&program.prices()) {
                Some(column) if program.enter(column) => left -= 1,
                _ => break,
            }
        }
        if left == 0 {
            break;
        }
        let prices: Vec<f64> = program
            .prices()
            .iter()
            .map(|price| price.max(0.0))
            .collect();
        let hop = prices[..edges].iter().sum::<f64>() / edges as f64 * 1e-6 + 1e-12;
        let costs: Vec<f64> = prices[..edges].iter().map(|price| price + hop).collect();
        let closure = Closure::new(network, &costs);
        let mut needed = 0.0;
        let mut better = false;
        for (place, &root) in roots.iter().enumerate() {
            let Some(tree) = tree(ranks as usize, root as usize, &closure) else {
                return Vec::new();
            };
            let cost: f64 = tree
                .paths
                .iter()
                .flatten()
                .map(|&edge| costs[edge as usize])
                .sum();
            needed += cost;
            if cost < prices[edges + place] * (1.0 - 1e-6) - 1e-9 {
                let column = program.add(column(&tree, edges + place));
                found.push((column, place, tree));
                better = true;
            }
        }
        let weighed: f64 = costs
            .iter()
            .zip(&limits)
            .map(|(cost, limit)| cost * limit)
            .sum();
        bound = bound.min(weighed / needed);
        if !better || program.value() >= bound * (1.0 - CLOSE) {
            break;
        }
    }
    let mut used: Vec<(usize, Tree, f64)> = Vec::new();
    for (column, amount) in program.solution() {
        let tree = found.iter().find(|(one, ..)| *one == column);
        used.extend(tree.map(|(_, place, tree)| (*place, tree.clone(), amount)));
    }
    used.sort_by_key(|(place, ..)| *place);
    // Stopped early, some roots may have trees in the slack, and others none.
    let served = used.chunk_by(|one, other| one.0 == other.0).count();
    if served < roots.len() {
        return Vec::new();
    }
    whole(network, &used)
}

fn tree(ranks: usize, root: usize, closure: &Closure) -> Option<Tree> {
    let parents = cheapest(ranks, root, |from, to| closure.distance(from, to))?;
    let path = |(rank, &parent): (usize, &usize)| match rank == parent {
        true => Vec::new(),
        false => closure.path(parent, rank),
    };
    Some(Tree {
        root: root as u32,
        weight: 1,
        paths: parents.iter().enumerate().map(path).collect(),
        parents: parents.iter().map(|&parent| parent as u32).collect(),
    })
}

fn column(tree: &Tree, root: usize) -> Column {
    let mut edges: Vec<EdgeId> = tree.paths.iter().flatten().copied().collect();
    edges.sort_unstable();
    let uses = edges.chunk_by(|one, other| one == other);
    let uses = uses.map(|same| (same[0] as usize, same.len() as f64));
    Column {
        value: 0.0,
        uses: uses.chain([(root, -1.0)]).collect(),
    }
}

/// Whole weights with the right sum for each root; the smallest ones that lose little.
fn whole(network: &Network, used: &[(usize, Tree, f64)]) -> Vec<Tree> {
    let try_ = |times: u64| -> Vec<Tree> {
        let mut trees = Vec::new();
        for of_root in used.chunk_by(|one, other| one.0 == other.0) {
            let amounts: Vec<f64> = of_root.iter().map(|(.., amount)| *amount).collect();
            for ((_, tree, _), weight) in of_root.iter().zip(shares(&amounts, times)) {
                if weight > 0 {
                    let mut tree = tree.clone();
                    tree.weight = weight;
                    trees.push(tree);
                }
            }
        }
        trees
    };
    let speed = |trees: &[Tree], times: u64| {
        let mut loads = vec![0; network.edges().len()];
        for tree in trees {
            for &edge in tree.paths.iter().flatten() {
                loads[edge as usize] += tree.weight;
            }
        }
        to_f64(fastest(network, &loads)) * times as f64
    };
    let tries: Vec<(Vec<Tree>, f64)> = WEIGHTS
        .into_iter()
        .map(|times| {
            let trees = try_(times);
            let speed = speed(&trees, times);
            (trees, speed)
        })
        .collect();
    let best = tries.iter().map(|(_, speed)| *speed).fold(0.0, f64::max);
    let good = tries
        .into_iter()
        .find(|(_, speed)| *speed >= best * (1.0 - CLOSE));
    good.map_or(Vec::new(), |(trees, _)| trees)
}

#[cfg(test)]
mod tests {
    use unisono_network::Builder;

    use super::*;

    const GB: u64 = 1_000_000_000;

    /// Ranks behind a switch that takes more than it gives, and a ring.
    fn uneven(ranks: u32) -> Network {
        let mut builder = Builder::new(ranks);
        let switch = builder.switch(false);
        for rank in 0..ranks {
            builder.edge(rank, switch, 100 * GB, 0);
            builder.edge(switch, rank, 50 * GB, 0);
            builder.duplex(rank, (rank + 1) % ranks, 3 * GB, 0);
        }
        builder.build().unwrap()
    }

    /// However little work is allowed, there are whole trees with equal sums for all roots, or none.
    #[test]
    fn what_little_work_finds_is_whole() {
        let network = uneven(6);
        let rows = network.edges().len() + 6;
        let mut found = Vec::new();
        for steps in [0, 1, 5, 20, 100, 100_000] {
            let trees = trees(&network, Roots::All, steps * rows * rows);
            let sums = (0..6).map(|root| {
                let of_root = trees.iter().filter(|tree| tree.root == root);
                of_root.map(|tree| tree.weight).sum::<u64>()
            });
            let sums: Vec<u64> = sums.collect();
            assert!(sums.iter().all(|sum| *sum == sums[0]), "{steps}: {sums:?}");
            for tree in &trees {
                let reached = tree.paths.iter().filter(|path| !path.is_empty());
                assert_eq!(reached.count(), 5, "{steps} steps: {tree:?}");
            }
            found.push(trees.len());
        }
        assert_eq!(found[0], 0, "no step was made");
        assert!(found[5] >= 6, "{found:?}");
    }
}
