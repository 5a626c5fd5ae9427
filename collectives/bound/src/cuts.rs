//! Bounds that one cut decides, exact by maximum flow.
//!
//! Each asks whether some rate can reach every rank. A rank for which it cannot gives a cut, the
//! cut gives a lower rate, and so on (Dinkelbach's method): the rate only falls, and when no rank
//! objects any more, it is that of the last cut, exactly.
//!
//! Ranks are asked one after the other, on one [`Flow`] that is never cleared. Who was asked and
//! did not object becomes a source without limit: a cut that has it on the far side would have been
//! seen when it was asked, and the others cuts are not changed. So almost all flows are short, from
//! neighbours that were asked before.

use unisono_network::Rational;
use unisono_network::flow::{Capacity, Flow};

use crate::problem::{Problem, ratio};
use crate::{Certificate, Limit};

/// all_gather: `ranks × min over cuts of (what leaves a side / ranks on that side)`, where the side
/// does not hold all ranks. Each rank is a source of one share, and all shares must reach each.
pub(crate) fn all_gather(problem: &Problem) -> (Limit, Certificate) {
    let ranks = u128::from(problem.ranks);
    let order = problem.by_distance(0);
    let mut best = narrowest_vertex(problem);
    best.rate /= ratio(ranks - 1, 1);
    let mut done = 0;
    while done < order.len() {
        let (share, times) = (*best.rate.numer() as u128, *best.rate.denom() as u128);
        let fits = problem.fits_u64(times, share * ranks);
        let worse = if fits {
            ask_all::<u64>(problem, &order, &mut done, share, times)
        } else {
            ask_all::<u128>(problem, &order, &mut done, share, times)
        };
        let Some(cut) = worse else { break };
        best = cut;
    }
    let rate = best.rate * ratio(ranks, 1);
    (Limit::Exact(problem.bytes(rate)), best.certificate(problem))
}

/// Asks the ranks from a place in the order on whether `ranks × share` reaches each. Stops at the
/// first that objects, with the cut that it gives.
fn ask_all<C: Capacity + TryFrom<u128>>(
    problem: &Problem,
    order: &[u32],
    done: &mut usize,
    share: u128,
    times: u128,
) -> Option<Cut> {
    let mut flow: Flow<C> = problem.flow(times);
    let number = |value: u128| C::try_from(value).unwrap_or(C::UNLIMITED);
    for rank in 0..problem.ranks {
        flow.set_supply(rank, number(share));
    }
    for &rank in &order[..*done] {
        flow.set_supply(rank, C::UNLIMITED);
    }
    let wanted = number(share * u128::from(problem.ranks));
    while let Some(&rank) = order.get(*done) {
        if flow.send(rank, wanted) < wanted {
            let cut = Cut::of(problem, &flow);
            let outside = problem.ranks as usize - cut.inside.len();
            return Some(cut.over(outside as u128));
        }
        flow.set_supply(rank, C::UNLIMITED);
        *done += 1;
    }
    None
}

/// broadcast: the narrowest cut between the root and any rank, which trees then reach (Edmonds).
pub(crate) fn broadcast(problem: &Problem, root: u32) -> (Limit, Certificate) {
    let order = problem.by_distance(root);
    let mut best = narrowest_vertex_but(problem, root);
    let mut flow: Flow<u128> = problem.flow(1);
    flow.set_supply(root, Capacity::UNLIMITED);
    for &rank in &order[1..] {
        let wanted = *best.rate.numer() as u128;
        if flow.send(rank, wanted) < wanted {
            best = Cut::of(problem, &flow);
        }
        flow.set_supply(rank, Capacity::UNLIMITED);
    }
    (
        Limit::Exact(problem.bytes(best.rate)),
        best.certificate(problem),
    )
}

/// gather: every rank sends its own share to the root, all shares at once.
pub(crate) fn gather(problem: &Problem, root: u32) -> (Limit, Certificate) {
    let ranks = u128::from(problem.ranks);
    let mut best = Cut {
        rate: ratio(problem.arriving()[root as usize], ranks - 1),
        inside: vec![root],
        entering: problem.arriving()[root as usize],
    };
    loop {
        let (share, times) = (*best.rate.numer() as u128, *best.rate.denom() as u128);
        let mut flow: Flow<u128> = problem.flow(times);
        for rank in (0..problem.ranks).filter(|rank| *rank != root) {
            flow.set_supply(rank, share);
        }
        let wanted = share * (ranks - 1);
        if flow.send(root, wanted) == wanted {
            break;
        }
        let cut = Cut::of(problem, &flow);
        let outside = problem.ranks as usize - cut.inside.len();
        best = cut.over(outside as u128);
    }
    let rate = best.rate * ratio(ranks, 1);
    (Limit::Exact(problem.bytes(rate)), best.certificate(problem))
}

/// send and recv: all that can flow from one rank to another.
pub(crate) fn send(problem: &Problem, from: u32, to: u32) -> (Limit, Certificate) {
    let mut flow: Flow<u128> = problem.flow(1);
    flow.set_supply(from, Capacity::UNLIMITED);
    flow.send(to, u128::MAX);
    let cut = Cut::of(problem, &flow);
    (
        Limit::Exact(problem.bytes(cut.rate)),
        cut.certificate(problem),
    )
}

/// A side of a cut that data must enter.
#[derive(Clone, Debug)]
struct Cut {
    /// What the cut says of the rate asked for.
    rate: Rational,
    /// The ranks inside.
    inside: Vec<u32>,
    /// What can enter.
    entering: u128,
}

impl Cut {
    /// The cut that a flow which fell short has shown.
    fn of<C: Capacity>(problem: &Problem, flow: &Flow<C>) -> Self {
        let entering = problem.entering(|vertex| flow.reaches(vertex));
        Self {
            rate: ratio(entering, 1),
            inside: (0..problem.ranks)
                .filter(|rank| flow.reaches(*rank))
                .collect(),
            entering,
        }
    }

    /// The same cut, entered by so many shares.
    fn over(mut self, shares: u128) -> Self {
        self.rate /= ratio(shares, 1);
        self
    }

    /// In words, from the side that has fewer ranks.
    fn certificate(self, problem: &Problem) -> Certificate {
        let leaving = self.inside.len() * 2 > problem.ranks as usize;
        let ranks = if leaving {
            let inside = self.inside;
            (0..problem.ranks)
                .filter(|rank| inside.binary_search(rank).is_err())
                .collect()
        } else {
            self.inside
        };
        Certificate::Cut {
            ranks,
            bytes_per_second: self.entering * u128::from(problem.unit),
            leaving,
        }
    }
}

/// The rank that least can enter.
fn narrowest_vertex(problem: &Problem) -> Cut {
    narrowest_vertex_but(problem, u32::MAX)
}

fn narrowest_vertex_but(problem: &Problem, except: u32) -> Cut {
    let into = problem.arriving();
    let ranks = (0..problem.ranks).filter(|rank| *rank != except);
    let rank = ranks.min_by_key(|rank| into[*rank as usize]).unwrap_or(0);
    Cut {
        rate: ratio(into[rank as usize], 1),
        inside: vec![rank],
        entering: into[rank as usize],
    }
}
