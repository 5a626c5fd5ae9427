//! Rings and trees with shares of the message. With the whole message at the pace `b` of the hop that
//! takes longest for its part, `d` hops deep, in `k` pieces:
//!
//! | | |
//! |---|---|
//! | rings: all_gather, reduce_scatter | `(p-1) (a + (S/p) b)`; twice that for all_reduce |
//! | rings: broadcast, reduce | `(p-2+k)(a + S b/k)` |
//! | trees | `(d-1+k)(a + S b/k)` |

use crate::ir::Op;

use super::super::flows::{Flow, RingWays, TreeWays, WHOLE};
use super::{Message, Overlap, Work};

pub(super) fn rings(work: &mut Work, op: Op, rings: &RingWays, m: &Message<'_>) {
    let round = &rings.round;
    let rounds = u64::from(m.p) - 1;
    let sent =
        m.s.part(round.sent, WHOLE)
            .over(u128::from(round.pattern.fan));
    match op {
        Op::Broadcast { .. } | Op::Reduce { .. } => {
            // A pipeline: every hop carries its ring's share of all blocks.
            work.rounds(
                round.pattern,
                rounds,
                sent.times(u128::from(m.p)),
                Overlap::Stages,
            );
            work.signals(round.pattern, rounds);
            let done = match op {
                Op::Reduce { .. } => &mut work.reduced,
                _ => &mut work.copied,
            };
            done.push(m.s);
        }
        _ => {
            let times = if op == Op::AllReduce { 2 } else { 1 };
            work.rounds(round.pattern, times * rounds, sent, Overlap::None);
            if op != Op::AllGather {
                work.reduced.push(m.rest);
                if rings.shared {
                    work.copied.push(m.rest);
                }
            }
            if op != Op::ReduceScatter {
                work.copied.push(m.rest);
            }
        }
    }
}

pub(super) fn trees(work: &mut Work, op: Op, trees: &TreeWays, m: &Message<'_>) {
    let flow = match op {
        Op::AllGather => trees.gather,
        Op::ReduceScatter => trees.scatter,
        Op::AllReduce => trees.both,
        Op::Broadcast { .. } => trees.from_root,
        Op::Reduce { .. } => trees.to_root,
        _ => None,
    };
    let Some(flow) = flow else { return };
    let Flow { pattern, sent, .. } = flow;
    let sent = m.s.part(sent, WHOLE).over(u128::from(pattern.fan));
    work.rounds(pattern, flow.depth, sent, Overlap::Stages);
    if op.root().is_some() {
        work.signals(pattern, flow.depth);
    }
    let received = m.s.part(flow.received, WHOLE);
    match op {
        Op::AllGather | Op::Broadcast { .. } => work.copied.push(received),
        Op::AllReduce => {
            // Half of what comes is added up, the rest is the result.
            work.reduced.push(received.over(2));
            work.copied.push(received.over(2));
        }
        _ => work.reduced.push(received),
    }
}
