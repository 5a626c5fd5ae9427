//! Capacities as the constructions use them: whole numbers, not too long.

use unisono_network::{Builder, EdgeId, Network, NetworkError};

use crate::strands::{Strand, Strands};

pub(crate) fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

/// The finest steps in which the smallest capacity is counted: rounding down loses 1 in 512.
const FINEST: i64 = 512;

/// The most that a capacity may be, so that sums of products with counts of ranks fit.
const LONGEST: i64 = 1 << 40;

/// The network with capacities in units of what they all have in common; where that leaves long
/// numbers (measured bandwidths, say), rounded down to steps that lose less than 0.2 % of any
/// link. Long numbers would make many trees of odd weights, for nothing. No shared capacities.
pub(crate) fn rounded(network: &Network) -> Result<Network, NetworkError> {
    let own = || {
        network
            .edges()
            .iter()
            .map(|edge| edge.bytes_per_second as i64)
    };
    let smallest = own().min().unwrap_or(1);
    let largest = own().max().unwrap_or(1);
    let unit = own()
        .fold(0, gcd)
        .max(smallest / FINEST)
        .max(largest / LONGEST)
        .max(1);
    let mut builder = Builder::new(network.ranks());
    for _ in network.ranks()..network.vertices().len() as u32 {
        builder.switch(false);
    }
    for (edge, own) in network.edges().iter().zip(own()) {
        builder.edge(edge.from, edge.to, (own / unit).max(1) as u64, 0);
    }
    builder.build()
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
