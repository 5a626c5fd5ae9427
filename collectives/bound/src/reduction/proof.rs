//! Both ends of a rate, proved from proposals that need not be exact.

use unisono_network::{Rational, to_f64};

use super::layout::{Layout, Set};
use crate::cuts;
use crate::problem::{Arc, Problem, below, ratio};

/// What proposals are multiplied by before they are cut to whole numbers: the largest becomes this.
const SCALE: f64 = (1u64 << 36) as f64;

/// What trees reach at the least that use so much of each class of arcs, with such weights of roots;
/// variables as in the layout.
///
/// Each direction of the trees is a cut problem by itself: the least, over all sets, of what enters
/// by the weight outside, times all weights.
pub(super) fn low(layout: &Layout<'_>, variables: &[f64]) -> Option<Rational> {
    let problem = layout.problem;
    let widest = problem.arcs.iter().map(|arc| arc.capacity).max()? as f64;
    let scale = SCALE / widest;
    let weight = |rank| Some((variables[layout.weight(layout.class_of(rank)?)] * scale) as u128);
    let weights: Option<Vec<u128>> = (0..problem.ranks).map(weight).collect();
    let mut weights = weights?;
    // A trace of weight would ask for as much of a trace of an edge, and both are only noise.
    let trace = weights.iter().sum::<u128>() >> 22;
    weights
        .iter_mut()
        .filter(|weight| **weight < trace)
        .for_each(|weight| *weight = 0);
    let total: u128 = weights.iter().sum();
    let mut least: Option<Rational> = None;
    for &inward in layout.directions() {
        let used = used(layout, variables, inward, scale);
        let rate = cuts::rate(&used, &weights)? * ratio(total, 1);
        least = Some(least.map_or(rate, |least: Rational| least.min(rate)));
    }
    // Numbers were cut, so switches are out of balance by some units in 2^36; a billionth is more than
    // that makes on the way through all of them.
    below(to_f64(least?) / scale * (1.0 - 1e-9))
}

/// What trees of one direction use of each arc, turned around for those that go inward.
fn used(layout: &Layout<'_>, variables: &[f64], inward: bool, scale: f64) -> Problem {
    let problem = layout.problem;
    let arcs = (0..).zip(&problem.arcs).map(|(id, arc)| {
        let class = layout.collapse.arcs.of(id) as usize;
        let [own, other] =
            [inward, !inward].map(|inward| variables[layout.used(class, inward)].max(0.0));
        // Both together fit, whatever the solver says.
        let fit = (arc.capacity as f64 / (own + other)).min(1.0);
        let capacity = (own * fit * scale) as u64;
        let (from, to) = if inward {
            (arc.to, arc.from)
        } else {
            (arc.from, arc.to)
        };
        Arc { from, to, capacity }
    });
    let mut arcs: Vec<Arc> = arcs.filter(|arc| arc.capacity > 0).collect();
    arcs.sort_unstable();
    Problem {
        arcs,
        ..problem.clone()
    }
}

/// What no trees exceed, by prices of sets and of the balance of switches.
///
/// Add up the rows, each times its price: `W Σy ≤ Σ o·A + Σ i·B + Σ w·D`. Of each arc the dearer use
/// counts, and as weights sum to `W`, the dearest rank: `W (Σy − max D) ≤ Σ b·max(A, B)`.
pub(super) fn high(
    layout: &Layout<'_>,
    sets: &[Set],
    prices: &[f64],
    balance: &[f64],
) -> Option<Rational> {
    let highest = prices
        .iter()
        .chain(balance)
        .fold(f64::MIN_POSITIVE, |highest, price| highest.max(price.abs()));
    let whole = |price: &f64| (price / highest * (1u64 << 32) as f64) as i128;
    let mut uses = vec![0i128; layout.variables()];
    let mut ranks = vec![0i128; layout.ranks.len()];
    let mut sum = 0;
    for (set, price) in sets.iter().zip(prices) {
        let price = whole(price).max(0);
        sum += price;
        for &(class, count) in &set.arcs {
            uses[layout.used(class as usize, set.inward)] += price * i128::from(count);
        }
        for (rank, count) in ranks.iter_mut().zip(&set.ranks) {
            *rank += price * i128::from(*count);
        }
    }
    let mut prices = balance.iter();
    for switch in layout.balanced() {
        for &inward in layout.directions() {
            let price = prices.next().map_or(0, whole);
            for (variable, sign) in layout.surplus(switch, inward) {
                uses[variable] += price * sign;
            }
        }
    }
    let dearest = ranks
        .iter()
        .zip(&layout.ranks)
        .map(|(price, (_, size))| Rational::new(*price, i128::from(*size)))
        .max()?;
    let per_rate = Rational::from_integer(sum) - dearest;
    if per_rate <= Rational::from_integer(0) {
        return None;
    }
    // Twice what all classes are worth, as a class that is its own mirror counts half.
    let mut worth = 0;
    for (class, &arc) in layout.collapse.arcs.representatives().iter().enumerate() {
        let capacity = i128::from(layout.problem.arcs[arc as usize].capacity);
        let pair = [false, true].map(|inward| uses[layout.used(class, inward)].max(0));
        worth += match &layout.mirror {
            // Each pair of classes comes twice, and a class that is its own mirror once.
            Some(_) => capacity * pair[0].max(pair[1]),
            None => 2 * capacity * pair[0].max(pair[1]),
        };
    }
    Some(Rational::from_integer(worth) / (per_rate * Rational::from_integer(2)))
}
