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
/// How often weights move after each pass over the edges.
const MOVES: usize = 8;
/// How much of what an edge gives to one use can be taken away at once.
const MOST: f64 = 0.9999;
/// The gap that is good enough to stop: one part in so many.
const GAP: i128 = 400;

pub(super) fn solve(problem: &Problem, layout: &Layout<'_>) -> Option<(Limit, Certificate)> {
    if !layout.balanced().is_empty() {
        return None;
    }
    let mut game = Game::new(layout);
    let (mut low, mut high) = (None, None);
    let mut prices = Vec::new();
    for _ in 0..ROUNDS {
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
    /// For each class of ranks, the sets of which it is outside by more or less than most classes are,
    /// and by which part of itself.
    outside: Vec<Vec<(u32, f64)>>,
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
            outside: vec![Vec::new(); layout.ranks.len()],
        };
        layout
            .first_sets()
            .into_iter()
            .for_each(|set| game.add(set));
        game
    }

    /// Adds a set, unless it is there or holds all ranks.
    fn add(&mut self, set: Set) {
        let parts = self.layout.ranks.iter().zip(&set.ranks);
        let parts: Vec<f64> = parts
            .map(|((_, size), count)| 1.0 - f64::from(*count) / f64::from(*size))
            .collect();
        if parts.iter().all(|part| *part == 0.0) || self.sets.contains(&set) {
            return;
        }
        let id = self.sets.len() as u32;
        let most = f64::from(u8::from(
            parts.iter().sum::<f64>() * 2.0 > parts.len() as f64,
        ));
        for (class, part) in parts.iter().enumerate() {
            if *part != most {
                self.outside[class].push((id, part - most));
            }
        }
        let weights = (0..parts.len()).map(|class| self.weight(class));
        self.needs.push(
            weights
                .zip(&parts)
                .map(|(weight, part)| weight * part)
                .sum(),
        );
        let mut cover = 0.0;
        for &(class, count) in &set.arcs {
            let variable = self.layout.used(class as usize, set.inward);
            self.uses[variable].push((id, f64::from(count)));
            cover += f64::from(count) * self.values[variable];
        }
        self.covers.push(cover);
        self.sets.push(set);
    }

    /// The weight of all ranks of a class together.
    fn weight(&self, class: usize) -> f64 {
        self.values[self.layout.weight(class)] * f64::from(self.layout.ranks[class].1)
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
            .filter(|(_, need)| **need > 1e-9)
            .map(|(cover, need)| cover / need);
        rates.fold(f64::INFINITY, f64::min)
    }

    /// What one more unit across a set is worth, at a rate that just holds.
    fn price(&self, set: u32, cover: f64, rate: f64, power: u32) -> f64 {
        let cover = cover.max(f64::MIN_POSITIVE);
        shortage(rate * self.needs[set as usize] / cover, power) / cover
    }

    fn prices(&self, power: u32) -> Vec<f64> {
        let rate = self.poorest();
        (0..)
            .zip(&self.covers)
            .map(|(set, cover)| self.price(set, *cover, rate, power))
            .collect()
    }

    /// Divides each class of edges anew, then moves weights.
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
        for _ in 0..MOVES {
            if !self.move_weight(rate, power) {
                break;
            }
        }
    }

    /// What one more unit of need of a set costs.
    fn burden(&self, set: u32, need: f64, rate: f64, power: u32) -> f64 {
        let cover = self.covers[set as usize].max(f64::MIN_POSITIVE);
        shortage(rate * need.max(0.0) / cover, power - 1) * rate / cover
    }

    /// Moves weight from the ranks where it eases sets least to those where it does most. False if
    /// there is nothing to gain.
    fn move_weight(&mut self, rate: f64, power: u32) -> bool {
        let burdens: Vec<f64> = self
            .outside
            .iter()
            .map(|sets| {
                sets.iter()
                    .map(|&(set, part)| {
                        part * self.burden(set, self.needs[set as usize], rate, power)
                    })
                    .sum()
            })
            .collect();
        let by_burden = |one: &usize, other: &usize| burdens[*one].total_cmp(&burdens[*other]);
        let to = (0..burdens.len()).min_by(by_burden);
        let from = (0..burdens.len())
            .filter(|class| self.weight(*class) > 0.0)
            .max_by(by_burden);
        let (Some(from), Some(to)) = (from, to) else {
            return false;
        };
        if burdens[from] - burdens[to] <= 1e-6 * (burdens[from].abs() + burdens[to].abs()) {
            return false;
        }
        let changes: Vec<(u32, f64)> = self.outside[to]
            .iter()
            .copied()
            .chain(self.outside[from].iter().map(|(set, part)| (*set, -part)))
            .collect();
        let limit = self.weight(from);
        // Bisection: burdens grow too steeply for anything cleverer to be safe.
        let (mut low, mut high) = (0.0, limit);
        for _ in 0..30 {
            let middle = (low + high) / 2.0;
            let slope: f64 = changes
                .iter()
                .map(|&(set, part)| {
                    part * self.burden(set, self.needs[set as usize] + part * middle, rate, power)
                })
                .sum();
            if slope < 0.0 {
                low = middle
            } else {
                high = middle
            }
        }
        for &(set, part) in &changes {
            self.needs[set as usize] = (self.needs[set as usize] + part * low).max(0.0);
        }
        let [from_each, to_each] =
            [from, to].map(|class| low / f64::from(self.layout.ranks[class].1));
        let from = self.layout.weight(from);
        self.values[from] = (self.values[from] - from_each).max(0.0);
        self.values[self.layout.weight(to)] += to_each;
        low > 1e-9
    }

    fn divide(&mut self, one: usize, other: usize, rate: f64, power: u32) {
        let (have_one, have_other) = (self.values[one], self.values[other]);
        let earns = |game: &Self, variable: usize, change: f64| -> (f64, f64) {
            let (mut sum, mut slope) = (0.0, 0.0);
            for &(set, count) in &game.uses[variable] {
                let cover = game.covers[set as usize] + count * change;
                let price = game.price(set, cover, rate, power) * count;
                sum += price;
                slope += price * count * f64::from(power + 1) / cover.max(f64::MIN_POSITIVE);
            }
            (sum, slope)
        };
        // Newton's method between two ends that close in, as far as values stay positive.
        let (mut least, mut most) = (-have_one * MOST, have_other * MOST);
        let mut change = 0.0;
        for _ in 0..16 {
            let (first, first_slope) = earns(self, one, change);
            let (second, second_slope) = earns(self, other, -change);
            let gain = first - second;
            if gain == 0.0 {
                break;
            }
            if gain > 0.0 {
                least = change
            } else {
                most = change
            }
            let step = change + gain / (first_slope + second_slope);
            let next = if step > least && step < most {
                step
            } else {
                (least + most) / 2.0
            };
            let near = (next - change).abs() <= 1e-4 * next.abs()
                || most - least <= 1e-9 * (have_one + have_other);
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
                // More than all that is wanted is as good as that.
                let used = (self.values[self.layout.used(class, inward)] * scale) as u64;
                let used = used.min(1 << 44);
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

/// A high power of how short a set is, one if it just holds; kept finite.
fn shortage(ratio: f64, power: u32) -> f64 {
    raised(ratio.min(1.0 + 500.0 / f64::from(power)), power)
}
