//! Recursive halving and recursive doubling.
//!
//! reduce_scatter halves what a rank is responsible for at each exchange; all_gather doubles what it
//! has; all_reduce is both: `2 lg p a + 2 ((p-1)/p) S b + ((p-1)/p) S g`. Where `p` is no power of
//! two, halves are unequal and one exchange of a level is between three: see [`super::halves`]. That
//! moves far fewer bytes than a fold onto a power of two, which would move the message twice more.
//!
//! A received half is not stored before it is needed: the part that goes on to the next partner is
//! reduced on its way out, the rest is reduced in place. In all_reduce the doubling of one piece
//! runs beside the halving of the next.

use crate::builder::{Builder, input, local, out, slot};
use crate::ir::{Blocks, Buffer, Op, Place, Value};

use super::binomial::height;
use super::halves::{Level, levels};

pub(super) fn build(b: &mut Builder) {
    let levels = levels(b.rank(), b.ranks());
    match b.op() {
        Op::ReduceScatter => {
            let mut halving = Halving::new(Buffer::Scratch);
            for level in &levels {
                halving.exchange(b, level);
            }
            halving.finish(b);
        }
        Op::AllGather => {
            let own = Blocks::one(b.rank());
            b.copy(out(own), input(own));
            for level in levels.iter().rev() {
                send_half(b, level);
                receive_half(b, level);
            }
        }
        _ => all_reduce(b, &levels),
    }
}

/// Levels are counted from the top, on ranks with fewer of them too, so that both sides of an
/// exchange have it in the same place among the others.
fn all_reduce(b: &mut Builder, levels: &[Level]) {
    let mut halving = Halving::new(Buffer::Out);
    let height = height(b.ranks()) as usize;
    for step in 0..height {
        let (down, up) = (levels.get(step), levels.get(height - 1 - step));
        up.into_iter().for_each(|level| send_half(b.skew(1), level));
        down.into_iter()
            .for_each(|level| halving.send(b.skew(0), level));
        up.into_iter()
            .for_each(|level| receive_half(b.skew(1), level));
        down.into_iter()
            .for_each(|level| halving.receive(b.skew(0), level));
    }
    halving.finish(b.skew(0));
}

/// All blocks of the own half to those from whom they would come when halving.
fn send_half(b: &mut Builder, level: &Level) {
    for &to in level.takes() {
        b.put(to, Value::Copy(out(level.kept)));
    }
}

/// The other half's blocks, from the rank to which they would go when halving.
fn receive_half(b: &mut Builder, level: &Level) {
    b.receive(level.gives, level.sent);
}

/// The reduce_scatter of one rank: where its partial sums are.
struct Halving {
    /// Where partial sums go.
    sums: Buffer,
    /// Where they are now: at first the input itself.
    held: Buffer,
    /// The rank whose current slot has not been added yet.
    pending: Option<u32>,
}

impl Halving {
    fn new(sums: Buffer) -> Self {
        Self {
            sums,
            held: Buffer::In,
            pending: None,
        }
    }

    fn exchange(&mut self, b: &mut Builder, level: &Level) {
        self.send(b, level);
        self.receive(b, level);
    }

    /// The sum of everything that came in so far, for some blocks.
    fn value(&self, b: &Builder, blocks: Blocks, last: bool) -> Value {
        let held = local(self.held, blocks);
        match self.pending {
            None => Value::Copy(held),
            Some(from) => {
                let (a, b) = ordered(b.rank(), held, from, slot(from, blocks));
                Value::Reduce { a, b, last }
            }
        }
    }

    /// Sends the half that the other side keeps, and adds up the own half.
    fn send(&mut self, b: &mut Builder, level: &Level) {
        let value = self.value(b, level.sent, false);
        b.put(level.gives, value);
        self.settle(b, level.kept);
    }

    fn receive(&mut self, b: &mut Builder, level: &Level) {
        for &from in level.takes() {
            self.settle(b, level.kept);
            b.wait(from, level.kept);
            self.pending = Some(from);
        }
    }

    /// Adds what is pending, and gives its slot back.
    fn settle(&mut self, b: &mut Builder, kept: Blocks) {
        if let Some(from) = self.pending {
            let value = self.value(b, kept, false);
            b.store(local(self.sums, kept), value);
            self.held = self.sums;
            b.release(from);
            self.pending = None;
        }
    }

    /// The complete sum of the own block to the output.
    fn finish(self, b: &mut Builder) {
        let own = Blocks::one(b.rank());
        let sum = self.value(b, own, true);
        b.store(out(own), sum);
        if let Some(from) = self.pending {
            b.release(from);
        }
    }
}

/// Two operands, the lower rank's first.
fn ordered(rank_a: u32, a: Place, rank_b: u32, b: Place) -> (Place, Place) {
    if rank_a < rank_b { (a, b) } else { (b, a) }
}
