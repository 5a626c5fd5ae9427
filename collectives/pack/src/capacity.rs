//! Capacities as the constructions use them: whole numbers, none shared, not too long.

use unisono_network::{EdgeId, Network};

use crate::strands::{Strand, Strands};

/// Every edge's own capacity. Where edges share a capacity that is less than their sum, each gets
/// its part in proportion.
pub(crate) fn own(network: &Network) -> Vec<i64> {
    let mut own: Vec<i64> = network
        .edges()
        .iter()
        .map(|edge| edge.bytes_per_second as i64)
        .collect();
    for group in network.groups() {
        let sum: i128 = group
            .edges
            .iter()
            .map(|&edge| i128::from(own[edge as usize]))
            .sum();
        let shared = i128::from(group.bytes_per_second);
        if sum > shared {
            for &edge in &group.edges {
                let one = &mut own[edge as usize];
                *one = (i128::from(*one) * shared / sum) as i64;
            }
        }
    }
    own
}

/// The greatest number that divides all; 0 of nothing.
pub(crate) fn common_divisor(numbers: impl IntoIterator<Item = i64>) -> i64 {
    numbers.into_iter().fold(0, gcd)
}

pub(crate) fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

/// Capacities in units of so many bytes a second.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    /// For each edge.
    pub(crate) capacity: Vec<i64>,
    /// Bytes a second of one unit.
    pub(crate) unit: i64,
}

/// The finest steps in which the smallest capacity is counted: rounding down loses 1 in 512.
const FINEST: i64 = 512;

/// Divides by what all capacities have in common; where that leaves long numbers (measured
/// bandwidths, say), rounds down to steps that lose less than 0.2 % of any link. Long numbers
/// would make many trees of odd weights, for nothing.
pub(crate) fn units(own: &[i64]) -> Units {
    let positive = || own.iter().copied().filter(|&capacity| capacity > 0);
    let smallest = positive().min().unwrap_or(1);
    let unit = common_divisor(positive()).max(smallest / FINEST).max(1);
    Units {
        capacity: own.iter().map(|&capacity| capacity / unit).collect(),
        unit,
    }
}

/// The strands of a network, one for each edge.
pub(crate) fn strands(network: &Network, capacity: &[i64]) -> Strands {
    let mut strands = Strands::new(network.vertices().len());
    for ((id, edge), &capacity) in (0..).zip(network.edges()).zip(capacity) {
        if capacity > 0 {
            let path: Vec<EdgeId> = vec![id];
            strands.add(
                edge.from as usize,
                edge.to as usize,
                Strand { path, capacity },
            );
        }
    }
    strands
}
