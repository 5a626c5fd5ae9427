//! Everybody to everybody, once.
//!
//! - all_reduce: everybody gets all inputs whole and folds them: `a + S b + (p-1) S g`.
//! - all_gather: `a + (S/p) b` where every pair has its own link.
//! - reduce_scatter: each owner gets its block from everybody: `a + (S/p) b + ((p-1)/p) S g`.
//! - broadcast: the root to everybody: `a + S b`, and a signal back.
//! - reduce: everybody to the root, which folds: `a + S b + (p-1) S g`; gather: `a + (S/p) b` from
//!   each. The root signals to all as it enters.
//! - scatter: the root to everybody: `a + (S/p) b` to each, and a signal back.
//! - all_to_all: `a + (S/p) b`. Every pair of ranks may have a size of its own.
//! - barrier: a signal to everybody: `a`.
//!
//! Puts go out one piece ahead of the waits, so that a piece travels while another is consumed.

use crate::builder::{Builder, input, out};
use crate::ir::{Blocks, Op, Value};

use super::fold::{Source, fold_in_rank_order};

pub(super) fn build(b: &mut Builder) {
    match b.op() {
        Op::AllReduce => all_reduce(b),
        Op::ReduceScatter => reduce_scatter(b),
        Op::AllGather => all_gather(b),
        Op::Broadcast { root } => broadcast(b, root),
        Op::Reduce { root } => reduce(b, root),
        Op::Gather { root } => gather(b, root),
        Op::Scatter { root } => scatter(b, root),
        Op::AllToAll => all_to_all(b),
        Op::Barrier => barrier(b),
        Op::Send { .. } | Op::Recv { .. } => {}
    }
}

fn all_reduce(b: &mut Builder) {
    let all = b.all();
    b.peers_above(|b, peer| b.put(peer, Value::Copy(input(all))));
    b.skew(1);
    fold_in_rank_order(b, all, Source::Slots);
}

fn reduce_scatter(b: &mut Builder) {
    put_each_its_block(b);
    b.skew(1);
    fold_in_rank_order(b, Blocks::one(b.rank()), Source::Slots);
}

pub(super) fn all_gather(b: &mut Builder) {
    let own = Blocks::one(b.rank());
    b.peers_above(|b, peer| b.put(peer, Value::Copy(input(own))));
    b.copy(out(own), input(own));
    b.skew(1).peers_below(receive_its_block);
}

pub(super) fn broadcast(b: &mut Builder, root: u32) {
    let all = b.all();
    if b.rank() == root {
        b.peers_above(|b, peer| b.put(peer, Value::Copy(input(all))));
        b.copy(out(all), input(all));
        b.skew(1).peers_above(Builder::hear);
    } else {
        b.receive(root, all);
        b.signal(root);
    }
}

fn reduce(b: &mut Builder, root: u32) {
    let all = b.all();
    if b.rank() == root {
        b.peers_above(Builder::signal);
        fold_in_rank_order(b, all, Source::Slots);
    } else {
        b.put(root, Value::Copy(input(all)));
        b.skew(1).hear(root);
    }
}

fn gather(b: &mut Builder, root: u32) {
    let own = Blocks::one(b.rank());
    if b.rank() == root {
        b.peers_above(Builder::signal);
        b.copy(out(own), input(own));
        b.peers_above(receive_its_block);
    } else {
        b.put(root, Value::Copy(input(own)));
        b.skew(1).hear(root);
    }
}

fn scatter(b: &mut Builder, root: u32) {
    let own = Blocks::one(b.rank());
    if b.rank() == root {
        put_each_its_block(b);
        b.copy(out(own), input(own));
        b.skew(1).peers_above(Builder::hear);
    } else {
        b.receive(root, own);
        b.signal(root);
    }
}

/// What comes is stored after all of the same piece has gone, since in place it overwrites it.
fn all_to_all(b: &mut Builder) {
    let (own, ranks) = (b.rank(), b.ranks());
    put_each_its_block(b);
    b.copy(out(Blocks::one(ranks + own)), input(Blocks::one(own)));
    b.skew(1).peers_below(|b, peer| {
        b.with_blocks().receive(peer, Blocks::one(ranks + peer));
    });
}

pub(super) fn barrier(b: &mut Builder) {
    b.peers_above(Builder::signal);
    b.peers_below(Builder::hear);
}

/// Block `r` of the input to rank `r`, for all peers.
fn put_each_its_block(b: &mut Builder) {
    b.peers_above(|b, peer| {
        let block = Blocks::one(peer);
        b.with_blocks().put(peer, Value::Copy(input(block)));
    });
}

/// Block `r` of the output from rank `r`.
pub(super) fn receive_its_block(b: &mut Builder, peer: u32) {
    b.with_blocks().receive(peer, Blocks::one(peer));
}
