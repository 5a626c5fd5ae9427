//! The mesh without slots: every rank reads what it needs from its peers' buffers, one copy of each byte.
//!
//! No rank writes another's memory. So it needs no windows, but peers that let their memory be read: processes of one
//! machine, where the system lets them. Each tells where its buffers are with its first signal.
//!
//! "Enter" tells the peers that this rank's buffers belong to the operation; "done" tells them that this rank has read
//! theirs. A rank leaves when it has heard "done" from every peer that may read its buffers, so the caller may overwrite
//! them at once. The "done" of a piece is waited for after the next piece has been entered.
//!
//! all_gather and all_to_all `2 a + (S/p) b`; broadcast `2 a + S b`. What reduces is not here: what was read would be
//! written, and read again.
//!
//! There is no all_to_all in place: what a peer has yet to read would be overwritten.

use crate::builder::{Builder, input, out, peer};
use crate::ir::{Blocks, Buffer, Op};

use super::windows::{between_signals, broadcast, pull_own_blocks};

pub(super) fn build(b: &mut Builder) {
    let own = Blocks::one(b.rank());
    match b.op() {
        Op::AllGather => between_signals(b, |b| {
            b.copy(out(own), input(own));
            b.peers_below(pull);
        }),
        Op::AllToAll => between_signals(b, pull_own_blocks),
        Op::Broadcast { root } => broadcast(b, root),
        _ => {}
    }
}

/// Reads a peer's own block, to the same place of the output.
fn pull(b: &mut Builder, rank: u32) {
    let block = Blocks::one(rank);
    b.with_blocks();
    b.copy(out(block), peer(rank, Buffer::In, block));
}
