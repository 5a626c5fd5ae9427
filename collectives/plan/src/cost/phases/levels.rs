//! Level by level. With `q` the part of the message that a rank has after a level has shared it among
//! `n` members, each level costs on the way up, and again on the way down:
//!
//! | | |
//! |---|---|
//! | mesh | `a + q S b` on each of `n - 1` links |
//! | ring | `(n-1) (a + q S b)` |
//! | halving | `lg n a + (n-1) q S b` |

use crate::algorithms::Algorithm;
use crate::ir::Op;

use super::super::shaped::{LevelWays, Part};
use super::{Message, Overlap, Work};

pub(super) fn levels(work: &mut Work, op: Op, levels: &[LevelWays], m: &Message<'_>) {
    for level in levels {
        match op {
            Op::AllReduce | Op::ReduceScatter | Op::Reduce { .. } => exchange(work, level, m, true),
            // The root's part is dealt out by those who have it.
            Op::Broadcast { .. } => handed(work, level, m),
            _ => {}
        }
    }
    for level in levels.iter().rev() {
        match op {
            Op::AllReduce | Op::AllGather | Op::Broadcast { .. } => exchange(work, level, m, false),
            Op::Reduce { .. } => handed(work, level, m),
            _ => {}
        }
    }
}

/// A reduce_scatter of a level, or an all_gather.
fn exchange(work: &mut Work, level: &LevelWays, m: &Message<'_>, sums: bool) {
    let [share, piece, held] =
        [level.share, level.piece, level.held].map(|part| m.s.part(part.weight, part.whole));
    let others = u128::from(level.members.saturating_sub(1));
    match level.algorithm {
        Algorithm::Ring => {
            let rounds = level.members.saturating_sub(1);
            work.rounds(level.round, rounds, piece, Overlap::None);
        }
        Algorithm::HalvingDoubling => {
            let mut half = held;
            for &pattern in &level.halvings {
                half = half.over(2);
                work.rounds(pattern, 1, half, Overlap::None);
            }
        }
        _ => work.rounds(level.round, 1, piece, Overlap::Latency),
    }
    let done = if sums {
        &mut work.reduced
    } else {
        &mut work.copied
    };
    done.push(share.times(others));
}

/// A part of one member's for each of the others, or back.
fn handed(work: &mut Work, level: &LevelWays, m: &Message<'_>) {
    let Part { weight, whole } = level.share;
    let share = m.s.part(weight, whole);
    let piece = m.s.part(level.piece.weight, level.piece.whole);
    let fan = level.teams * level.members.saturating_sub(1);
    let pattern = level.halvings.first().copied().unwrap_or(level.round);
    work.rounds(pattern.with_fan(fan), 1, piece, Overlap::Latency);
    work.copied.push(share);
}
