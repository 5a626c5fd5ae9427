//! A pipeline from rank to rank.
//!
//! - broadcast: from the root upwards, `(p-2+k) (a + S b / k)` in `k` pieces; each rank acknowledges to the one before it
//!   as soon as it has a piece.
//! - reduce: from the far end down to the root, each rank adding its input on the way; each signals
//!   to the next as it enters.

use crate::builder::{Builder, input, out, slot, wrap};
use crate::ir::{Op, Value};

pub(super) fn build(b: &mut Builder) {
    match b.op() {
        Op::Reduce { root } => reduce(b, root),
        Op::Broadcast { root } => broadcast(b, root),
        _ => {}
    }
}

fn broadcast(b: &mut Builder, root: u32) {
    let (me, ranks, all) = (b.rank(), b.ranks(), b.all());
    let position = wrap(me, ranks - root, ranks);
    let (next, before) = (b.above(1), b.below(1));
    let last = position + 1 == ranks;
    if position == 0 {
        b.put(next, Value::Copy(input(all)));
        b.copy(out(all), input(all));
    } else {
        b.wait(before, all);
        if !last {
            b.put(next, Value::Copy(slot(before, all)));
        }
        b.copy(out(all), slot(before, all));
        b.release(before);
    }
    if position > 0 {
        b.signal(before);
    }
    if !last {
        b.skew(1).hear(next);
    }
}

fn reduce(b: &mut Builder, root: u32) {
    let (me, ranks, all) = (b.rank(), b.ranks(), b.all());
    let position = wrap(me, ranks - root, ranks);
    let (next, before) = (b.above(1), b.below(1));
    if position + 1 < ranks {
        b.signal(next);
        b.wait(next, all);
        if position == 0 {
            b.reduce(out(all), input(all), slot(next, all), true);
        } else {
            let value = Value::Reduce {
                a: input(all),
                b: slot(next, all),
                last: false,
            };
            b.put(before, value);
        }
        b.release(next);
    } else {
        b.put(before, Value::Copy(input(all)));
    }
    if position > 0 {
        b.skew(1).hear(before);
    }
}
