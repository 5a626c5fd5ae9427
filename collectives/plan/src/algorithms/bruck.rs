//! Blocks of many ranks in each message, between ranks at distances 1, 2, 4, ...; any number of
//! ranks.
//!
//! - all_gather: `ceil(lg p) a + ((p-1)/p) S b`. A rank has its own block and those of the ranks
//!   above, and hands them down twice as far in each round.
//! - reduce_scatter: the same rounds backwards, sums instead of copies:
//!   `ceil(lg p) a + ((p-1)/p) S (b + g)`.
//! - all_to_all: `ceil(lg p) (a + (S/2) b)`, for small messages. In round `k` a rank hands up by
//!   `2^k` whatever has that bit in the distance that it has to go.

use crate::builder::{Builder, input, local, out, slot, wrap};
use crate::ir::{Blocks, Buffer, Op, Value};

use super::binomial::height;

pub(super) fn build(b: &mut Builder) {
    match b.op() {
        Op::AllGather => all_gather(b),
        Op::ReduceScatter => reduce_scatter(b),
        Op::AllToAll => all_to_all(b),
        _ => {}
    }
}

/// Blocks that go in round `k`: as many as a rank has, or as the other lacks.
fn blocks_of_round(k: u32, ranks: u32) -> u32 {
    (1 << k).min(ranks - (1 << k))
}

/// Blocks in the widest put of an all_gather or reduce_scatter.
pub(super) fn widest(ranks: u32) -> u32 {
    let rounds = 0..height(ranks);
    rounds.map(|k| blocks_of_round(k, ranks)).max().unwrap_or(1)
}

fn all_gather(b: &mut Builder) {
    let (me, ranks) = (b.rank(), b.ranks());
    b.copy(out(Blocks::one(me)), input(Blocks::one(me)));
    for k in 0..height(ranks) {
        let (above, below) = (b.above(1 << k), b.below(1 << k));
        let count = blocks_of_round(k, ranks);
        b.put(below, Value::Copy(out(Blocks::new(me, count))));
        b.receive(above, Blocks::new(above, count));
    }
}

/// A rank adds up the blocks of the `2^k` ranks from itself upwards, for ever smaller `k`. Before
/// the first round its partial sums are its input.
fn reduce_scatter(b: &mut Builder) {
    let (me, ranks) = (b.rank(), b.ranks());
    let scratch = |blocks| local(Buffer::Scratch, blocks);
    let mut sums = Buffer::In;
    for k in (0..height(ranks)).rev() {
        let (above, below) = (b.above(1 << k), b.below(1 << k));
        let count = blocks_of_round(k, ranks);
        b.put(above, Value::Copy(local(sums, Blocks::new(above, count))));
        let kept = Blocks::new(me, count);
        b.wait(below, kept);
        let (own, theirs) = (local(sums, kept), slot(below, kept));
        if k == 0 {
            b.reduce(out(kept), own, theirs, true);
        } else {
            b.reduce(scratch(kept), own, theirs, false);
        }
        b.release(below);
        // Where the first round brings less than half, the rest has nothing to be added to yet.
        let rest = Blocks::new(wrap(me, count, ranks), (1 << k) - count);
        if sums == Buffer::In && !rest.is_empty() {
            b.copy(scratch(rest), input(rest));
        }
        sums = Buffer::Scratch;
    }
}

/// What goes to rank `d` is kept as block `d` of scratch until its first round, and then, on
/// whatever rank it is, at the same distance from that rank.
fn all_to_all(b: &mut Builder) {
    let (me, ranks) = (b.rank(), b.ranks());
    let scratch = |blocks| local(Buffer::Scratch, blocks);
    let all = Blocks::new(0, ranks);
    b.copy(scratch(all), input(all));
    for k in 0..height(ranks) {
        let bit = 1u32 << k;
        let (above, below) = (b.above(bit), b.below(bit));
        let whole = ranks / (2 * bit) * bit;
        let count = whole + (ranks % (2 * bit)).saturating_sub(bit);
        let moving = Blocks::strided(wrap(me, bit, ranks), count, bit, 2 * bit);
        b.put(above, Value::Copy(scratch(moving)));
        b.wait(below, moving);
        b.copy(scratch(moving), slot(below, moving));
        b.release(below);
    }
    // What is at distance j has come from j below.
    let came = out(Blocks::backwards(ranks + me, ranks));
    b.copy(came, scratch(Blocks::new(me, ranks)));
}
