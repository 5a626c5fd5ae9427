//! Everybody to the owner of each block, and the owner to everybody.
//!
//! - all_reduce: rank `r` folds block `r` in rank order and gives the result to all:
//!   `2 a + 2 (S/p) b + ((p-1)/p) S g`.
//! - broadcast: the root scatters, everybody gathers: `2 a + 2 (S/p) b`, and a signal back.
//!
//! In each round a rank first publishes its new piece, then takes the results of the piece before,
//! then folds. So there is work between each put and the wait that answers it, and a channel never
//! needs more than two slots.

use crate::builder::{Builder, input, out, slot};
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
    for peer in b.peers_above() {
        b.put(peer, Value::Copy(input(Blocks::one(peer))));
    }
    b.skew(1);
    for peer in b.peers_below() {
        b.receive(peer, Blocks::one(peer));
    }
    b.skew(0);
    fold_in_rank_order(b, own, Source::Slots);
    for peer in b.peers_above() {
        b.put(peer, Value::Copy(out(own)));
    }
}

/// The root owns no block: it has them all.
fn broadcast(b: &mut Builder, root: u32) {
    let owned = |rank: u32| Blocks::one(if rank < root { rank } else { rank - 1 });
    let all = b.all();
    if b.rank() == root {
        for peer in b.peers_above() {
            b.put(peer, Value::Copy(input(owned(peer))));
        }
        b.copy(out(all), input(all));
        b.skew(1);
        for peer in b.peers_above() {
            b.hear(peer);
        }
        return;
    }
    let own = owned(b.rank());
    b.wait(root, own);
    for peer in b.peers_above().filter(|&peer| peer != root) {
        b.put(peer, Value::Copy(slot(root, own)));
    }
    b.copy(out(own), slot(root, own));
    b.release(root);
    b.signal(root);
    b.skew(1);
    for peer in b.peers_below().filter(|&peer| peer != root) {
        b.receive(peer, owned(peer));
    }
}
