//! Rank by rank: rings, chains, one partner after the other.

use crate::ir::Op;

use super::{Message, Overlap, Work, mesh};

pub(super) fn ring(work: &mut Work, op: Op, m: &Message<'_>) {
    let rounds = u64::from(m.p) - 1;
    work.rounds(m.fabric.ring_up, rounds, m.share, Overlap::None);
    if op == Op::AllReduce {
        // Runs in the waits of the other direction.
        work.rounds(m.fabric.ring_down, rounds, m.share, Overlap::Latency);
    }
    if op != Op::AllGather {
        work.reduced.push(m.rest);
    }
    if op != Op::ReduceScatter {
        work.copied.push(m.rest);
    }
}

/// The sums by a ring; what each has of them it shows, and all read it as they do that of [`mesh::shared`].
pub(super) fn shared(work: &mut Work, m: &Message<'_>) {
    ring(work, Op::ReduceScatter, m);
    mesh::shared(work, Op::AllGather, m);
}

pub(super) fn bidirectional(work: &mut Work, op: Op, m: &Message<'_>) {
    if m.p == 2 {
        return ring(work, op, m);
    }
    let both = m.fabric.ring_up.beside(m.fabric.ring_down);
    let rounds = m.p / 2;
    let each = m.rest.over(2 * u128::from(rounds));
    for (runs, is_sum) in [
        (op != Op::AllGather, true),
        (op != Op::ReduceScatter, false),
    ] {
        if runs {
            work.rounds(both, u64::from(rounds), each, Overlap::None);
            let done = if is_sum {
                &mut work.reduced
            } else {
                &mut work.copied
            };
            done.push(m.rest);
        }
    }
}

pub(super) fn pairwise(work: &mut Work, m: &Message<'_>) {
    for &(pattern, rounds) in &m.fabric.rounds {
        work.rounds(pattern, rounds, m.share, Overlap::Legs);
    }
    work.copied.push(m.rest);
}

pub(super) fn chain(work: &mut Work, op: Op, m: &Message<'_>) {
    let rounds = u64::from(m.p) - 1;
    let (up, down) = (m.fabric.ring_up, m.fabric.ring_down);
    if let Op::Reduce { .. } = op {
        work.rounds(down, rounds, m.s, Overlap::Stages);
        work.hidden_signals(up);
        work.reduced.push(m.s);
    } else {
        work.rounds(up, rounds, m.s, Overlap::Stages);
        work.signals(down, 1);
        work.copied.push(m.s);
        work.handed_on(m);
    }
}
