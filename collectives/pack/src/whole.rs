//! Proportions as small whole numbers, and the rate at which links are full.

use unisono_network::{Network, Rational};

/// The highest rate of weight 1 at which no edge and no group carries more than it can, exactly.
/// `loads` is what each edge carries at weight 1.
pub(crate) fn fastest(network: &Network, loads: &[u64]) -> Rational {
    let limit =
        |capacity: u64, load: u64| (load > 0).then(|| Rational::new(capacity.into(), load.into()));
    let edges = network.edges().iter().zip(loads);
    let edges = edges.filter_map(|(edge, &load)| limit(edge.bytes_per_second, load));
    let groups = network.groups().iter().filter_map(|group| {
        let load = group.edges.iter().map(|&edge| loads[edge as usize]).sum();
        limit(group.bytes_per_second, load)
    });
    edges.chain(groups).min().unwrap_or(Rational::from(1))
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

/// Whole numbers in about these proportions that add up to `sum`: what is cut off goes to those
/// that lost most.
pub(crate) fn shares(amounts: &[f64], sum: u64) -> Vec<u64> {
    let all: f64 = amounts.iter().sum();
    let exact: Vec<f64> = amounts
        .iter()
        .map(|amount| amount / all * sum as f64)
        .collect();
    let mut shares: Vec<u64> = exact.iter().map(|exact| exact.floor() as u64).collect();
    let mut order: Vec<usize> = (0..amounts.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let missing = sum.saturating_sub(shares.iter().sum());
    for &place in order.iter().cycle().take(missing as usize) {
        shares[place] += 1;
    }
    shares
}
