//! all_to_all in `p - 1` rounds; in round `k` everybody sends to the rank `k` above and gets from
//! the rank `k` below: `(p-1) a + b * sum over k of the largest message of round k`.
//!
//! So every rank sends and receives one message at a time, and where messages have sizes of their
//! own a round is as long as its largest one.
//!
//! In place, what comes from a rank overwrites what goes to it, which is sent `p - k` rounds after
//! the start. What comes earlier than that stays in its slot until then.

use crate::builder::{Builder, input, out, slot};
use crate::ir::{Blocks, Value};

pub(super) fn build(b: &mut Builder) {
    let (me, ranks) = (b.rank(), b.ranks());
    let early = (ranks - 1) / 2;
    b.copy(out(Blocks::one(ranks + me)), input(Blocks::one(me)));
    b.repeat(early, |b| exchange(b, 1));
    if ranks % 2 == 0 {
        exchange(b, ranks / 2);
        keep(b, b.below(ranks / 2));
    }
    b.repeat(early, |b| {
        let round = ranks - early;
        exchange(b, round);
        keep(b, b.below(round));
        // What came from the rank to which this round sends.
        b.drift(1, 1);
        keep(b, b.above(round));
    });
}

/// Sends to the rank so far above, and waits for the rank so far below.
fn exchange(b: &mut Builder, round: u32) {
    let (ranks, to, from) = (b.ranks(), b.above(round), b.below(round));
    b.drift(1, 1).put(to, Value::Copy(input(Blocks::one(to))));
    b.drift(ranks - 1, ranks - 1);
    b.wait(from, Blocks::one(ranks + from));
}

/// Stores what came from a rank.
fn keep(b: &mut Builder, from: u32) {
    let blocks = Blocks::one(b.ranks() + from);
    b.copy(out(blocks), slot(from, blocks));
    b.release(from);
}
