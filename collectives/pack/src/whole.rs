//! Proportions as small whole numbers, and the rate at which links are full.

use unisono_network::Network;

use crate::tree::Unit;

/// The highest rate of weight 1 at which no edge and no group carries more than it can, exactly.
/// `loads` is what each edge carries at weight 1.
pub(crate) fn fastest(network: &Network, loads: &[u64]) -> Unit {
    let mut unit: Option<Unit> = None;
    let mut limit = |numerator: u64, denominator: u64| {
        let slower = |unit: Unit| {
            u128::from(numerator) * u128::from(unit.denominator)
                < u128::from(unit.numerator) * u128::from(denominator)
        };
        if denominator > 0 && unit.is_none_or(slower) {
            unit = Some(Unit {
                numerator,
                denominator,
            });
        }
    };
    for (edge, &load) in network.edges().iter().zip(loads) {
        limit(edge.bytes_per_second, load);
    }
    for group in network.groups() {
        let load = group.edges.iter().map(|&edge| loads[edge as usize]).sum();
        limit(group.bytes_per_second, load);
    }
    unit.unwrap_or(Unit {
        numerator: 1,
        denominator: 1,
    })
}

/// Whole numbers in about these proportions: the smallest for which `rate` is no more than this
/// part below `wanted`, else fine ones.
pub(crate) fn proportions(
    amounts: &[f64],
    wanted: f64,
    part: f64,
    rate: impl Fn(&[u64]) -> f64,
) -> Vec<u64> {
    /// Beyond this, numbers are not small any more.
    const SMALL: u32 = 360;
    /// Fine enough to lose nothing that counts.
    const FINE: f64 = 65536.0;
    let largest = amounts.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return vec![0; amounts.len()];
    }
    let scaled = |largest_weight: f64| -> Vec<u64> {
        let factor = largest_weight / largest;
        amounts
            .iter()
            .map(|&amount| (amount * factor).round() as u64)
            .collect()
    };
    for most in 1..=SMALL {
        let weights = scaled(f64::from(most));
        if rate(&weights) >= wanted * (1.0 - part) {
            return weights;
        }
    }
    scaled(FINE)
}
