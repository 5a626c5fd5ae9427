//! Nonuniform hierarchical ring: like Bruck's algorithm, but the far distances come first, while
//! there is little to send. Any number of ranks.
//!
//! - all_gather: `ceil(lg p) a + ((p-1)/p) S b`, half of the bytes between neighbours.
//! - reduce_scatter: the same rounds backwards, and `((p-1)/p) S g`.
//! - all_reduce: both, `2 ceil(lg p) a + 2 ((p-1)/p) S b + ((p-1)/p) S g`, with no fold for numbers
//!   that are no power of two.
//!
//! With `d` the distance of a round, a rank then has the blocks of every `2d`-th rank below itself,
//! and sends those to the rank `d` above.

use crate::builder::{Builder, input, local, out, slot, wrap};
use crate::ir::{Blocks, Buffer, Op, Value};

use super::binomial::height;

pub(super) fn build(b: &mut Builder) {
    match b.op() {
        Op::ReduceScatter => reduce_scatter(b, Buffer::Scratch),
        Op::AllGather => {
            let own = Blocks::one(b.rank());
            b.copy(out(own), input(own));
            all_gather(b);
        }
        Op::AllReduce => {
            reduce_scatter(b, Buffer::Out);
            b.skew(1);
            all_gather(b);
        }
        _ => {}
    }
}

/// What `rank` sends to the rank `distance` above it: every `2 * distance`-th block from its own
/// downwards, as far as the receiver lacks them. In ascending order.
fn sent(rank: u32, distance: u32, ranks: u32) -> Blocks {
    let count = (ranks - 1 + distance) / (2 * distance);
    let down = (count - 1) * 2 * distance;
    Blocks::strided(wrap(rank, ranks - down, ranks), count, 1, 2 * distance)
}

fn all_gather(b: &mut Builder) {
    let (me, ranks) = (b.rank(), b.ranks());
    for k in (0..height(ranks)).rev() {
        let (above, below) = (b.above(1 << k), b.below(1 << k));
        b.put(above, Value::Copy(out(sent(me, 1 << k, ranks))));
        b.receive(below, sent(below, 1 << k, ranks));
    }
}

/// Partial sums go to `sums`: at first all of the input, in the end the own block alone.
fn reduce_scatter(b: &mut Builder, sums: Buffer) {
    let (me, ranks) = (b.rank(), b.ranks());
    let rounds = height(ranks);
    let mut held = Buffer::In;
    for k in 0..rounds {
        let distance = 1 << k;
        let (above, below) = (b.above(distance), b.below(distance));
        b.put(
            below,
            Value::Copy(local(held, sent(below, distance, ranks))),
        );
        let kept = sent(me, distance, ranks);
        b.wait(above, kept);
        let (own, theirs) = (local(held, kept), slot(above, kept));
        if k + 1 == rounds {
            b.reduce(out(kept), own, theirs, true);
        } else {
            b.reduce(local(sums, kept), own, theirs, false);
        }
        b.release(above);
        // The block farthest down may have nothing to be added to it yet.
        let far = (ranks - 1) / (2 * distance) * (2 * distance);
        if held == Buffer::In && far + distance >= ranks && k + 1 < rounds {
            let rest = Blocks::one(wrap(me, ranks - far, ranks));
            b.copy(local(sums, rest), input(rest));
        }
        held = sums;
    }
}
