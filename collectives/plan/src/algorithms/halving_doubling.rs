//! Recursive halving and recursive doubling.
//!
//! reduce_scatter halves what a rank is responsible for at each exchange, with partners at
//! distances `p/2, p/4, ..., 1`; all_gather doubles what it has, at distances `1, 2, ..., p/2`;
//! all_reduce is both: `2 lg p a + 2 ((p-1)/p) S b + ((p-1)/p) S g`. Where `p` is no power of two,
//! the fold of [`super::halving_groups`] adds `2 a + 2 S b`. broadcast is a binomial tree.
//!
//! A received half is not stored before it is needed: the part that goes on to the next partner is
//! reduced on its way out, the rest is reduced in place. In all_reduce the doubling of one piece
//! runs beside the halving of the next.

use crate::builder::{Builder, input, local, out, slot};
use crate::ir::{Blocks, Buffer, Op, Place, Value};

use super::halving_groups::{Groups, Role};
use super::tree;

pub(super) fn build(b: &mut Builder) {
    let per_rank = b.op().has_block_per_rank();
    let groups = Groups::new(b.ranks(), per_rank);
    match (b.op(), groups.role(b.rank())) {
        (Op::Broadcast { root }, _) => tree::broadcast(b, root),
        (op, Role::Folded { proxy }) => sit_out(b, op, proxy),
        (op, Role::Core { number, folded }) => {
            let core = Core {
                groups,
                number,
                folded,
            };
            match op {
                Op::ReduceScatter => core.reduce_scatter(b),
                Op::AllGather => core.all_gather(b),
                _ => core.all_reduce(b),
            }
        }
    }
}

/// A rank outside the core hands over its input and gets the result.
fn sit_out(b: &mut Builder, op: Op, proxy: u32) {
    let (all, own) = (b.all(), Blocks::one(b.rank()));
    let (gives, gets) = match op {
        Op::ReduceScatter => (all, own),
        Op::AllGather => (own, all),
        _ => (all, all),
    };
    b.put(proxy, Value::Copy(input(gives)));
    b.skew(1).receive(proxy, gets);
}

/// A rank of the core.
struct Core {
    groups: Groups,
    number: u32,
    folded: Option<u32>,
}

impl Core {
    fn all_reduce(&self, b: &mut Builder) {
        let mut halving = Halving::new(self, b, Buffer::Out);
        for level in 0..self.groups.levels() {
            self.doubling_send(b.skew(1), level);
            halving.send(b.skew(0), level);
            self.doubling_receive(b.skew(1), level);
            halving.receive(b.skew(0), level);
        }
        let own = self.groups.blocks(self.number, 1);
        let sum = halving.value(own, true);
        b.store(out(own), sum);
        halving.release(b);
        self.give_back(b.skew(1));
    }

    fn reduce_scatter(&self, b: &mut Builder) {
        let mut halving = Halving::new(self, b, Buffer::Scratch);
        for level in 0..self.groups.levels() {
            halving.send(b, level);
            halving.receive(b, level);
        }
        if let Some(rank) = self.folded {
            b.put(rank, halving.value(Blocks::one(rank), true));
        }
        let own = Blocks::one(b.rank());
        let sum = halving.value(own, true);
        b.store(out(own), sum);
        halving.release(b);
    }

    fn all_gather(&self, b: &mut Builder) {
        let own = Blocks::one(b.rank());
        b.copy(out(own), input(own));
        if let Some(rank) = self.folded {
            b.receive(rank, Blocks::one(rank));
        }
        for level in 0..self.groups.levels() {
            self.doubling_send(b, level);
            self.doubling_receive(b, level);
        }
        self.give_back(b);
    }

    /// Hands all blocks to the rank for which this one speaks.
    fn give_back(&self, b: &mut Builder) {
        if let Some(rank) = self.folded {
            b.put(rank, Value::Copy(out(b.all())));
        }
    }

    fn doubling_send(&self, b: &mut Builder, level: u32) {
        let size = 1 << level;
        let have = self.groups.blocks(self.number & !(size - 1), size);
        b.put(self.partner(size), Value::Copy(out(have)));
    }

    fn doubling_receive(&self, b: &mut Builder, level: u32) {
        let size = 1 << level;
        let first = (self.number & !(size - 1)) ^ size;
        b.receive(self.partner(size), self.groups.blocks(first, size));
    }

    fn partner(&self, distance: u32) -> u32 {
        self.groups.rank(self.number ^ distance)
    }
}

/// The reduce_scatter of one rank: where its partial sums are.
struct Halving<'a> {
    core: &'a Core,
    /// Where partial sums go.
    sums: Buffer,
    /// Where they are now: at first the input itself.
    held: Buffer,
    /// The rank whose current slot has not been added yet.
    pending: Option<u32>,
}

impl<'a> Halving<'a> {
    /// Starts with the input of the folded rank, if there is one.
    fn new(core: &'a Core, b: &mut Builder, sums: Buffer) -> Self {
        let pending = core.folded;
        if let Some(rank) = pending {
            b.wait(rank, b.all());
        }
        Self {
            core,
            sums,
            held: Buffer::In,
            pending,
        }
    }

    /// The sum of everything that came in so far, for some blocks.
    fn value(&self, blocks: Blocks, last: bool) -> Value {
        let held = local(self.held, blocks);
        match self.pending {
            None => Value::Copy(held),
            Some(from) => {
                let theirs = slot(from, blocks);
                let own_rank = self.core.groups.rank(self.core.number);
                let (a, b) = ordered(own_rank, held, from, theirs);
                Value::Reduce { a, b, last }
            }
        }
    }

    /// Sends the half that the partner keeps, and adds up the other half.
    fn send(&mut self, b: &mut Builder, level: u32) {
        let (distance, kept, sent) = self.halves(level);
        let value = self.value(sent, false);
        b.put(self.core.partner(distance), value);
        if self.pending.is_some() {
            let value = self.value(kept, false);
            b.store(local(self.sums, kept), value);
            self.held = self.sums;
            self.release(b);
        }
    }

    fn receive(&mut self, b: &mut Builder, level: u32) {
        let (distance, kept, _) = self.halves(level);
        let partner = self.core.partner(distance);
        b.wait(partner, kept);
        self.pending = Some(partner);
    }

    fn release(&mut self, b: &mut Builder) {
        if let Some(from) = self.pending.take() {
            b.release(from);
        }
    }

    /// The distance of the partner at a level, the blocks that stay and the blocks that go.
    fn halves(&self, level: u32) -> (u32, Blocks, Blocks) {
        let distance = self.core.groups.core() >> (level + 1);
        let kept = self.core.number & !(distance - 1);
        let blocks = |first| self.core.groups.blocks(first, distance);
        (distance, blocks(kept), blocks(kept ^ distance))
    }
}

/// Two operands, the lower rank's first.
fn ordered(rank_a: u32, a: Place, rank_b: u32, b: Place) -> (Place, Place) {
    if rank_a < rank_b { (a, b) } else { (b, a) }
}
