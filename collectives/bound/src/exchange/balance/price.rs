//! What a class of arcs costs, by how full it is.

use crate::collapse::Collapse;
use crate::problem::{Problem, power};

/// Loads and prices of classes. Only sums, products and quotients are taken of them, so that every
/// host gets the same.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    /// What flows over all arcs of a class together.
    pub(super) loads: Vec<f64>,
    /// The price of an arc of each class, as loads were when it was last asked for.
    pub(super) now: Vec<f64>,
    totals: Vec<f64>,
    /// One by the capacity of one arc, of the widest.
    narrowness: Vec<f64>,
    power: u32,
    /// How full the fullest class was when prices were last made.
    reference: f64,
}

/// The price of an empty arc, against that of the fullest.
const EMPTY: f64 = 1e-7;

impl Prices {
    pub(super) fn new(problem: &Problem, collapse: &Collapse) -> Self {
        let totals: Vec<f64> = collapse
            .capacities(problem)
            .iter()
            .map(|total| *total as f64)
            .collect();
        let widest = problem
            .arcs
            .iter()
            .map(|arc| arc.capacity)
            .max()
            .unwrap_or(1) as f64;
        let arcs = collapse.arcs.representatives().iter();
        let narrowness: Vec<f64> = arcs
            .map(|arc| widest / problem.arcs[*arc as usize].capacity as f64)
            .collect();
        Self {
            loads: vec![0.0; totals.len()],
            now: narrowness.clone(),
            totals,
            narrowness,
            power: 2,
            reference: 1.0,
        }
    }

    /// The price of an arc of a class under a load.
    pub(super) fn at(&self, class: usize, load: f64) -> f64 {
        let full = load / (self.totals[class] * self.reference);
        (power(full, self.power) + EMPTY) * self.narrowness[class]
    }

    /// How fast that price grows with the load.
    pub(super) fn slope(&self, class: usize, load: f64, price: f64) -> f64 {
        f64::from(self.power) * price / load.max(1e-9 * self.totals[class] * self.reference)
    }

    /// Makes all prices anew, for a power.
    pub(super) fn set_power(&mut self, power: u32) {
        self.power = power;
        self.reference = self.fullest();
        for class in 0..self.loads.len() {
            self.now[class] = self.at(class, self.loads[class]);
        }
    }

    /// How full the fullest class is.
    pub(super) fn fullest(&self) -> f64 {
        let full = self
            .loads
            .iter()
            .zip(&self.totals)
            .map(|(load, total)| load / total);
        full.fold(f64::MIN_POSITIVE, f64::max)
    }

    /// Prices as whole numbers that sums over paths can hold.
    pub(super) fn lengths(&mut self) -> Vec<u64> {
        self.set_power(self.power);
        let highest = self.now.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let scale = (1u64 << 40) as f64 / highest;
        // What an empty arc costs keeps searches from going in circles; a proof does without.
        self.now
            .iter()
            .zip(&self.narrowness)
            .map(|(price, narrow)| ((price - EMPTY * narrow).max(0.0) * scale) as u64)
            .collect()
    }
}
