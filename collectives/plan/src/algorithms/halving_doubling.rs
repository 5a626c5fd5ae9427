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
use super::team::Team;

pub(super) fn build(b: &mut Builder) {
    let team = Team::all(b);
    match b.op() {
        Op::ReduceScatter => {
            let buffers = [Buffer::In, Buffer::Scratch, Buffer::Out];
            scatter(b, &team, buffers, true);
        }
        Op::AllGather => {
            let own = Blocks::one(b.rank());
            b.copy(out(own), input(own));
            gather(b, &team);
        }
        _ => all_reduce(b, &team),
    }
}

/// Adds up each member's share of what all members have in the first buffer, by way of the second,
/// and stores it in the third. If `last`, that completes it.
pub(crate) fn scatter(b: &mut Builder, team: &Team<'_>, buffers: [Buffer; 3], last: bool) {
    let [held, sums, result] = buffers;
    let mut halving = Halving::new(team, held, sums);
    for level in levels(team.me, team.count()) {
        halving.send(b, &level);
        halving.receive(b, &level);
    }
    halving.finish(b, result, last);
}

/// Everybody gets all shares, from the outputs of the members to their outputs.
pub(crate) fn gather(b: &mut Builder, team: &Team<'_>) {
    for level in levels(team.me, team.count()).iter().rev() {
        send_half(b, team, level);
        receive_half(b, team, level);
    }
}

/// Levels are counted from the top, on ranks with fewer of them too, so that both sides of an
/// exchange have it in the same place among the others.
fn all_reduce(b: &mut Builder, team: &Team<'_>) {
    let levels = levels(team.me, team.count());
    let mut halving = Halving::new(team, Buffer::In, Buffer::Out);
    let height = height(b.ranks()) as usize;
    for step in 0..height {
        let (down, up) = (levels.get(step), levels.get(height - 1 - step));
        up.into_iter()
            .for_each(|level| send_half(b.skew(1), team, level));
        down.into_iter()
            .for_each(|level| halving.send(b.skew(0), level));
        up.into_iter()
            .for_each(|level| receive_half(b.skew(1), team, level));
        down.into_iter()
            .for_each(|level| halving.receive(b.skew(0), level));
    }
    halving.finish(b.skew(0), Buffer::Out, true);
}

/// All blocks of the own half to those from whom they would come when halving.
fn send_half(b: &mut Builder, team: &Team<'_>, level: &Level) {
    for &to in level.takes() {
        let value = Value::Copy(out(team.blocks(level.kept)));
        b.put(team.rank(to), value);
    }
}

/// The other half's blocks, from the rank to which they would go when halving.
fn receive_half(b: &mut Builder, team: &Team<'_>, level: &Level) {
    b.receive(team.rank(level.gives), team.blocks(level.sent));
}

/// The reduce_scatter of one rank: where its partial sums are.
struct Halving<'a> {
    team: &'a Team<'a>,
    /// Where partial sums go.
    sums: Buffer,
    /// Where they are now.
    held: Buffer,
    /// The member whose current slot has not been added yet.
    pending: Option<u32>,
}

impl<'a> Halving<'a> {
    fn new(team: &'a Team<'a>, held: Buffer, sums: Buffer) -> Self {
        Self {
            team,
            sums,
            held,
            pending: None,
        }
    }

    /// The sum of everything that came in so far, for the blocks of some members.
    fn value(&self, members: Blocks, last: bool) -> Value {
        let blocks = self.team.blocks(members);
        let held = local(self.held, blocks);
        match self.pending {
            None => Value::Copy(held),
            Some(from) => {
                let theirs = slot(self.team.rank(from), blocks);
                let (a, b) = ordered(self.team.me, held, from, theirs);
                Value::Reduce { a, b, last }
            }
        }
    }

    /// Sends the half that the other side keeps, and adds up the own half.
    fn send(&mut self, b: &mut Builder, level: &Level) {
        let value = self.value(level.sent, false);
        b.put(self.team.rank(level.gives), value);
        self.settle(b, level.kept);
    }

    fn receive(&mut self, b: &mut Builder, level: &Level) {
        for &from in level.takes() {
            self.settle(b, level.kept);
            b.wait(self.team.rank(from), self.team.blocks(level.kept));
            self.pending = Some(from);
        }
    }

    /// Adds what is pending, and gives its slot back.
    fn settle(&mut self, b: &mut Builder, kept: Blocks) {
        if let Some(from) = self.pending {
            let value = self.value(kept, false);
            b.store(local(self.sums, self.team.blocks(kept)), value);
            self.held = self.sums;
            b.release(self.team.rank(from));
            self.pending = None;
        }
    }

    /// The sum of the own share to the result.
    fn finish(self, b: &mut Builder, result: Buffer, last: bool) {
        let own = local(result, self.team.share(self.team.me));
        let sum = self.value(Blocks::one(self.team.me), last);
        if sum != Value::Copy(own) {
            b.store(own, sum);
        }
        if let Some(from) = self.pending {
            b.release(self.team.rank(from));
        }
    }
}

/// Two operands, the lower member's first.
fn ordered(member_a: u32, a: Place, member_b: u32, b: Place) -> (Place, Place) {
    if member_a < member_b { (a, b) } else { (b, a) }
}
