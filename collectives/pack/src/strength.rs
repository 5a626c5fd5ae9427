//! How much weight of trees fits: the bound that the packing then reaches.
//!
//! Trees with roots of given weights fit when enough flows to every rank. The most that a common
//! factor of the weights can be is a ratio of a cut and the weights on its side; it is found by
//! Dinkelbach's iteration on maximum flows, exactly.

use unisono_network::Network;

use crate::capacity::gcd;
use crate::error::PackError;
use crate::flow::{Residual, UNBOUNDED};

/// The largest factor of `weights` that fits, as a fraction of capacities.
///
/// # Errors
/// If some rank cannot be reached from a root.
pub(crate) fn strength(
    network: &Network,
    capacity: &[i64],
    weights: &[i64],
) -> Result<(i64, i64), PackError> {
    let n = network.vertices().len();
    let ranks = network.ranks() as usize;
    let total: i64 = weights.iter().sum();
    // From any rank the rest must be reached: begin with what all edges together carry.
    let mut best = (capacity.iter().sum::<i64>(), 1);
    for rank in 0..ranks {
        // Each round finds a smaller ratio; there are finitely many cuts.
        loop {
            let (numerator, denominator) = best;
            let mut flow = Residual::new(n + 1);
            for (edge, &capacity) in network.edges().iter().zip(capacity) {
                flow.add(edge.from as usize, edge.to as usize, capacity * denominator);
            }
            for (root, &weight) in weights.iter().enumerate() {
                flow.add(n, root, weight * numerator);
            }
            let wanted = total * numerator;
            if flow.augment(n, rank, UNBOUNDED.min(wanted)) == wanted {
                break;
            }
            let near = flow.reachable(n);
            let crossing: i64 = network
                .edges()
                .iter()
                .zip(capacity)
                .filter(|(edge, _)| near[edge.from as usize] && !near[edge.to as usize])
                .map(|(_, &capacity)| capacity)
                .sum();
            let inside = (0..ranks).filter(|&root| near[root]);
            let weight: i64 = inside.clone().map(|root| weights[root]).sum();
            if crossing == 0 {
                let from = inside.clone().find(|&root| weights[root] > 0);
                return Err(PackError::Unreachable {
                    from: from.unwrap_or(0) as u32,
                    to: rank as u32,
                });
            }
            let divisor = gcd(crossing, weight);
            best = (crossing / divisor, weight / divisor);
        }
    }
    Ok(best)
}
