//! What is left when nothing finer works: a network that is as wide one way as the other, below and
//! above the one there is.
//!
//! Turned around, trees of one network are trees of its mirror image with the directions swapped, so
//! the mean of a network and its mirror image reaches no less than the network itself. And what both
//! have in common reaches no more. Both are symmetric, and exact.

use unisono_network::Rational;

use super::orient;
use crate::cuts;
use crate::problem::{Arc, Problem, ratio};
use crate::{Certificate, Limit};

pub(super) fn solve(problem: &Problem, in_network: bool) -> (Limit, Certificate) {
    let common = both_ways(problem, u64::min);
    let low = if common.is_connected() {
        orient::all_reduce(&common).0.low()
    } else {
        None
    };
    let (mut limit, mut certificate) = narrowest(problem);
    if !in_network {
        let (mean, parts) = orient::all_reduce(&both_ways(problem, |one, other| one + other));
        let mean = mean.high().map(|mean| mean / ratio(2, 1));
        if let Some(mean) = mean.filter(|mean| *mean < limit) {
            (limit, certificate) = (mean, parts.halved());
        }
    }
    let low = low.unwrap_or(Rational::from_integer(0));
    (Limit::between(low.min(limit), limit), certificate)
}

/// The narrowest cut between ranks: what one side has must cross it, or the sum that the other needs.
fn narrowest(problem: &Problem) -> (Rational, Certificate) {
    let (out, certificate) = cuts::broadcast(problem, 0);
    let (back, other) = cuts::broadcast(&problem.reversed(), 0);
    let [out, back] = [out, back].map(|limit| limit.high().unwrap_or(Rational::from_integer(0)));
    if out <= back {
        (out, certificate)
    } else {
        (back, other.mirrored())
    }
}

/// The network whose arcs each carry something of the arc there and the one back.
fn both_ways(problem: &Problem, join: impl Fn(u64, u64) -> u64) -> Problem {
    let capacity = |from: u32, to: u32| {
        let found = problem
            .arcs
            .binary_search_by_key(&(from, to), |arc| (arc.from, arc.to));
        found.map_or(0, |arc| problem.arcs[arc].capacity)
    };
    let mut arcs: Vec<Arc> = problem
        .arcs
        .iter()
        .flat_map(|arc| [(arc.from, arc.to), (arc.to, arc.from)])
        .map(|(from, to)| Arc {
            from,
            to,
            capacity: join(capacity(from, to), capacity(to, from)),
        })
        .filter(|arc| arc.capacity > 0)
        .collect();
    arcs.sort_unstable();
    arcs.dedup();
    Problem {
        arcs,
        ..problem.clone()
    }
}
