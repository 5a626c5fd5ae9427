//! Neighbour to neighbour.
//!
//! - reduce_scatter and all_gather: `(p-1) a + ((p-1)/p) S b`.
//! - all_reduce: both, `2 (p-1) a + 2 ((p-1)/p) S b + ((p-1)/p) S g`. The reduce_scatter of a piece
//!   runs upwards while the all_gather of the piece before runs downwards: each fills the other's
//!   waits, and both directions of the links carry data.

use crate::builder::{Builder, input, out, slot, wrap};
use crate::ir::{Blocks, Op, Value};

pub(super) fn build(b: &mut Builder) {
    match b.op() {
        Op::ReduceScatter => steps(b, scatter_step),
        Op::AllGather => {
            let own = Blocks::one(b.rank());
            b.copy(out(own), input(own));
            steps(b, |b, step| gather_step(b, step, Direction::Up));
        }
        _ => steps(b, |b, step| {
            scatter_step(b.skew(0), step);
            gather_step(b.skew(1), step, Direction::Down);
        }),
    }
}

/// The first step, those between as one loop, and the last step.
pub(super) fn steps(b: &mut Builder, step: impl Fn(&mut Builder, u32)) {
    let last = b.ranks() - 1;
    step(b, 0);
    b.repeat(last - 1, |b| step(b, 1));
    step(b, last);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// One step of the reduce_scatter, which runs upwards: block `b` starts on the rank above its
/// owner, gathers the others' inputs on its way round, and ends with its owner.
pub(super) fn scatter_step(b: &mut Builder, step: u32) {
    let (me, ranks) = (b.rank(), b.ranks());
    let above = wrap(me, 1, ranks);
    let below = wrap(me, ranks - 1, ranks);
    let block = Blocks::one(wrap(me, ranks - 1 - step, ranks));
    if step == 0 {
        b.put(above, Value::Copy(input(block)));
        return;
    }
    let (sum, own) = (slot(below, block), input(block));
    b.drift(0, ranks - 1);
    b.wait(below, block);
    if step + 1 < ranks {
        b.put(
            above,
            Value::Reduce {
                a: sum,
                b: own,
                last: false,
            },
        );
    } else {
        b.reduce(out(block), sum, own, true);
    }
    b.release(below);
}

/// One step of the all_gather: takes a block from one neighbour, hands it to the other, keeps it.
fn gather_step(b: &mut Builder, step: u32, direction: Direction) {
    let (me, ranks) = (b.rank(), b.ranks());
    let (above, below) = (wrap(me, 1, ranks), wrap(me, ranks - 1, ranks));
    let (to, from, owner, drift) = match direction {
        Direction::Up => (above, below, wrap(me, ranks - step, ranks), ranks - 1),
        Direction::Down => (below, above, wrap(me, step, ranks), 1),
    };
    let block = Blocks::one(owner);
    if step == 0 {
        b.put(to, Value::Copy(own_block(b, block)));
        return;
    }
    b.drift(0, drift);
    b.wait(from, block);
    if step + 1 < ranks {
        b.put(to, Value::Copy(slot(from, block)));
    }
    b.copy(out(block), slot(from, block));
    b.release(from);
}

/// Where a rank's own contribution to the all_gather is.
fn own_block(b: &Builder, block: Blocks) -> crate::ir::Place {
    match b.op() {
        Op::AllGather => input(block),
        _ => out(block),
    }
}
