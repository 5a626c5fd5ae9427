//! Many classes: each edge moves between its two uses until all sets are covered alike.
//!
//! Every set of vertices has a price that grows as a high power of how short it is of what it needs,
//! and every edge is divided so that its two uses earn the same. One edge at a time, that is a search
//! for one number; the higher the power, the closer the poorest set comes to the best there is. Sets
//! that are broken all the same are found by flows, and join. The prices then prove the rate from
//! above, the division of edges from below.
//!
//! Switches that send on as much as they get tie edges to each other, which this cannot do.

use unisono_network::flow::{Capacity, Flow};

use super::layout::{Layout, Set};
use super::proof;
use crate::problem::{Problem, power as raised};
use crate::{Certificate, Limit};

/// How often sets are added.
const ROUNDS: usize = 12;
/// The powers that prices go through in a round, and how often all edges move at each.
const POWERS: [u32; 6] = [8, 32, 128, 512, 2048, 8192];
const PASSES: usize = 12;
/// The gap that is good enough to stop: one part in so many.
const GAP: i128 = 400;

pub(super) fn solve(problem: &Problem, layout: &Layout<'_>) -> Option<(Limit, Certificate)> {
    if !layout.balanced().is_empty() {
        return None;
    }
    let mut game = Game::new(layout);
    let (mut low, mut high) = (None, None);
    let mut prices = Vec::new();
    for round in 0..ROUNDS {
        for power in POWERS {
            for _ in 0..PASSES {
                game.pass(power);
            }
            let now = game.prices(power);
            let end = proof::high(layout, &game.sets, &now, &[]);
            if end.is_some() && (high.is_none() || end < high) {
                (high, prices) = (end, now);
            }
        }
        low = low.max(proof::low(layout, &game.solution()));
        if std::env::var("V").is_ok() {
            println!(
                "round {round} sets {} low {:?} high {:?} poorest {}",
                game.sets.len(),
                low.map(unisono_network::to_f64),
                high.map(unisono_network::to_f64),
                game.poorest()
            );
        }
        if let (Some(low), Some(high)) = (low, high)
            && (high - low) * GAP < high
        {
            break;
        }
        let broken = game.broken();
        let before = game.sets.len();
        broken.into_iter().for_each(|set| game.add(set));
        if game.sets.len() == before {
            break;
        }
    }
    let (low, high) = (low?, high?);
    let dear = prices.iter().copied().fold(0.0, f64::max) * 1e-6;
    let priced = game
        .sets
        .into_iter()
        .zip(prices)
        .filter(|(_, price)| *price > dear);
    let certificate = Certificate::Sets {
        sets: priced.map(|(set, _)| set.inside).collect(),
        links: problem.arcs.len(),
    };
    let [low, high] = [low.min(high), high].map(|end| problem.bytes(end));
    Some((Limit::between(low, high), certificate))
}

/// How edges are divided, and how well that covers sets.
struct Game<'a> {
    layout: &'a Layout<'a>,
    /// Variables as in the layout: the rate is not used, weights sum to one over all ranks.
    values: Vec<f64>,
    sets: Vec<Set>,
    /// For each set, what crosses it, and the weight outside.
    covers: Vec<f64>,
    needs: Vec<f64>,
    /// For each variable, the sets whose arcs it counts for, and how often.
    uses: Vec<Vec<(u32, f64)>>,
}

impl<'a> Game<'a> {
    fn new(layout: &'a Layout<'a>) -> Self {
        let mut values = vec![0.0; layout.variables()];
        let ranks = f64::from(layout.problem.ranks);
        for class in 0..layout.ranks.len() {
            values[layout.weight(class)] = 1.0 / ranks;
        }
        for class in 0..layout.classes() {
            for inward in [false, true] {
                values[layout.used(class, inward)] = layout.capacity(class) / 2.0;
            }
        }
        let mut game = Self {
            layout,
            uses: vec![Vec::new(); values.len()],
            values,
            sets: Vec::new(),
            covers: Vec::new(),
            needs: Vec::new(),
        };
        layout
            .first_sets()
            .into_iter()
            .for_each(|set| game.add(set));
        game
    }

    /// Adds a set, unless it is there or needs nothing.
    fn add(&mut self, set: Set) {
        let inside: f64 = set
            .ranks
            .iter()
            .enumerate()
            .map(|(class, count)| f64::from(*count) * self.values[self.layout.weight(class)])
            .sum();
        if inside >= 1.0 - 1e-9 || self.sets.contains(&set) {
            return;
        }
        let id = self.sets.len() as u32;
        let mut cover = 0.0;
        for &(class, count) in &set.arcs {
            let variable = self.layout.used(class as usize, set.inward);
            self.uses[variable].push((id, f64::from(count)));
            cover += f64::from(count) * self.values[variable];
        }
        self.covers.push(cover);
        self.needs.push(1.0 - inside);
        self.sets.push(set);
    }

    /// The variables as programs have them: weights sum to the rate.
    fn solution(&self) -> Vec<f64> {
        let rate = self.poorest();
        let mut values = self.values.clone();
        for class in 0..self.layout.ranks.len() {
            values[self.layout.weight(class)] *= rate;
        }
        values
    }

    /// The rate that the poorest set allows.
    fn poorest(&self) -> f64 {
        let rates = self
            .covers
            .iter()
            .zip(&self.needs)
            .map(|(cover, need)| cover / need);
        rates.fold(f64::INFINITY, f64::min)
    }

    /// What one more unit across a set is worth, at a rate that just holds.
    fn price(&self, set: u32, cover: f64, rate: f64, power: u32) -> f64 {
        let need = self.needs[set as usize];
        raised(rate * need / cover.max(1e-6 * rate * need), power) / cover.max(1e-6 * rate * need)
    }

    fn prices(&self, power: u32) -> Vec<f64> {
        let rate = self.poorest();
        (0..)
            .zip(&self.covers)
            .map(|(set, cover)| self.price(set, *cover, rate, power))
            .collect()
    }

    /// Divides each class of edges anew.
    fn pass(&mut self, power: u32) {
        let rate = self.poorest();
        for class in 0..self.layout.classes() {
            let (one, other) = (
                self.layout.used(class, false),
                self.layout.used(class, true),
            );
            // With mirrored trees each pair of classes comes twice, and one may be its own mirror.
            if one < other || self.layout.mirror.is_none() {
                self.divide(one, other, rate, power);
            }
        }
    }

    fn divide(&mut self, one: usize, other: usize, rate: f64, power: u32) {
        let (have_one, have_other) = (self.values[one], self.values[other]);
        let earns = |game: &Self, variable: usize, change: f64| -> (f64, f64) {
            let (mut sum, mut slope) = (0.0, 0.0);
            for &(set, count) in &game.uses[variable] {
                let cover = game.covers[set as usize] + count * change;
                let price = game.price(set, cover, rate, power) * count;
                sum += price;
                slope += price * count * f64::from(power + 1) / cover.max(1e-12);
            }
            (sum, slope)
        };
        let mut change = 0.0;
        for _ in 0..4 {
            let (first, first_slope) = earns(self, one, change);
            let (second, second_slope) = earns(self, other, -change);
            let slope = first_slope + second_slope;
            if slope <= 0.0 || !slope.is_finite() {
                break;
            }
            let next = (change + (first - second) / slope).clamp(-have_one, have_other);
            let near = (next - change).abs() <= 1e-3 * next.abs();
            change = next;
            if near {
                break;
            }
        }
        self.values[one] += change;
        self.values[other] -= change;
        for (variable, change) in [(one, change), (other, -change)] {
            for &(set, count) in &self.uses[variable] {
                self.covers[set as usize] += count * change;
            }
        }
    }

    /// Sets that are covered worse than the poorest known one, as far as one sweep finds them: who
    /// has been asked counts as a source, as if its set had held.
    fn broken(&self) -> Vec<Set> {
        let problem = self.layout.problem;
        let rate = self.poorest();
        let scale = (1u64 << 44) as f64 / rate;
        let mut broken = Vec::new();
        for &inward in self.layout.directions() {
            let arcs = (0..).zip(&problem.arcs).map(|(id, arc)| {
                let class = self.layout.collapse.arcs.of(id) as usize;
                let used = (self.values[self.layout.used(class, inward)] * scale) as u64;
                let (from, to) = if inward {
                    (arc.to, arc.from)
                } else {
                    (arc.from, arc.to)
                };
                (from, to, used)
            });
            let mut flow: Flow<u64> = Flow::new(problem.vertices, arcs);
            let share = |rank: u32| {
                let weight = self
                    .layout
                    .class_of(rank)
                    .map_or(0.0, |class| self.values[self.layout.weight(class)]);
                (weight * rate * scale) as u64
            };
            for rank in 0..problem.ranks {
                flow.set_supply(rank, share(rank));
            }
            let wanted = ((1u64 << 44) as f64 * (1.0 - 1e-6)) as u64;
            for rank in problem.by_distance(0) {
                if flow.send(rank, wanted) < wanted {
                    broken.push(self.layout.set(inward, |vertex| flow.reaches(vertex)));
                }
                flow.set_supply(rank, Capacity::UNLIMITED);
            }
        }
        broken
    }
}
