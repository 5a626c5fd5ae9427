//! Few classes: the program solved exactly, rows added as they are broken.
//!
//! The numbers stay whole, so the answer is a fraction and the flows that look for broken rows leave no
//! doubt.

use num_bigint::BigInt;
use num_traits::{ToPrimitive, Zero};
use unisono_network::Rational;

use super::layout::{Layout, Set};
use crate::linear::Best;
use crate::problem::Problem;
use crate::{Certificate, Limit};

/// The most variables of a program that is solved exactly.
const VARIABLES: usize = 60;
/// How often rows are added before it is given up.
const ROUNDS: usize = 60;

pub(super) fn solve(problem: &Problem, layout: &Layout<'_>) -> Option<(Limit, Certificate)> {
    if layout.variables() > VARIABLES {
        return None;
    }
    let mut sets = layout.first_sets();
    for _ in 0..ROUNDS {
        let best = layout.program(&sets).maximise(20_000)?;
        let whole: Option<Vec<u128>> = best.variables.iter().map(BigInt::to_u128).collect();
        let broken = layout.broken(&whole?)?;
        if broken.is_empty() {
            let rate = Rational::new(best.value.to_i128()?, best.denominator.to_i128()?);
            let certificate = certificate(layout, &best, &sets);
            return Some((Limit::Exact(problem.bytes(rate)), certificate));
        }
        for set in broken {
            if sets.contains(&set) {
                // It cannot be broken and kept; better no answer than an endless one.
                return None;
            }
            sets.push(set);
        }
    }
    None
}

/// The sets that have a price.
fn certificate(layout: &Layout<'_>, best: &Best, sets: &[Set]) -> Certificate {
    let prices = &best.prices[layout.classes() + 1..];
    let priced = sets
        .iter()
        .zip(prices)
        .filter(|(_, price)| !price.is_zero());
    let arcs = layout.collapse.arcs.sizes().iter().zip(&best.prices);
    let links = arcs.filter(|(_, price)| !price.is_zero());
    Certificate::Sets {
        sets: priced.map(|(set, _)| set.inside.clone()).collect(),
        links: links.map(|(size, _)| *size as usize).sum(),
    }
}
