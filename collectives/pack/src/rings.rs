//! Cyclic orders of all ranks that flow at once.
//!
//! Where enough rings fit that share no link, all_gather, reduce_scatter and all_reduce over them are
//! as fast as any plan can be, and need almost no memory: a rank knows its neighbours on each ring
//! and nothing else. Three constructions are tried, and the fastest result is taken:
//!
//! - on small networks a linear program, its columns the cheapest tours for the present prices of
//!   links;
//! - on regular networks of one kind of link, such as large tori, a division of all links into rings;
//! - on islands, rings that enter and leave each island once, one for each rail.

mod factors;
mod program;
mod rails;
mod tour;

use unisono_network::{EdgeId, Network, Rational};

use crate::error::PackError;
use crate::paths::{Relays, beside};
use crate::whole::fastest;

/// A directed cycle through all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    /// The ranks in the order in which bytes visit them; the first comes again after the last.
    pub order: Vec<u32>,
    /// Its share: this weight over the sum of weights.
    pub weight: u64,
    /// The edges from each rank of the order to the next, by place in the order.
    pub paths: Vec<Vec<EdgeId>>,
}

/// Rings that flow at once. No link carries more than it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rings {
    /// The rings; a ring the other way is another one.
    pub rings: Vec<Ring>,
    /// The rate of weight 1, in bytes a second.
    pub unit: Rational,
}

impl Rings {
    /// What each rank sends on all rings together, in bytes a second: `n / (n - 1)` of it is the
    /// algorithm bandwidth of all_gather and reduce_scatter, half of that the one of all_reduce.
    pub fn bytes_per_second(&self) -> Rational {
        let total: u64 = self.rings.iter().map(|ring| ring.weight).sum();
        self.unit * i128::from(total)
    }

    /// Orders with weights, laid on the network's paths at full speed.
    fn laid(network: &Network, orders: &[(Vec<u32>, u64)]) -> Result<Self, PackError> {
        let steps = orders
            .iter()
            .flat_map(|(order, weight)| hops(order).map(|(from, to)| (from, to, *weight)));
        let mut paths = beside(network, &steps.collect::<Vec<_>>(), Relays::IfNeeded)?.into_iter();
        let rings = orders.iter().map(|(order, weight)| Ring {
            order: order.clone(),
            weight: *weight,
            paths: paths.by_ref().take(order.len()).collect(),
        });
        Ok(Self::full_speed(network, rings.collect()))
    }

    fn full_speed(network: &Network, rings: Vec<Ring>) -> Self {
        let mut loads = vec![0; network.edges().len()];
        for ring in &rings {
            for &edge in ring.paths.iter().flatten() {
                loads[edge as usize] += ring.weight;
            }
        }
        Self {
            rings,
            unit: fastest(network, &loads),
        }
    }
}

/// The steps of a cyclic order.
fn hops(order: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    let next = order.iter().cycle().skip(1);
    order.iter().copied().zip(next.copied())
}

/// The fastest rings that are found.
///
/// # Errors
/// If some rank cannot reach another.
pub fn rings(network: &Network) -> Result<Rings, PackError> {
    let mut best = rails::rings(network)?;
    let others = [program::rings(network), factors::rings(network)?];
    for rings in others.into_iter().flatten() {
        let faster = rings.bytes_per_second().cmp(&best.bytes_per_second());
        if faster.is_gt() || faster.is_eq() && rings.rings.len() < best.rings.len() {
            best = rings;
        }
    }
    Ok(best)
}
