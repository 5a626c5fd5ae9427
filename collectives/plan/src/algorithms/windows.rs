//! The meshes over windows: no slots, one pass over the data, two signals each way.
//!
//! "Enter" tells the peers that this rank's buffers belong to the operation; "done" tells them that
//! this rank has finished with theirs. A rank leaves when it has heard "done" from every peer that
//! may touch its buffers, so the caller may overwrite them at once.
//!
//! all_reduce `2 a + (S/p) b` each way; all_gather, reduce_scatter, all_to_all and reduce `2 a + (S/p) b`; broadcast
//! `2 a + S b`. The second signal of a piece is waited for after the next piece has been entered.
//!
//! There is no all_to_all in place: what a peer has yet to read would be overwritten.
//!
//! In a reduce each rank folds its share right into the root's output. Only the root knows where that is, and tells the
//! others when it enters. If no peer reaches it the root folds all shares ([`reduce_alone`]), `2 a + (p-1) S g`, and the
//! others do nothing between their signals; the signals are the same, so that who is told need not have known.

use crate::builder::{Builder, input, out, peer};
use crate::ir::{Blocks, Buffer, Op};

use super::fold::{Source, fold_apart, fold_in_rank_order, fold_to};

pub(super) fn build(b: &mut Builder) {
    let own = Blocks::one(b.rank());
    match b.op() {
        Op::AllReduce => between_signals(b, |b| {
            fold_in_rank_order(b, own, Source::Buffers);
            b.peers_above(|b, rank| b.copy(peer(rank, Buffer::Out, own), out(own)));
        }),
        Op::ReduceScatter => between_signals(b, |b| {
            fold_in_rank_order(b, own, Source::Buffers);
        }),
        Op::AllGather => between_signals(b, |b| {
            b.copy(out(own), input(own));
            b.peers_above(|b, rank| b.copy(peer(rank, Buffer::Out, own), input(own)));
        }),
        Op::AllToAll => between_signals(b, pull_own_blocks),
        Op::Broadcast { root } => broadcast(b, root),
        Op::Reduce { root } => between_signals(b, |b| match b.rank() == root {
            true => fold_in_rank_order(b, own, Source::Buffers),
            false => fold_to(b, own, peer(root, Buffer::Out, own)),
        }),
        _ => {}
    }
}

/// A reduce whose root has its output where no peer reaches it; so that is not its input, which they reach.
pub(super) fn reduce_alone(b: &mut Builder, root: u32) {
    between_signals(b, |b| {
        if b.rank() == root {
            // One by one: a peer's window is cut as if each access were to one block.
            for block in 0..b.ranks() {
                fold_apart(b, Blocks::one(block));
            }
        }
    });
}

/// Runs `work` when all peers have entered, and leaves when all peers are done.
pub(super) fn between_signals(b: &mut Builder, work: impl FnOnce(&mut Builder)) {
    b.peers_above(Builder::signal);
    b.skew(1).peers_below(Builder::hear);
    b.skew(0).peers_below(Builder::hear);
    work(b);
    b.peers_above(Builder::signal);
}

/// Block by block, each from another peer's input. No loop of the plan: what is read is the same block of every peer,
/// what is written another one each time, and blocks of a step drift together.
pub(super) fn pull_own_blocks(b: &mut Builder) {
    let (own, ranks) = (Blocks::one(b.rank()), b.ranks());
    let from = |rank: u32| out(Blocks::one(ranks + rank));
    b.copy(from(b.rank()), input(own));
    for distance in 1..ranks {
        let rank = b.above(distance);
        b.copy(from(rank), peer(rank, Buffer::In, own));
    }
}

/// The receivers pull from the root, all at once.
pub(super) fn broadcast(b: &mut Builder, root: u32) {
    let all = b.all();
    if b.rank() == root {
        b.peers_above(Builder::signal);
        b.copy(out(all), input(all));
        b.skew(1).peers_above(Builder::hear);
    } else {
        b.hear(root);
        b.copy(out(all), peer(root, Buffer::In, all));
        b.signal(root);
    }
}
