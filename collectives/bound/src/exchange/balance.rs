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

use unisono_network::Rational;

use self::flows::Flows;
use self::price::Prices;
use crate::Limit;
use crate::collapse::Collapse;
use crate::paths::Paths;
use crate::problem::{Problem, ratio};

/// How many flows are kept at most, one for each source and arc, four bytes each.
const FLOWS: usize = 1 << 25;
/// How many of them may be looked at in all: some seconds.
const WORK: u64 = 500_000_000;
/// The powers that prices go through. The first ones prove the rate from above, the last ones reach it.
const POWERS: std::ops::RangeInclusive<u32> = 3..=20;
/// The gap that is good enough to stop.
const GAP: f64 = 0.005;

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
        if pass % 4 == 3 || pass + 1 == passes {
            flows.recount(&mut prices);
            best.see_flows(problem, &prices);
            best.see_lengths(problem, collapse, &mut paths, prices.lengths());
            if std::env::var("V").is_ok() {
                println!(
                    "pass {pass}/{passes} power {power} {:?} {:?}",
                    best.low,
                    best.high.as_ref().map(|h| unisono_network::to_f64(h.0))
                );
            }
            if best.is_narrow() {
                break;
            }
        }
    }
    best.limit(problem)
}

/// The best ends so far, for one pair.
#[derive(Default)]
struct Interval {
    low: f64,
    high: Option<(Rational, Vec<u64>)>,
}

impl Interval {
    /// Flows reach what their fullest arc allows.
    fn see_flows(&mut self, _problem: &Problem, prices: &Prices) {
        // Loads are sums of rounded numbers; a billionth is far more than they are off by.
        self.low = self.low.max((1.0 - 1e-9) / prices.fullest());
    }

    /// Lengths are a proof, checked on whole numbers.
    fn see_lengths(
        &mut self,
        problem: &Problem,
        collapse: &Collapse,
        paths: &mut Paths,
        lengths: Vec<u64>,
    ) {
        let mut room = 0;
        for (id, arc) in (0..).zip(&problem.arcs) {
            room += u128::from(arc.capacity) * u128::from(lengths[collapse.arcs.of(id) as usize]);
        }
        let mut distance = 0;
        for (rank, times) in collapse.ranks(problem) {
            distance +=
                u128::from(times) * paths.from(rank, |arc| lengths[collapse.arcs.of(arc) as usize]);
        }
        if distance == 0 {
            return;
        }
        let rate = ratio(room, distance);
        if self.high.as_ref().is_none_or(|(high, _)| rate < *high) {
            self.high = Some((rate, lengths));
        }
    }

    fn is_narrow(&self) -> bool {
        let high = self
            .high
            .as_ref()
            .map_or(f64::INFINITY, |(high, _)| unisono_network::to_f64(*high));
        high <= self.low * (1.0 + GAP)
    }

    fn limit(self, problem: &Problem) -> Option<(Limit, Vec<u64>)> {
        let (high, lengths) = self.high?;
        let ranks = ratio(u128::from(problem.ranks), 1);
        // Eleven digits, rounded down.
        let scale = 10f64.powi(11 - self.low.log10().ceil() as i32);
        let low = ratio((self.low * scale) as u128, 1) / Rational::approximate_float(scale)?;
        let ends = [low, high].map(|end| problem.bytes(end * ranks));
        Some((Limit::between(ends[0].min(ends[1]), ends[1]), lengths))
    }
}
