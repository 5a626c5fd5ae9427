//! The mesh without slots: every rank reads what it needs from its peers' buffers.
//!
//! No rank writes another's memory. So it needs no windows, but peers that let their memory be read: processes of one
//! machine, where the system lets them. Each tells where its buffers are with its first signal.
//!
//! "Enter" tells the peers that this rank's buffers belong to the operation; "done" tells them that this rank has read
//! theirs. A rank leaves when it has heard "done" from every peer that may read its buffers, so the caller may overwrite
//! them at once. The "done" of a piece is waited for after the next piece has been entered.
//!
//! What is reduced is read into the core's cache first, so such messages go in pieces of which that holds what a rank
//! works on. The output is written once, piece by piece.
//!
//! all_gather, all_to_all and reduce_scatter `2 a + (S/p) b`; broadcast `2 a + S b`. In an all_reduce each rank tells the
//! others that its block of the output is there, and they read it, `3 a + 2 (S/p) b`. In place that overwrites a block of
//! its input which only the rank read that has now told of its sum.
//!
//! There is no all_to_all in place: what a peer has yet to read would be overwritten.

use crate::builder::{Builder, input, out, peer};
use crate::ir::{Blocks, Buffer, Op};

use super::fold::fold_to;
use super::windows::{between_signals, broadcast, pull_own_blocks};

pub(super) fn build(b: &mut Builder) {
    let own = Blocks::one(b.rank());
    match b.op() {
        Op::AllGather => between_signals(b, |b| {
            b.copy(out(own), input(own));
            b.peers_below(|b, rank| take(b, rank, Buffer::In));
        }),
        Op::AllToAll => between_signals(b, pull_own_blocks),
        Op::Broadcast { root } => broadcast(b, root),
        Op::ReduceScatter => between_signals(b, |b| fold_to(b, own, out(own))),
        Op::AllReduce => between_signals(b, |b| {
            fold_to(b, own, out(own));
            b.peers_above(Builder::signal);
            b.peers_below(|b, rank| {
                b.hear(rank);
                take(b, rank, Buffer::Out);
            });
        }),
        _ => {}
    }
}

/// Reads a peer's own block, to the same place of the output.
fn take(b: &mut Builder, rank: u32, of: Buffer) {
    let block = Blocks::one(rank);
    b.with_blocks();
    b.copy(out(block), peer(rank, of, block));
}
