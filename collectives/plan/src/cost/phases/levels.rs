//! Level by level. With `q` the part of the message that a rank has after a level has shared it among
//! `n` members, each level costs on the way up, and again on the way down:
//!
//! | | |
//! |---|---|
//! | mesh | `a + q S b` on each of `n - 1` links |
//! | ring | `(n-1) (a + q S b)` |
//! | halving | `lg n a + (n-1) q S b` |
//!
//! Where parts are unequal, `q` is the largest, and a link that carries less of a round counts as
//! so much faster.

use crate::algorithms::Algorithm;
use crate::ir::Op;

use super::super::shaped::{LevelWays, Part, UpAndDown};
use super::{Message, Overlap, Work};

pub(super) fn levels(work: &mut Work, op: Op, levels: &[LevelWays], m: &Message<'_>) {
    for level in levels {
        match op {
            Op::AllReduce | Op::ReduceScatter | Op::Reduce { .. } => exchange(work, level, m, true),
            // The root's part is dealt out by those who have it.
            Op::Broadcast { .. } => handed(work, level, m, true),
            _ => {}
        }
    }
    for level in levels.iter().rev() {
        match op {
            Op::AllReduce | Op::AllGather | Op::Broadcast { .. } => exchange(work, level, m, false),
            Op::Reduce { .. } => handed(work, level, m, false),
            _ => {}
        }
    }
}

/// A reduce_scatter of a level, or an all_gather.
fn exchange(work: &mut Work, level: &LevelWays, m: &Message<'_>, sums: bool) {
    let bytes = |part: Part| m.s.part(part.weight, part.whole);
    let way = |ways: &UpAndDown| if sums { ways.up } else { ways.down };
    let (round, piece) = (way(&level.round), bytes(level.piece));
    match level.algorithm {
        Algorithm::Ring => {
            let rounds = level.members.saturating_sub(1);
            work.rounds(round, rounds, piece, Overlap::None);
        }
        Algorithm::HalvingDoubling => {
            for one in &level.halvings {
                work.rounds(way(&one.ways), 1, bytes(one.part), Overlap::None);
            }
        }
        _ => work.rounds(round, 1, piece, Overlap::Latency),
    }
    match sums {
        true => work.reduced.push(bytes(level.summed)),
        false => work.copied.push(bytes(level.stored)),
    }
}

/// A part of one member's for each of the others, or back.
fn handed(work: &mut Work, level: &LevelWays, m: &Message<'_>, up: bool) {
    let bytes = |part: Part| m.s.part(part.weight, part.whole);
    let fan = level.teams * level.members.saturating_sub(1);
    let ways = level.halvings.first().map_or(&level.round, |one| &one.ways);
    let pattern = if up { ways.up } else { ways.down };
    work.rounds(
        pattern.with_fan(fan),
        1,
        bytes(level.piece),
        Overlap::Latency,
    );
    work.copied.push(bytes(level.share));
}
