//! A network as bounds see it: one arc between two vertices, and shared capacities as vertices.

use num_integer::Integer;
use unisono_network::{Network, Rational, VertexId, flow::Capacity, flow::Flow};

/// Arcs and ranks.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// How many ranks; they are the first vertices.
    pub(crate) ranks: u32,
    /// How many vertices, ranks included.
    pub(crate) vertices: u32,
    /// What capacities are counted in, in bytes a second: their greatest common divisor.
    pub(crate) unit: u64,
    /// Arcs in order of their ends, no two between the same ends.
    pub(crate) arcs: Vec<Arc>,
    /// For each vertex, whether it is a switch that reduces.
    pub(crate) reduces: Vec<bool>,
}

/// All edges from one vertex to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arc {
    pub(crate) from: VertexId,
    pub(crate) to: VertexId,
    /// In units.
    pub(crate) capacity: u64,
}

impl Problem {
    pub(crate) fn new(network: &Network) -> Self {
        let capacities = network.edges().iter().map(|edge| edge.bytes_per_second);
        let unit = capacities
            .fold(0, |unit: u64, capacity| unit.gcd(&capacity))
            .max(1);
        let mut arcs: Vec<Arc> = network
            .edges()
            .iter()
            .map(|edge| Arc {
                from: edge.from,
                to: edge.to,
                capacity: edge.bytes_per_second / unit,
            })
            .collect();
        arcs.sort_unstable();
        arcs.dedup_by(|next, kept| {
            let same = (next.from, next.to) == (kept.from, kept.to);
            if same {
                kept.capacity = kept.capacity.saturating_add(next.capacity);
            }
            same
        });
        let vertices = network.vertices().len() as u32;
        Self {
            ranks: network.ranks(),
            vertices,
            unit,
            arcs,
            reduces: (0..vertices)
                .map(|vertex| network.reduces(vertex))
                .collect(),
        }
    }

    /// A rate in units as bytes a second.
    pub(crate) fn bytes(&self, rate: Rational) -> Rational {
        rate * ratio(u128::from(self.unit), 1)
    }

    /// All capacities together.
    pub(crate) fn total(&self) -> u128 {
        self.arcs.iter().map(|arc| u128::from(arc.capacity)).sum()
    }

    /// Whether sums of capacities, each so many times, and of supplies fit 64 bits.
    pub(crate) fn fits_u64(&self, times: u128, supplies: u128) -> bool {
        let sum = self.total().checked_mul(times);
        let sum = sum.and_then(|sum| sum.checked_add(supplies));
        sum.is_some_and(|sum| sum < 1 << 63)
    }

    /// Whether every arc is as wide as the one back.
    pub(crate) fn is_symmetric(&self) -> bool {
        self.reversed().arcs == self.arcs
    }

    /// Whether as much can leave every switch as can enter it.
    pub(crate) fn is_balanced(&self) -> bool {
        let switches = self.ranks as usize..;
        self.arriving()[switches.clone()] == self.reversed().arriving()[switches]
    }

    /// The same problem with every arc the other way.
    pub(crate) fn reversed(&self) -> Self {
        let mut reversed = self.clone();
        for arc in &mut reversed.arcs {
            (arc.from, arc.to) = (arc.to, arc.from);
        }
        reversed.arcs.sort_unstable();
        reversed
    }

    /// Whether every rank reaches every other.
    pub(crate) fn is_connected(&self) -> bool {
        let all = self.ranks as usize;
        self.reached(0).len() == all && self.reversed().reached(0).len() == all
    }

    /// No flow yet, each capacity so many times.
    pub(crate) fn flow<C: Capacity + TryFrom<u128>>(&self, times: u128) -> Flow<C> {
        let scaled = |arc: &Arc| {
            let capacity = C::try_from(u128::from(arc.capacity) * times);
            (arc.from, arc.to, capacity.unwrap_or(C::UNLIMITED))
        };
        Flow::new(self.vertices, self.arcs.iter().map(scaled))
    }

    /// What enters each vertex.
    pub(crate) fn arriving(&self) -> Vec<u128> {
        let mut sums = vec![0; self.vertices as usize];
        for arc in &self.arcs {
            sums[arc.to as usize] += u128::from(arc.capacity);
        }
        sums
    }

    /// What crosses from the vertices that are not inside to those that are.
    pub(crate) fn entering(&self, inside: impl Fn(VertexId) -> bool) -> u128 {
        let crossing = self
            .arcs
            .iter()
            .filter(|arc| !inside(arc.from) && inside(arc.to));
        crossing.map(|arc| u128::from(arc.capacity)).sum()
    }

    /// All ranks, in an order in which each has others before it close by, the first one first; those
    /// that it does not reach last.
    pub(crate) fn by_distance(&self, first: u32) -> Vec<u32> {
        let mut order = self.reached(first);
        let mut seen = vec![false; self.ranks as usize];
        order.iter().for_each(|rank| seen[*rank as usize] = true);
        order.extend((0..self.ranks).filter(|rank| !seen[*rank as usize]));
        order
    }

    /// The ranks that one reaches, itself first.
    fn reached(&self, first: u32) -> Vec<u32> {
        let mut starts = vec![0usize; self.vertices as usize + 1];
        for arc in &self.arcs {
            starts[arc.from as usize + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        let mut seen = vec![false; self.vertices as usize];
        seen[first as usize] = true;
        let mut order = vec![first];
        let mut at = 0;
        while let Some(&vertex) = order.get(at) {
            at += 1;
            for arc in &self.arcs[starts[vertex as usize]..starts[vertex as usize + 1]] {
                if !std::mem::replace(&mut seen[arc.to as usize], true) {
                    order.push(arc.to);
                }
            }
        }
        order.retain(|vertex| *vertex < self.ranks);
        order
    }
}

/// A fraction of two numbers that are far from overflow, see [`Rational`].
pub(crate) fn ratio(numerator: u128, denominator: u128) -> Rational {
    Rational::new(numerator as i128, denominator as i128)
}

/// A fraction that is not above a number, and not far below it. `None` if it is not positive.
pub(crate) fn below(value: f64) -> Option<Rational> {
    // Numbers of arcs and capacities keep rates within these; twelve digits of them are kept.
    let (mut scaled, mut denominator, mut factor) = (value, 1u128, 1u128);
    if !(1e-30..1e30).contains(&value) {
        return None;
    }
    while scaled < 1e12 {
        scaled *= 16.0;
        denominator *= 16;
    }
    while scaled >= 1.6e13 {
        scaled /= 16.0;
        factor *= 16;
    }
    Some(ratio(scaled as u128, denominator) * ratio(factor, 1))
}

/// A whole power, by squaring: only products, so that every host gets the same.
pub(crate) fn power(base: f64, exponent: u32) -> f64 {
    let (mut result, mut base, mut left) = (1.0, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result *= base;
        }
        base *= base;
        left >>= 1;
    }
    result
}
