//! Some classes: the program on floating-point numbers, rows added as they are broken.

use super::layout::Layout;
use super::proof;
use crate::problem::Problem;
use crate::{Certificate, Limit};

/// The most variables of a program that is solved like this.
const VARIABLES: usize = 1500;
/// How often rows are added.
const ROUNDS: usize = 40;
/// The gap that is as good as none: a part of the rate.
const GAP: i128 = 100_000_000;

pub(super) fn solve(problem: &Problem, layout: &Layout<'_>) -> Option<(Limit, Certificate)> {
    if layout.variables() > VARIABLES {
        return None;
    }
    let mut sets = layout.first_sets();
    let mut ends = None;
    let mut found = None;
    for _ in 0..ROUNDS {
        let near = layout.program(&sets).nearly()?;
        let rows = &near.prices[layout.classes() + 1..];
        let (prices, rest) = rows.split_at(sets.len());
        let balance: Vec<f64> = rest.chunks(2).map(|pair| pair[0] - pair[1]).collect();
        let low = proof::low(layout, &near.variables);
        let high = proof::high(layout, &sets, prices, &balance);
        if let (Some(low), Some(high)) = (low, high) {
            let (best_low, best_high) = ends.unwrap_or((low, high));
            ends = Some((low.max(best_low), high.min(best_high)));
            let dear = prices.iter().copied().fold(0.0, f64::max) * 1e-6;
            let priced = sets.iter().zip(prices).filter(|(_, price)| **price > dear);
            found = Some(Certificate::Sets {
                sets: priced.map(|(set, _)| set.inside.clone()).collect(),
                links: near.prices[..layout.classes()]
                    .iter()
                    .zip(layout.collapse.arcs.sizes())
                    .filter(|(price, _)| **price > dear)
                    .map(|(_, size)| *size as usize)
                    .sum(),
            });
        }
        if ends.is_some_and(|(low, high)| (high - low) * GAP < high) {
            break;
        }
        // Rounding breaks rows by a little; what is broken by more is added.
        let scale = (1u64 << 40) as f64 / near.variables.iter().copied().fold(1.0, f64::max);
        let mut whole: Vec<u128> = near
            .variables
            .iter()
            .map(|value| (value * scale) as u128)
            .collect();
        whole[0] = whole[0].saturating_sub(whole[0] >> 28);
        let broken = layout.broken(&whole)?;
        let before = sets.len();
        for set in broken {
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
        if sets.len() == before {
            break;
        }
    }
    let (low, high) = ends?;
    let [low, high] = [low.min(high), high].map(|end| problem.bytes(end));
    Some((Limit::between(low, high), found?))
}
