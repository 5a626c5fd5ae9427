//! Everybody to the owner of each block, and the owner to everybody.
//!
//! - all_reduce: rank `r` folds block `r` in rank order and gives the result to all:
//!   `2 a + 2 (S/p) b + ((p-1)/p) S g`.
//! - broadcast: the root scatters, everybody gathers: `2 a + 2 (S/p) b`, and a signal back.
//!
//! In each round a rank first publishes its new piece, then takes the results of the piece before,
//! then folds. So there is work between each put and the wait that answers it, and a channel never
//! needs more than two slots.

use crate::builder::{Builder, input, out, slot, wrap};
use crate::ir::{Blocks, Op, Value};

use super::fold::{Source, fold_in_rank_order};

pub(super) fn build(b: &mut Builder) {
    match b.op() {
        Op::Broadcast { root } => broadcast(b, root),
        _ => all_reduce(b),
    }
}

fn all_reduce(b: &mut Builder) {
    let own = Blocks::one(b.rank());
    b.peers_above(|b, peer| {
        let block = Blocks::one(peer);
        b.with_blocks().put(peer, Value::Copy(input(block)));
    });
    b.skew(1).peers_below(|b, peer| {
        b.with_blocks().receive(peer, Blocks::one(peer));
    });
    b.skew(0);
    fold_in_rank_order(b, own, Source::Slots);
    b.peers_above(|b, peer| b.put(peer, Value::Copy(out(own))));
}

/// The root owns no block: it has them all.
fn broadcast(b: &mut Builder, root: u32) {
    let owned = |rank: u32| Blocks::one(if rank < root { rank } else { rank - 1 });
    let all = b.all();
    if b.rank() == root {
        b.peers_above(|b, peer| {
            b.with_blocks().put(peer, Value::Copy(input(owned(peer))));
        });
        b.copy(out(all), input(all));
        b.skew(1).peers_above(Builder::hear);
        return;
    }
    let (me, ranks) = (b.rank(), b.ranks());
    let own = owned(me);
    // The root is left out: there are peers on this side of it and on the other.
    let up = wrap(root, ranks - me, ranks);
    let down = ranks - up;
    b.wait(root, own);
    for (distance, count) in [(1, up - 1), (up + 1, down - 1)] {
        b.peers_up(distance, count, |b, peer| {
            b.same_source().put(peer, Value::Copy(slot(root, own)));
        });
    }
    b.copy(out(own), slot(root, own));
    b.release(root);
    b.signal(root);
    b.skew(1);
    for (distance, count) in [(1, down - 1), (down + 1, up - 1)] {
        b.peers_down(distance, count, |b, peer| {
            b.with_blocks().receive(peer, owned(peer));
        });
    }
}
