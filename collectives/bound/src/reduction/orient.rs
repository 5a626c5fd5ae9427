//! all_reduce on a network whose edges are as wide one way as the other: exact, by maximum flow.
//!
//! Plans of all_reduce are pairs of trees: one into a root, one out of it. Let `o` be what out-trees
//! use of an edge and `i` what in-trees do, `o + i ≤ b`, with weights `w` on the roots that sum to
//! the rate `W`. Where all edges are as wide both ways, the mean of a solution and of its mirror
//! image is one too, so `i` may be taken as `o` turned around and all of `b` as used: `o` splits each
//! undirected edge between its two directions. Switches forward only, so half of each of their
//! edges goes each way.
//!
//! What enters a set `X` by `o` is then what enters its vertices, less the edges inside. With
//! `z(v) = w(v) + what o brings into v`, the trees exist if and only if
//!
//! ```text
//! z(X ∩ ranks) ≥ W + edges inside X − half of all edges at switches of X     for all X with a rank
//! z(ranks)     = W + half of all edges at ranks
//! ```
//!
//! The right side is supermodular on sets that meet, so the least sum of `z` is found greedily, one
//! rank after the other, each by one minimum cut; and it is decided by a partition of the ranks into
//! tight sets. In numbers that are never halved: with `h = 2z − deg`, rank `v` gets
//!
//! ```text
//! h(v) = 2W − min over X that hold v and no rank after it of (edges leaving X + h(X's other ranks))
//! ```
//!
//! and `W` is reached if and only if `h` sums to at most `2W`. If not, the tight sets `X₁ … X_k` are a
//! cut into `k` parts, all of which must be joined by both trees: `W ≤ Σ edges leaving Xⱼ / 2(k−1)`,
//! which is lower, and is asked next. Without switches this is the theorem of Tutte and Nash-Williams
//! on packing spanning trees.

use unisono_network::Rational;
use unisono_network::flow::{Capacity, Flow};

use crate::problem::{Problem, ratio};
use crate::{Certificate, Limit};

/// The exact rate, with the parts that decide it.
pub(crate) fn all_reduce(problem: &Problem) -> (Limit, Certificate) {
    let order = shuffled(problem.ranks);
    let (mut twice, mut parts) = first_guess(problem);
    // Each round lowers the rate to that of a coarser partition; there are no more than ranks.
    while let Some((lower, coarser)) = {
        let (amount, times) = (*twice.numer() as u128, *twice.denom() as u128);
        if problem.fits_u64(times, amount * 2) {
            ask::<u64>(problem, &order, amount, times)
        } else {
            ask::<u128>(problem, &order, amount, times)
        }
    } {
        (twice, parts) = (lower, coarser);
    }
    let rate = twice / ratio(2, 1);
    let crossing = twice * ratio(parts.len() as u128 - 1, 1);
    let certificate = Certificate::Partition {
        parts,
        bytes_per_second: problem.bytes(crossing).to_integer().unsigned_abs(),
    };
    (Limit::Exact(problem.bytes(rate)), certificate)
}

/// Twice a rate that cannot be exceeded: all ranks apart, or the narrowest against the rest.
fn first_guess(problem: &Problem) -> (Rational, Vec<Vec<u32>>) {
    let degrees = problem.arriving();
    let ranks = &degrees[..problem.ranks as usize];
    let apart = ratio(ranks.iter().sum(), u128::from(problem.ranks) - 1);
    let (narrowest, degree) = (0..)
        .zip(ranks)
        .min_by_key(|(_, degree)| **degree)
        .map_or((0, 0), |(rank, degree)| (rank, *degree));
    let against = ratio(2 * degree, 1);
    if apart <= against {
        (apart, (0..problem.ranks).map(|rank| vec![rank]).collect())
    } else {
        let rest = (0..problem.ranks)
            .filter(|rank| *rank != narrowest)
            .collect();
        (against, vec![vec![narrowest], rest])
    }
}

/// Asks whether a rate is reached: `amount / times` is twice that rate. If not, gives twice the rate
/// of the parts that say so, and the parts.
fn ask<C: Capacity + TryFrom<u128>>(
    problem: &Problem,
    order: &[u32],
    amount: u128,
    times: u128,
) -> Option<(Rational, Vec<Vec<u32>>)> {
    // What can still be taken from a rank is a supply: any amount from ranks that have no `h` yet,
    // what is left of `h` from those that have. Where `h` is negative, so much flows in already.
    let mut flow: Flow<C> = problem.flow(times);
    for &rank in order {
        flow.set_supply(rank, C::UNLIMITED);
    }
    let twice = C::try_from(amount).unwrap_or(C::UNLIMITED);
    let mut parts = Parts::new(problem.ranks);
    for &rank in order {
        flow.set_supply(rank, C::ZERO);
        flow.mark();
        let sent = flow.send(rank, C::UNLIMITED);
        let inside = flow
            .sink_side()
            .iter()
            .filter(|vertex| **vertex < problem.ranks);
        for &other in inside {
            parts.join(rank, other);
        }
        flow.undo();
        if sent <= twice {
            flow.set_supply(rank, twice - sent);
        } else {
            flow.send(rank, sent - twice);
        }
    }
    // All flow begins and ends at ranks that have their `h`, so what is left sums to that of `h`.
    let left: u128 = order.iter().map(|rank| flow.supply(*rank).into()).sum();
    let parts = parts.list();
    if left <= amount || parts.len() < 2 {
        return None;
    }
    let count = parts.len() as u128;
    Some((ratio(amount * count - left, times * (count - 1)), parts))
}

/// The ranks in an order without pattern, the same everywhere. Neighbours far apart in the order
/// keep flows short: most ranks meet others that may still give any amount.
fn shuffled(ranks: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..ranks).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for place in (1..order.len()).rev() {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        order.swap(place, (state >> 33) as usize % (place + 1));
    }
    order
}

/// Parts of the ranks that grow together.
struct Parts {
    above: Vec<u32>,
}

impl Parts {
    fn new(ranks: u32) -> Self {
        Self {
            above: (0..ranks).collect(),
        }
    }

    fn top(&mut self, mut rank: u32) -> u32 {
        while self.above[rank as usize] != rank {
            let next = self.above[self.above[rank as usize] as usize];
            self.above[rank as usize] = next;
            rank = next;
        }
        rank
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.top(one), self.top(other));
        self.above[one.max(other) as usize] = one.min(other);
    }

    fn list(mut self) -> Vec<Vec<u32>> {
        let mut parts = vec![Vec::new(); self.above.len()];
        for rank in 0..self.above.len() as u32 {
            let top = self.top(rank);
            parts[top as usize].push(rank);
        }
        parts.retain(|part| !part.is_empty());
        parts
    }
}
