//! Rings on small networks, by a linear program.

use unisono_network::{EdgeId, Network, to_f64};

use super::{Ring, Rings, hops, tour};
use crate::closure::Closure;
use crate::lp::Program;
use crate::rows::Rows;
use crate::whole::{fastest, proportions};

/// The most ranks.
const MOST_RANKS: usize = 20;

/// How many columns there are at most.
const MOST_COLUMNS: usize = 400;

/// What whole numbers may cost.
const CLOSE: f64 = 1e-3;

/// What a step costs that only leads through other ranks.
const FAR: f64 = 1e9;

/// The fastest rings by links and switches, each used both ways where the network is the same both
/// ways; none if there is no such ring or the network is too large.
pub(super) fn rings(network: &Network) -> Option<Rings> {
    let n = network.ranks() as usize;
    if !(3..=MOST_RANKS).contains(&n) || !network.groups().is_empty() {
        return None;
    }
    let rows = Rows::new(network);
    let limit = most(network);
    let mut program = Program::new(&rows.limits);
    let first = rows.limits.len();
    let mut found: Vec<Vec<Ring>> = Vec::new();
    for _ in 0..MOST_COLUMNS {
        let prices = program.prices();
        let column = match program.known(&prices) {
            Some(column) => column,
            None => {
                if program.value() >= limit * (1.0 - CLOSE) {
                    break;
                }
                let rings = cheapest(network, &rows, &prices)?;
                let column = rows.column(rings.len() as f64, edges(&rings));
                if column.gain(&prices) < CLOSE {
                    break;
                }
                found.push(rings);
                program.add(column)
            }
        };
        if !program.enter(column) {
            break;
        }
    }
    let value = program.value();
    let (used, amounts): (Vec<usize>, Vec<f64>) = program.solution().unzip();
    let used: Vec<&Vec<Ring>> = used.iter().map(|column| &found[column - first]).collect();
    let weights = proportions(&amounts, value, CLOSE, |weights| {
        let mut loads = vec![0; network.edges().len()];
        let mut total = 0;
        for (rings, weight) in used.iter().zip(weights) {
            total += weight * rings.len() as u64;
            for edge in edges(rings) {
                loads[edge as usize] += weight;
            }
        }
        to_f64(fastest(network, &loads)) * total as f64
    });
    let mut rings = Vec::new();
    for (one, weight) in used
        .into_iter()
        .zip(weights)
        .filter(|(_, weight)| *weight > 0)
    {
        rings.extend(one.iter().map(|ring| Ring {
            weight,
            ..ring.clone()
        }));
    }
    (!rings.is_empty()).then(|| Rings::full_speed(network, rings))
}

fn edges(rings: &[Ring]) -> impl Iterator<Item = EdgeId> {
    let paths = rings.iter().flat_map(|ring| &ring.paths);
    paths.flatten().copied()
}

/// What no rings exceed: what enters or leaves some rank.
fn most(network: &Network) -> f64 {
    let sum = |edges: &[EdgeId]| -> u64 {
        let edges = edges
            .iter()
            .map(|&edge| network.edge(edge).bytes_per_second);
        edges.sum()
    };
    let ranks = 0..network.ranks();
    let each = ranks.map(|rank| sum(network.out_edges(rank)).min(sum(network.in_edges(rank))));
    each.min().unwrap_or(0) as f64
}

/// The cheapest ring, or the cheapest one and the same the other way.
fn cheapest(network: &Network, rows: &Rows, prices: &[f64]) -> Option<Vec<Ring>> {
    let prices = rows.spread(prices);
    let far = FAR * (prices.iter().sum::<f64>() + f64::MIN_POSITIVE);
    let closure = Closure::new(network, &prices);
    let tour = tour::cheapest(network.ranks() as usize, |from, to| {
        closure.distance(from, to).min(far)
    });
    let order: Vec<u32> = tour.iter().map(|&rank| rank as u32).collect();
    let mut paths = Vec::new();
    for (from, to) in hops(&order) {
        let path = closure.path(from as usize, to as usize);
        if path.is_empty() {
            return None;
        }
        paths.push(path);
    }
    let mut rings = vec![Ring {
        order,
        weight: 1,
        paths,
    }];
    rings.extend(rows.mates.as_ref().map(|mates| rings[0].turned(mates)));
    Some(rings)
}

impl Ring {
    /// The same ring the other way.
    fn turned(&self, mates: &[EdgeId]) -> Self {
        let order: Vec<u32> = self.order.iter().rev().copied().collect();
        // The step into the last rank comes first now, and the closing step last again.
        let steps = self.paths.len() - 1;
        let paths = self.paths[..steps].iter().rev().chain([&self.paths[steps]]);
        let turn = |path: &Vec<EdgeId>| -> Vec<EdgeId> {
            path.iter()
                .rev()
                .map(|&edge| mates[edge as usize])
                .collect()
        };
        Self {
            order,
            weight: self.weight,
            paths: paths.map(turn).collect(),
        }
    }
}
