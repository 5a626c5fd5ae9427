//! Both ways round the ring at once: half the rounds of a ring, and half its bytes on each link.
//!
//! - all_gather: `floor(p/2) a + ((p-1)/(2p)) S b`; reduce_scatter the same and `((p-1)/p) S g`.
//! - all_reduce: both, one after the other, since each has both directions of the links to itself.
//!
//! What is for the ranks on one side of a rank goes one way, what is for the others the other way.
//! Of an even number of ranks one is on both sides, opposite. Then every block has two halves, and
//! of what is for the opposite rank one half goes each way.
//!
//! Two ranks have one link, and do as in a ring.

use crate::builder::{Builder, input, local, out, slot};
use crate::ir::{Blocks, Buffer, Op, Value};

use super::ring;

pub(super) fn build(b: &mut Builder) {
    if b.ranks() == 2 {
        return ring::build(b);
    }
    match b.op() {
        Op::ReduceScatter => reduce_scatter(b),
        Op::AllGather => {
            let own = Way::up(b).whole(b.rank());
            b.copy(out(own), input(own));
            all_gather(b);
        }
        _ => {
            reduce_scatter(b);
            all_gather(b);
        }
    }
}

/// Blocks of each rank: two halves if some rank is opposite, and not next to it.
pub(super) fn halves(ranks: u32) -> u32 {
    if ranks > 2 && ranks.is_multiple_of(2) {
        2
    } else {
        1
    }
}

/// One way round.
#[derive(Clone, Copy)]
struct Way {
    to: u32,
    from: u32,
    /// Which half of the opposite rank's block goes this way.
    half: u32,
    /// Blocks of a rank.
    halves: u32,
    /// The farthest distance.
    farthest: u32,
    /// From the blocks of a rank to those of the rank behind it, that is, one towards `from`.
    back: u32,
}

impl Way {
    fn up(b: &Builder) -> Self {
        let (ranks, halves) = (b.ranks(), halves(b.ranks()));
        Self {
            to: b.above(1),
            from: b.below(1),
            half: 0,
            halves,
            farthest: ranks / 2,
            back: (ranks - 1) * halves,
        }
    }

    fn down(b: &Builder) -> Self {
        let up = Way::up(b);
        Self {
            to: up.from,
            from: up.to,
            half: up.halves - 1,
            back: up.halves,
            ..up
        }
    }

    fn both(b: &Builder) -> [Self; 2] {
        [Way::up(b), Way::down(b)]
    }

    fn whole(&self, rank: u32) -> Blocks {
        Blocks::new(rank * self.halves, self.halves)
    }

    /// What goes this way of the blocks of a rank, at this distance from it.
    fn part(&self, rank: u32, distance: u32) -> Blocks {
        if distance < self.farthest || self.halves == 1 {
            self.whole(rank)
        } else {
            Blocks::one(rank * self.halves + self.half)
        }
    }

    /// The rank from which this way comes after so many steps.
    fn behind(&self, b: &Builder, distance: u32) -> u32 {
        if self.back == self.halves {
            b.above(distance)
        } else {
            b.below(distance)
        }
    }

    /// The rank to which this way leads after so many steps.
    fn ahead(&self, b: &Builder, distance: u32) -> u32 {
        if self.back == self.halves {
            b.below(distance)
        } else {
            b.above(distance)
        }
    }
}

fn all_gather(b: &mut Builder) {
    let source = match b.op() {
        Op::AllGather => input,
        _ => out,
    };
    let ways = Way::both(b);
    for way in &ways {
        b.put(way.to, Value::Copy(source(way.part(b.rank(), 1))));
    }
    let farthest = ways[0].farthest;
    b.repeat(farthest.saturating_sub(2), |b| gather_round(b, &ways, 1));
    for distance in farthest.saturating_sub(1).max(1)..=farthest {
        gather_round(b, &ways, distance);
    }
}

/// Takes the blocks of the ranks at a distance, and hands them on if that is not the farthest.
fn gather_round(b: &mut Builder, ways: &[Way], distance: u32) {
    for way in ways {
        let owner = way.behind(b, distance);
        let part = way.part(owner, distance);
        b.drift(0, way.back);
        b.wait(way.from, part);
        if distance < way.farthest {
            let onwards = way.part(owner, distance + 1);
            b.put(way.to, Value::Copy(slot(way.from, onwards)));
        }
        b.copy(out(part), slot(way.from, part));
        b.release(way.from);
    }
}

fn reduce_scatter(b: &mut Builder) {
    let ways = Way::both(b);
    let farthest = ways[0].farthest;
    for way in &ways {
        let part = way.part(way.ahead(b, farthest), farthest);
        b.put(way.to, Value::Copy(input(part)));
    }
    if farthest > 1 {
        scatter_round(b, &ways, farthest - 1);
        b.repeat(farthest - 2, |b| scatter_round(b, &ways, farthest - 2));
    }
    let [up, down] = ways;
    let own = up.whole(b.rank());
    b.wait(up.from, own);
    b.reduce(out(own), slot(up.from, own), input(own), false);
    b.release(up.from);
    b.wait(down.from, own);
    b.reduce(out(own), out(own), slot(down.from, own), true);
    b.release(down.from);
}

/// Takes the partial sums for the ranks at a distance, and hands them on with its own input.
fn scatter_round(b: &mut Builder, ways: &[Way], distance: u32) {
    for way in ways {
        let owner = way.ahead(b, distance);
        let (came, goes) = (way.part(owner, distance + 1), way.part(owner, distance));
        b.drift(0, way.back);
        b.wait(way.from, came);
        let (a, own) = (slot(way.from, came), input(came));
        if came == goes {
            let value = Value::Reduce {
                a,
                b: own,
                last: false,
            };
            b.put(way.to, value);
        } else {
            // Only one half has come; this rank's input begins the other.
            let rest = Blocks::one(owner * way.halves + 1 - way.half);
            b.reduce(local(Buffer::Scratch, came), a, own, false);
            b.copy(local(Buffer::Scratch, rest), input(rest));
            b.put(way.to, Value::Copy(local(Buffer::Scratch, goes)));
        }
        b.release(way.from);
    }
}
