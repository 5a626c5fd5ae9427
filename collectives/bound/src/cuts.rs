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
    let cut = narrowest(problem, &vec![1; problem.ranks as usize]);
    let rate = cut.rate * ratio(u128::from(problem.ranks), 1);
    (Limit::Exact(problem.bytes(rate)), cut.certificate(problem))
}

/// The highest rate at which all ranks' shares reach every rank, in units by unit of share. With all
/// shares on one rank this is what it can broadcast. `None` if there are no shares, or some would not
/// arrive at all.
pub(crate) fn rate(problem: &Problem, shares: &[u128]) -> Option<Rational> {
    let cut = narrowest(problem, shares);
    (shares.iter().any(|share| *share > 0) && cut.entering > 0).then_some(cut.rate)
}

/// The cut with the least of what enters by the shares outside.
fn narrowest(problem: &Problem, shares: &[u128]) -> Cut {
    let total: u128 = shares.iter().sum();
    let order = problem.by_distance(0);
    let arriving = problem.arriving();
    let alone = (0..problem.ranks)
        .filter(|rank| shares[*rank as usize] < total)
        .map(|rank| {
            let entering = arriving[rank as usize];
            Cut {
                rate: ratio(entering, total - shares[rank as usize]),
                inside: vec![rank],
                entering,
            }
        });
    let mut best = alone
        .min_by_key(|cut| cut.rate)
        .unwrap_or_else(Cut::nothing);
    let mut done = 0;
    // A rate of zero is as low as it gets.
    while done < order.len() && best.entering > 0 {
        let (amount, times) = (*best.rate.numer() as u128, *best.rate.denom() as u128);
        let fits = amount
            .checked_mul(total)
            .is_some_and(|sum| problem.fits_u64(times, sum));
        let worse = if fits {
            ask_all::<u64>(problem, shares, &order, &mut done, amount, times)
        } else {
            ask_all::<u128>(problem, shares, &order, &mut done, amount, times)
        };
        let Some(cut) = worse else { break };
        best = cut;
    }
    best
}

/// Asks the ranks from a place in the order on whether `amount` of each share reaches each. Stops at
/// the first that objects, with the cut that it gives.
fn ask_all<C: Capacity + TryFrom<u128>>(
    problem: &Problem,
    shares: &[u128],
    order: &[u32],
    done: &mut usize,
    amount: u128,
    times: u128,
) -> Option<Cut> {
    let mut flow: Flow<C> = problem.flow(times);
    let number = |value: u128| C::try_from(value).unwrap_or(C::UNLIMITED);
    for (rank, share) in (0..).zip(shares) {
        flow.set_supply(rank, number(amount * share));
    }
    for &rank in &order[..*done] {
        flow.set_supply(rank, C::UNLIMITED);
    }
    let wanted = number(amount * shares.iter().sum::<u128>());
    while let Some(&rank) = order.get(*done) {
        if flow.send(rank, wanted) < wanted {
            let cut = Cut::of(problem, &flow);
            let inside: u128 = cut.inside.iter().map(|rank| shares[*rank as usize]).sum();
            return Some(cut.over(shares.iter().sum::<u128>() - inside));
        }
        flow.set_supply(rank, C::UNLIMITED);
        *done += 1;
    }
    None
}

/// broadcast: the narrowest cut between the root and any rank, which trees then reach (Edmonds).
pub(crate) fn broadcast(problem: &Problem, root: u32) -> (Limit, Certificate) {
    let order = problem.by_distance(root);
    let mut best = narrowest_but(problem, root);
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

    /// No cut: nothing enters nothing.
    fn nothing() -> Self {
        Self {
            rate: ratio(0, 1),
            inside: Vec::new(),
            entering: 0,
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

/// The rank that least can enter, of all but one.
fn narrowest_but(problem: &Problem, except: u32) -> Cut {
    let into = problem.arriving();
    let ranks = (0..problem.ranks).filter(|rank| *rank != except);
    let rank = ranks.min_by_key(|rank| into[*rank as usize]).unwrap_or(0);
    Cut {
        rate: ratio(into[rank as usize], 1),
        inside: vec![rank],
        entering: into[rank as usize],
    }
}
