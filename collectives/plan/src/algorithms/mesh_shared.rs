//! The mesh in shared memory: what others need each rank writes once, into memory of its own, and all read it there.
//!
//! The other meshes write it once for each peer. Here each put with data, and each of a barrier, is to everybody and is
//! *shown* ([`crate::ir`]).
//! So it is for ranks that all map each other's memory, and whose own cores read it: then a byte that several ranks of a
//! core need comes to that core once, and so does what tells of it.
//!
//! - all_gather: `a + (S/p) g` to show it, `((p-1)/p) S g` to read the others'.
//! - broadcast: `a + 2 S g`, and a signal back.
//! - all_reduce: everybody shows its input; each folds its block from all of them, and shows the result:
//!   `2 a + (1 + 1/p) S g` to show, `2 ((p-1)/p) S g` to fold and to read.
//! - reduce_scatter: everybody shows its input, and folds its block from all of them: `a + S g` to show, `((p-1)/p) S g` to
//!   fold; all_to_all: likewise, and nothing is folded.
//! - all_reduce in one exchange: everybody shows its input and folds all of them: `a + S g` to show, `(p-1) S g` to fold.
//! - barrier: `a`.

use crate::builder::{Builder, input, out, slot};
use crate::ir::{Blocks, Op, Value};

use super::fold::{Source, fold_in_rank_order};
use super::mesh_one_shot::{all_gather, barrier, broadcast, receive_its_block};

pub(super) fn build(b: &mut Builder) {
    match b.op() {
        Op::AllGather => all_gather(b),
        Op::AllReduce => all_reduce(b),
        Op::ReduceScatter => reduce_scatter(b),
        Op::AllToAll => all_to_all(b),
        Op::Broadcast { root } => broadcast(b, root),
        Op::Barrier => barrier(b),
        _ => {}
    }
}

/// As in the two-shot mesh the results of a piece are taken when the next has been shown, so that a channel never needs
/// more than two slots.
fn all_reduce(b: &mut Builder) {
    let (own, all) = (Blocks::one(b.rank()), b.all());
    b.peers_above(|b, peer| b.put(peer, Value::Copy(input(all))));
    b.skew(1).peers_below(receive_its_block);
    b.skew(0);
    fold_in_rank_order(b, own, Source::Wider(all));
    b.peers_above(|b, peer| b.put(peer, Value::Copy(out(own))));
}

/// The first half of an all_reduce.
fn reduce_scatter(b: &mut Builder) {
    let (own, all) = (Blocks::one(b.rank()), b.all());
    b.peers_above(|b, peer| b.put(peer, Value::Copy(input(all))));
    b.skew(1);
    fold_in_rank_order(b, own, Source::Wider(all));
}

/// Everybody shows all that it sends, and takes its own block out of what each of the others has shown.
///
/// What a peer shows has as many blocks as the output. The receiver names them so that its own block of these is the peer's
/// block of the output: names count on from there, round and round.
fn all_to_all(b: &mut Builder) {
    let (own, ranks) = (b.rank(), b.ranks());
    let sent = Blocks::new(0, ranks);
    b.peers_above(|b, peer| b.put(peer, Value::Copy(input(sent))));
    b.copy(out(Blocks::one(ranks + own)), input(Blocks::one(own)));
    b.skew(1).peers_below(|b, peer| {
        let before = (ranks + peer - own) % ranks;
        let (shown, block) = (
            Blocks::new(ranks + before, ranks),
            Blocks::one(ranks + peer),
        );
        b.with_blocks().wait(peer, shown);
        b.copy(out(block), slot(peer, block));
        b.release(peer);
    });
}
