//! Pairs of trees with free weights of roots, by a linear program.
//!
//! On a network that is the same both ways, a pair is one undirected tree: the reduction flows up
//! and the result down. (Any solution and its mirror image, each at half the speed, make one in
//! which both ways of a link are used alike; and then no pair is cheaper than twice the cheapest
//! tree.) So a column is a minimum spanning tree, its root is free, and the middle of the tree
//! becomes it. Otherwise a column is, for some root, the cheapest out-tree and the cheapest in-tree.

use unisono_network::{EdgeId, Network, to_f64};

use crate::arborescence::cheapest;
use crate::closure::Closure;
use crate::lp::{Column, Program};
use crate::rows::Rows;
use crate::tree::{Pair, Tree};
use crate::whole::{fastest, proportions};

/// Results closer than this part to the bound are as good as it.
const CLOSE: f64 = 1e-3;

/// The most rows of a program: beyond, equal shares have to do.
const MOST_ROWS: usize = 500;

/// How many times the rows of the program there are columns at most.
const COLUMNS_PER_ROW: usize = 60;

/// Pairs of trees that move clearly more than `known` bytes a second; none if there are none, or
/// none was found.
pub(super) fn pairs(network: &Network, known: f64) -> Option<Vec<Pair>> {
    let rows = Rows::new(network);
    if rows.limits.len() > MOST_ROWS || hopeless(&rows, network, known) {
        return None;
    }
    let mut program = Program::new(&rows.limits);
    // The pair of column `first` is the first one found.
    let first = rows.limits.len();
    let mut found: Vec<Pair> = Vec::new();
    for _ in 0..COLUMNS_PER_ROW * rows.limits.len() {
        let prices = program.prices();
        let column = match program.known(&prices) {
            Some(column) => column,
            None => {
                let pair = cheapest_pair(&rows, network, &prices)?;
                let column = column(&rows, &pair);
                let cost = 1.0 - column.gain(&prices);
                let value = program.value();
                // Duality: with these prices nothing moves more than this.
                if cost > 0.0 && value / cost <= (known.max(value)) * (1.0 + CLOSE) {
                    break;
                }
                if column.gain(&prices) <= CLOSE / 10.0 {
                    break;
                }
                found.push(pair);
                program.add(column)
            }
        };
        if !program.enter(column) {
            break;
        }
    }
    let value = program.value();
    if value <= known * (1.0 + 2.0 * CLOSE) {
        return None;
    }
    let solution = program
        .solution()
        .map(|(column, amount)| (column - first, amount));
    let (used, amounts): (Vec<usize>, Vec<f64>) = solution.unzip();
    let loads = |weights: &[u64]| {
        let mut loads = vec![0; network.edges().len()];
        for (&column, &weight) in used.iter().zip(weights) {
            for edge in edges(&found[column]) {
                loads[edge as usize] += weight;
            }
        }
        loads
    };
    let weights = proportions(&amounts, value, CLOSE, |weights| {
        to_f64(fastest(network, &loads(weights))) * weights.iter().sum::<u64>() as f64
    });
    let pairs = used.iter().zip(&weights).filter(|(_, weight)| **weight > 0);
    let pairs = pairs.map(|(&column, &weight)| {
        let mut pair = found[column].clone();
        pair.reduce.weight = weight;
        pair.distribute.weight = weight;
        pair
    });
    Some(pairs.collect())
}

fn column(rows: &Rows, pair: &Pair) -> Column {
    rows.column(1.0, edges(pair))
}

fn edges(pair: &Pair) -> impl Iterator<Item = EdgeId> {
    let trees = [&pair.reduce, &pair.distribute];
    trees
        .into_iter()
        .flat_map(|tree| tree.paths.iter().flatten().copied())
}

/// Whether simple prices show that nothing moves more than what is known: those that charge
/// for links at ranks, and those that charge for links up to some capacity.
fn hopeless(rows: &Rows, network: &Network, known: f64) -> bool {
    let mut widths = rows.limits.clone();
    widths.sort_by(f64::total_cmp);
    widths.dedup();
    let at_rank = |edge: usize| {
        let edge = network.edges()[edge];
        network.rank_of(edge.from).is_some() || network.rank_of(edge.to).is_some()
    };
    let charged = |test: &dyn Fn(usize) -> bool| {
        let mut prices = vec![0.0; rows.limits.len()];
        for (edge, &row) in rows.row.iter().enumerate() {
            prices[row] = f64::from(u8::from(test(edge)));
        }
        let all: f64 = prices
            .iter()
            .zip(&rows.limits)
            .map(|(price, limit)| price * limit)
            .sum();
        let pair = cheapest_pair(rows, network, &prices);
        let cost = pair.map_or(0.0, |pair| 1.0 - column(rows, &pair).gain(&prices));
        cost > 0.0 && all / cost <= known * (1.0 + CLOSE)
    };
    charged(&at_rank)
        || widths
            .iter()
            .any(|&width| charged(&|edge| rows.limits[rows.row[edge]] <= width))
}

/// The cheapest pair of trees.
fn cheapest_pair(rows: &Rows, network: &Network, prices: &[f64]) -> Option<Pair> {
    let closure = Closure::new(network, &rows.spread(prices));
    let n = network.ranks() as usize;
    match &rows.mates {
        Some(mates) => {
            let parents = rooted_in_the_middle(&spanning(n, &closure)?);
            let distribute = out_tree(&parents, &closure);
            let mut reduce = distribute.clone();
            for path in &mut reduce.paths {
                path.reverse();
                for edge in path {
                    *edge = mates[*edge as usize];
                }
            }
            Some(Pair { reduce, distribute })
        }
        None => {
            let total = |parents: &[usize], cost: &dyn Fn(usize, usize) -> f64| -> f64 {
                let edges = parents
                    .iter()
                    .enumerate()
                    .filter(|(to, from)| *to != **from);
                edges.map(|(to, &from)| cost(from, to)).sum()
            };
            let there = |from: usize, to: usize| closure.distance(from, to);
            let back = |from: usize, to: usize| closure.distance(to, from);
            let pairs = (0..n).filter_map(|root| {
                let outs = cheapest(n, root, there)?;
                let ins = cheapest(n, root, back)?;
                Some((total(&outs, &there) + total(&ins, &back), outs, ins))
            });
            let (_, outs, ins) = pairs.min_by(|one, other| one.0.total_cmp(&other.0))?;
            Some(Pair {
                reduce: in_tree(&ins, &closure),
                distribute: out_tree(&outs, &closure),
            })
        }
    }
}

/// The cheapest spanning tree (Prim), with parents from rank 0.
fn spanning(n: usize, closure: &Closure) -> Option<Vec<usize>> {
    let mut parents = vec![0; n];
    let mut distance: Vec<f64> = (0..n).map(|to| closure.distance(0, to)).collect();
    let mut left: Vec<usize> = (1..n).collect();
    while !left.is_empty() {
        let nearest =
            (0..left.len()).min_by(|&a, &b| distance[left[a]].total_cmp(&distance[left[b]]))?;
        let vertex = left.swap_remove(nearest);
        if distance[vertex].is_infinite() {
            return None;
        }
        for &to in &left {
            if closure.distance(vertex, to) < distance[to] {
                distance[to] = closure.distance(vertex, to);
                parents[to] = vertex;
            }
        }
    }
    Some(parents)
}

/// The same tree with the root in the middle of its longest path.
fn rooted_in_the_middle(parents: &[usize]) -> Vec<usize> {
    let n = parents.len();
    let mut neighbours = vec![Vec::new(); n];
    for (vertex, &parent) in parents.iter().enumerate() {
        if parent != vertex {
            neighbours[vertex].push(parent);
            neighbours[parent].push(vertex);
        }
    }
    let from = |root: usize| -> (Vec<usize>, usize) {
        let mut parents = vec![usize::MAX; n];
        parents[root] = root;
        let mut queue = vec![root];
        let mut head = 0;
        while head < queue.len() {
            let at = queue[head];
            head += 1;
            for &next in &neighbours[at] {
                if parents[next] == usize::MAX {
                    parents[next] = at;
                    queue.push(next);
                }
            }
        }
        (parents, queue[queue.len() - 1])
    };
    let (_, end) = from(0);
    let (parents, other) = from(end);
    let mut path = vec![other];
    while path[path.len() - 1] != end {
        path.push(parents[path[path.len() - 1]]);
    }
    from(path[path.len() / 2]).0
}

fn out_tree(parents: &[usize], closure: &Closure) -> Tree {
    tree(parents, |parent, rank| closure.path(parent, rank))
}

fn in_tree(parents: &[usize], closure: &Closure) -> Tree {
    tree(parents, |parent, rank| closure.path(rank, parent))
}

fn tree(parents: &[usize], path: impl Fn(usize, usize) -> Vec<EdgeId>) -> Tree {
    let root = parents
        .iter()
        .enumerate()
        .find(|(rank, parent)| rank == *parent);
    let paths = parents
        .iter()
        .enumerate()
        .map(|(rank, &parent)| match rank == parent {
            true => Vec::new(),
            false => path(parent, rank),
        });
    Tree {
        root: root.map_or(0, |(root, _)| root) as u32,
        weight: 1,
        paths: paths.collect(),
        parents: parents.iter().map(|&parent| parent as u32).collect(),
    }
}
