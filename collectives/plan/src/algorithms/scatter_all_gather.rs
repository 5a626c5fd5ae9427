//! Large rooted operations in two halves, each of which moves only shares of the message.
//!
//! - broadcast: a binomial scatter, then an all_gather round a ring:
//!   `(ceil(lg p) + p - 1) a + 2 ((p-1)/p) S b`. The root takes no part in the gathering but to send.
//! - reduce: a reduce_scatter round a ring, then a binomial gather: the same, and `((p-1)/p) S g`.
//!
//! Block `i` belongs to the `i`-th rank, counted from the root.

use crate::builder::{Builder, input, local, out, slot, wrap};
use crate::ir::{Blocks, Buffer, Op, Value};

use super::binomial::Binomial;

pub(super) fn build(b: &mut Builder) {
    match b.op() {
        Op::Broadcast { root } => {
            // What its ranks tell their parents goes against the ring.
            let tree = Binomial::upwards(b, root);
            tree.scatter(b, Buffer::In, |relative| relative);
            if tree.relative == 0 {
                let others = Blocks::new(1, b.ranks() - 1);
                b.copy(out(others), input(others));
                send_all(b);
            } else {
                gather(b, tree.relative);
            }
            tree.acknowledge(b);
        }
        Op::Reduce { root } => {
            // What its ranks tell their parents goes against the ring.
            let tree = Binomial::upwards(b, root);
            let sums = match tree.relative {
                0 => Buffer::Out,
                _ => Buffer::Scratch,
            };
            reduce_scatter(b, tree.relative, sums);
            tree.gather(b, sums, |relative| relative);
        }
        _ => {}
    }
}

/// The root's part in the ring: each block in turn.
fn send_all(b: &mut Builder) {
    let (next, ranks) = (b.above(1), b.ranks());
    b.put(next, Value::Copy(input(Blocks::one(0))));
    b.repeat(ranks - 2, |b| {
        let last = input(Blocks::one(ranks - 1));
        b.drift(0, ranks - 1).put(next, Value::Copy(last));
    });
}

/// Everybody else's part: hands on what comes, except back to the root.
fn gather(b: &mut Builder, relative: u32) {
    let (next, before, ranks) = (b.above(1), b.below(1), b.ranks());
    let hands_on = relative + 1 < ranks;
    let own = Blocks::one(relative);
    if hands_on {
        b.put(next, Value::Copy(out(own)));
    }
    let take = |b: &mut Builder, round: u32, hands_on: bool| {
        let block = Blocks::one(wrap(relative, ranks - round, ranks));
        b.drift(0, ranks - 1);
        b.wait(before, block);
        if hands_on {
            b.put(next, Value::Copy(slot(before, block)));
        }
        b.copy(out(block), slot(before, block));
        b.release(before);
    };
    b.repeat(ranks - 2, |b| take(b, 1, hands_on));
    take(b, ranks - 1, false);
}

/// As in a ring: block `i` starts on the rank above its owner and ends with its owner.
fn reduce_scatter(b: &mut Builder, relative: u32, sums: Buffer) {
    let (next, before, ranks) = (b.above(1), b.below(1), b.ranks());
    let block = |step: u32| Blocks::one(wrap(relative, ranks - 1 - step, ranks));
    b.put(next, Value::Copy(input(block(0))));
    b.repeat(ranks - 2, |b| {
        let block = block(1);
        b.drift(0, ranks - 1).wait(before, block);
        let value = Value::Reduce {
            a: slot(before, block),
            b: input(block),
            last: false,
        };
        b.put(next, value);
        b.release(before);
    });
    let own = Blocks::one(relative);
    b.wait(before, own);
    b.reduce(local(sums, own), slot(before, own), input(own), true);
    b.release(before);
}
