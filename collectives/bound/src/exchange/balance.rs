//! Many classes: all flows kept and evened out, until what is left to gain is small.
//!
//! Lengths that nearly prove a rate, and flows that nearly reach it, come from one game: each class of
//! arcs has a price that grows as a high power of how full it is, and the flows of each source move
//! from dear paths to cheap ones until all that it uses cost the same. Traffic engineers call that an
//! equilibrium, and this is their best method for it (Dial's algorithm B): each source keeps its flows
//! on an acyclic part of the network, and at each vertex shifts flow from the dearest used way to the
//! cheapest one, as far back as the two differ. The higher the power, the closer the fullest arc comes
//! to the best there is.
//!
//! Prices are then lengths, whatever state the flows are in, and flows are a routing, whatever the
//! prices are: both ends of the interval are proved by themselves.

mod flows;
mod incoming;
mod price;

use self::flows::Flows;
use self::price::Prices;
use super::interval::Interval;
use crate::Limit;
use crate::collapse::Collapse;
use crate::paths::Paths;
use crate::problem::Problem;

/// How many flows are kept at most, one for each source and arc, four bytes each.
const FLOWS: usize = 1 << 25;
/// How many of them may be looked at in all: some seconds.
const WORK: u64 = 500_000_000;
/// The powers that prices go through. The first ones prove the rate from above, the last ones reach it.
const POWERS: std::ops::RangeInclusive<u32> = 3..=20;
/// The gap that is good enough to stop.
const GAP: f64 = 0.012;

/// The rate, between two proved ones, and the lengths that prove the upper one. `None` if there are
/// too many flows to keep.
pub(super) fn solve(problem: &Problem, collapse: &Collapse) -> Option<(Limit, Vec<u64>)> {
    let sources = collapse.ranks(problem);
    let flows = problem.arcs.len().checked_mul(sources.len());
    if flows.is_none_or(|flows| flows > FLOWS) {
        return None;
    }
    let mut paths = Paths::new(problem);
    let mut prices = Prices::new(problem, collapse);
    let mut flows = Flows::new(problem, collapse, &mut paths, &mut prices);
    let passes = usize::try_from(WORK / flows.len().max(1) as u64)
        .unwrap_or(usize::MAX)
        .clamp(8, 4000);
    let mut best = Interval::default();
    for pass in 0..passes {
        let steps = (POWERS.end() - POWERS.start()) as usize + 1;
        let power = 1 << (POWERS.start() + (pass * steps / passes) as u32);
        prices.set_power(power.min(1 << POWERS.end()));
        flows.even_out(&mut prices);
        if pass % 3 == 2 || pass + 1 == passes {
            flows.recount(&mut prices);
            best.see_congestion(prices.fullest());
            best.see_lengths(problem, collapse, &mut paths, prices.lengths());
            if best.is_narrow(GAP) {
                break;
            }
        }
    }
    best.limit(problem)
}
