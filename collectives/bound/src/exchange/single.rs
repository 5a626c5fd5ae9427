//! Networks on which one class of arcs is in everybody's way: a tree, a line, a narrow link.
//!
//! If even the shortest paths under lengths that only count that class use it as much as paths of the
//! fewest arcs do, then those are a routing and a proof at once.

use crate::Limit;
use crate::collapse::Collapse;
use crate::paths::Paths;
use crate::problem::{Problem, ratio};

/// The rate and the lengths that prove it, if the network is like that.
pub(super) fn solve(problem: &Problem, collapse: &Collapse) -> Option<(Limit, Vec<u64>)> {
    let capacities = collapse.capacities(problem);
    let sources = collapse.ranks(problem);
    let mut paths = Paths::new(problem);
    let mut loads = vec![0u128; capacities.len()];
    for &(rank, times) in &sources {
        paths.from(rank, |_| 1);
        paths.uses(|arc, ranks| {
            loads[collapse.arcs.of(arc) as usize] += u128::from(ranks) * u128::from(times)
        });
    }
    let rates = (0..)
        .zip(&capacities)
        .zip(&loads)
        .filter(|(_, load)| **load > 0);
    let (rate, worst) = rates
        .map(|((class, capacity), load)| (ratio(*capacity, *load), class))
        .min()?;
    let mut needed = 0;
    for &(rank, times) in &sources {
        needed +=
            u128::from(times) * paths.from(rank, |arc| u64::from(collapse.arcs.of(arc) == worst));
    }
    (needed == loads[worst as usize]).then(|| {
        let mut lengths = vec![0; capacities.len()];
        lengths[worst as usize] = 1;
        let all = rate * ratio(u128::from(problem.ranks), 1);
        (Limit::Exact(problem.bytes(all)), lengths)
    })
}
