//! all_to_all by pairs: each rank sends to one other at a time, and gets from it:
//! `a + b * the largest message` for each of `p - 1` rounds, or of `p` where that is odd.
//!
//! It is the tournament in which everybody meets everybody once ([`partner`]). A round is a leg of the program: all
//! pieces of a block go before any of the next one's. So two ranks have little under way between them, which stays in
//! the caches of their cores, and two that run at once go on until they are done with each other.
//!
//! Where ranks are on more than two nodes with narrow exits, more rounds fill those than if everybody sent to the rank `k`
//! above in round `k`; but then, in place, what comes would overwrite what has yet to go.
//!
//! In place, what comes from a rank overwrites what goes to it, piece by piece, and each piece has gone before.

use std::ops::Range;

use crate::builder::{Builder, input, out};
use crate::ir::{Blocks, Value};

pub(super) fn build(b: &mut Builder) {
    let (me, ranks) = (b.rank(), b.ranks());
    b.copy(out(Blocks::one(ranks + me)), input(Blocks::one(me)));
    let cycle = rounds(ranks);
    if me == cycle {
        // Whom the numbers leave without a partner in each round, from 0 on: `0, half, 1, half + 1, ..., half - 1`.
        let half = ranks / 2;
        b.repeat(half - 1, |b| {
            exchange(b, 0);
            exchange(b, half);
        });
        exchange(b, half - 1);
        return;
    }
    // Partners go up by one from round to round, and begin anew after the last of the cycle.
    let first = (cycle - me) % cycle;
    for partners in [first..cycle, 0..first] {
        if !partners.contains(&me) {
            meet(b, partners);
            continue;
        }
        meet(b, partners.start..me);
        if cycle < ranks {
            exchange(b, cycle);
        }
        meet(b, me + 1..partners.end);
    }
}

/// How many rounds there are: an odd number, so that the numbers pair one rank with itself in each.
pub(crate) fn rounds(ranks: u32) -> u32 {
    match ranks {
        1 => 0,
        _ => ranks - 1 + ranks % 2,
    }
}

/// Whom a rank meets in a round, counted from 0: of `n` rounds the rank with which its number adds up to the round's, modulo
/// `n`. Whom that pairs with itself meets the last of an even number of ranks, which is none of those `n`; else nobody.
pub(crate) fn partner(ranks: u32, rank: u32, round: u32) -> Option<u32> {
    let cycle = rounds(ranks);
    let met = match rank == cycle {
        // Who would meet itself: twice its number comes to that of the round.
        true => (u64::from(round) * u64::from(ranks / 2) % u64::from(cycle)) as u32,
        false => (round + cycle - rank) % cycle,
    };
    match met == rank {
        true => (cycle < ranks).then_some(cycle),
        false => Some(met),
    }
}

/// Exchanges with each of these, one after the other.
fn meet(b: &mut Builder, partners: Range<u32>) {
    b.repeat(partners.len() as u32, |b| exchange(b, partners.start));
}

fn exchange(b: &mut Builder, partner: u32) {
    let from = Blocks::one(b.ranks() + partner);
    let to = Value::Copy(input(Blocks::one(partner)));
    b.drift(1, 1).leg().skew(0).put(partner, to);
    b.skew(1).receive(partner, from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::Algorithm;
    use crate::ir::{Action, Op};
    use crate::{Shape, Template};

    #[test]
    fn everybody_meets_everybody_once_and_at_the_same_time() {
        for ranks in 2..20 {
            for rank in 0..ranks {
                let shape = Shape {
                    op: Op::AllToAll,
                    ranks,
                    rank,
                    windowed: false,
                    turns: false,
                };
                let program = Template::from(Algorithm::Pairwise)
                    .generate(&shape)
                    .unwrap();
                let legs: Vec<u32> = (program.walk())
                    .filter_map(|step| match step.action {
                        Action::Put { to, .. } if step.begins => Some(to),
                        _ => None,
                    })
                    .collect();
                let met: Vec<u32> = (0..rounds(ranks))
                    .filter_map(|round| {
                        let met = partner(ranks, rank, round)?;
                        assert_eq!(partner(ranks, met, round), Some(rank));
                        Some(met)
                    })
                    .collect();
                assert_eq!(legs, met, "rank {rank} of {ranks}");
                let mut all = met;
                all.sort_unstable();
                assert!(
                    all.into_iter()
                        .eq((0..ranks).filter(|other| *other != rank))
                );
            }
        }
    }
}
