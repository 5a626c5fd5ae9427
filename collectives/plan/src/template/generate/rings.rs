//! Several rings at once, each with a share of the message by its weight.
//!
//! - reduce_scatter and all_gather: each ring carries its share of every rank's block, `p - 1` rounds;
//!   all_reduce is both, one after the other.
//! - broadcast: a pipeline along every ring from the root; all hops of all rings work at the same
//!   time, each on another piece. The acknowledgements come back along the first ring.
//! - reduce: the same towards the root. The rank at the start of the first ring waits for a signal
//!   from the next one.
//!
//! Where two rings use one hop, a rank gives a slot back before it puts on: two slots are then
//! enough, at the price of a pass over partial sums.

use std::sync::Arc;

use crate::algorithms::Layout;
use crate::builder::{Builder, input, local, out, slot, wrap};
use crate::ir::{Blocks, Buffer, Op, Shares, Value};

use super::super::{Ring, Rings};

/// Ranks of a ring along which a message can be handed on at a rank a round.
const LONGEST_PIPELINE: u32 = 1 << 15;

pub(super) fn supports(rings: &Rings, op: Op) -> Result<(), &'static str> {
    match op {
        Op::AllReduce | Op::AllGather | Op::ReduceScatter => match rings.rings_on_a_hop() {
            ..=2 => Ok(()),
            _ => Err("more than two of its rings go from one rank to one other"),
        },
        Op::Broadcast { .. } | Op::Reduce { .. } if rings.ranks() > LONGEST_PIPELINE => {
            Err("its rings are too long for a pipeline")
        }
        Op::Broadcast { .. } | Op::Reduce { .. } => match rings.rings_on_a_hop() {
            ..=1 => Ok(()),
            _ => Err("two of its rings go from one rank to one other"),
        },
        _ => Err("it doesn't have this operation"),
    }
}

pub(super) fn layout(rings: &Rings, op: Op) -> Layout {
    let count = rings.rings().len() as u32;
    Layout {
        blocks: match op.root() {
            Some(_) => count,
            None => count * rings.ranks(),
        },
        put_blocks: u32::from(rings.ranks() > 1),
    }
}

pub(super) fn build(b: &mut Builder, rings: &Rings) {
    let (shares, names) = cut(rings, b.op());
    let section = match b.op().root() {
        Some(_) => b.all().count,
        None => b.ranks(),
    };
    b.cut(section, shares, names);
    match b.op() {
        Op::Broadcast { root } => broadcast(b, rings, root),
        Op::Reduce { root } => reduce(b, rings, root),
        op => {
            let hops = hops(b, rings);
            if op != Op::AllGather {
                scatter(b, &hops);
            }
            if op != Op::ReduceScatter {
                gather(b, &hops);
            }
        }
    }
}

/// Block `j p + i` is ring `j`'s share of the rank at position `i` of the ring.
fn cut(rings: &Rings, op: Op) -> (Shares, Option<Arc<[u32]>>) {
    let (count, ranks) = (rings.rings().len() as u32, rings.ranks());
    let mut sum = 0;
    let add = |ring: &Ring| {
        sum += ring.weight;
        sum
    };
    if op.root().is_some() {
        return (
            Shares::Cumulative(rings.rings().iter().map(add).collect()),
            None,
        );
    }
    if !op.has_block_per_rank() {
        let every = rings
            .rings()
            .iter()
            .flat_map(|ring| vec![ring; ranks as usize]);
        return (Shares::Cumulative(every.map(add).collect()), None);
    }
    let within: Vec<u64> = rings.rings().iter().map(add).collect();
    let shares = Shares::Within {
        starts: (0..=ranks).map(|rank| rank * count).collect(),
        ends: (0..ranks).flat_map(|_| within.iter().copied()).collect(),
    };
    let named = |(ring, of): (u32, &Ring)| {
        let ranks = of.order.ranks().clone();
        (0..ranks.len()).map(move |at| ranks[at] * count + ring)
    };
    let names = (0..).zip(rings.rings()).flat_map(named).collect();
    (shares, Some(names))
}

/// A ring as one rank sees it.
struct Hop {
    to: u32,
    from: u32,
    /// The position of this rank.
    at: u32,
    /// The first block of the ring.
    first: u32,
    /// Whether another ring uses some of the same hops.
    shared: bool,
    ranks: u32,
}

impl Hop {
    /// The block of the rank so many steps behind.
    fn behind(&self, steps: u32) -> Blocks {
        Blocks::one(self.first + wrap(self.at, self.ranks - steps % self.ranks, self.ranks))
    }
}

fn hops(b: &Builder, rings: &Rings) -> Vec<Hop> {
    let (me, ranks) = (b.rank(), b.ranks());
    let hop = |(number, ring): (u32, &Ring)| Hop {
        to: ring.after(me, 1),
        from: ring.after(me, ranks - 1),
        at: ring.order.position(me).unwrap_or(0),
        first: number * ranks,
        shared: rings.rings_on_a_hop() > 1,
        ranks,
    };
    (0..).zip(rings.rings()).map(hop).collect()
}

/// Each ring's rounds: a block starts behind its owner, and ends there.
fn scatter(b: &mut Builder, hops: &[Hop]) {
    for hop in hops {
        b.put(hop.to, Value::Copy(input(hop.behind(1))));
    }
    let back = b.ranks() - 1;
    b.repeat(b.ranks() - 2, |b| {
        for hop in hops {
            b.drift(0, back);
            let (block, from) = (hop.behind(2), hop.from);
            let (theirs, own) = (slot(from, block), input(block));
            b.wait(from, block);
            if hop.shared {
                let sum = local(Buffer::Scratch, block);
                b.reduce(sum, theirs, own, false);
                b.release(from);
                b.put(hop.to, Value::Copy(sum));
            } else {
                let (a, b_, last) = (theirs, own, false);
                b.put(hop.to, Value::Reduce { a, b: b_, last });
                b.release(from);
            }
        }
    });
    for hop in hops {
        let (block, from) = (hop.behind(0), hop.from);
        b.wait(from, block);
        b.reduce(out(block), slot(from, block), input(block), true);
        b.release(from);
    }
}

fn gather(b: &mut Builder, hops: &[Hop]) {
    let source = match b.op() {
        Op::AllGather => input,
        _ => out,
    };
    for hop in hops {
        let own = hop.behind(0);
        b.put(hop.to, Value::Copy(source(own)));
        if source(own) != out(own) {
            b.copy(out(own), input(own));
        }
    }
    let (ranks, back) = (b.ranks(), b.ranks() - 1);
    let round = |b: &mut Builder, hop: &Hop, steps: u32, hands_on: bool| {
        let (block, from) = (hop.behind(steps), hop.from);
        b.drift(0, back);
        b.wait(from, block);
        if hands_on && !hop.shared {
            b.put(hop.to, Value::Copy(slot(from, block)));
        }
        b.copy(out(block), slot(from, block));
        b.release(from);
        if hands_on && hop.shared {
            b.put(hop.to, Value::Copy(out(block)));
        }
    };
    b.repeat(ranks - 2, |b| {
        hops.iter().for_each(|hop| round(b, hop, 1, true));
    });
    hops.iter().for_each(|hop| round(b, hop, ranks - 1, false));
}

fn broadcast(b: &mut Builder, rings: &Rings, root: u32) {
    let (me, ranks) = (b.rank(), b.ranks());
    let last = ranks - 1;
    for (block, ring) in (0..).map(Blocks::one).zip(rings.rings()) {
        let (to, from) = (ring.after(me, 1), ring.after(me, last));
        let distance = distance(ring, root, me);
        b.skew(distance as u16);
        if me == root {
            b.put(to, Value::Copy(input(block)));
            b.copy(out(block), input(block));
            continue;
        }
        b.wait(from, block);
        if distance < last {
            b.put(to, Value::Copy(slot(from, block)));
        }
        b.copy(out(block), slot(from, block));
        b.release(from);
    }
    let Some(ring) = rings.rings().first() else {
        return;
    };
    let distance = distance(ring, root, me);
    b.skew((2 * last - distance) as u16);
    if distance < last {
        b.hear(ring.after(me, 1));
    }
    if me != root {
        b.signal(ring.after(me, last));
    }
}

fn reduce(b: &mut Builder, rings: &Rings, root: u32) {
    let (me, ranks) = (b.rank(), b.ranks());
    let last = ranks - 1;
    if let Some(ring) = rings.rings().first() {
        // The second rank after the root tells the first one, which gets nothing else.
        let (first, second) = (ring.after(root, 1), ring.after(root, 2));
        if me == second {
            b.signal(first);
        }
        if me == first {
            b.skew(1).hear(second);
        }
    }
    for (block, ring) in (0..).map(Blocks::one).zip(rings.rings()) {
        let (to, from) = (ring.after(me, 1), ring.after(me, last));
        // The root is at the end, and behind everybody.
        let distance = match distance(ring, root, me) {
            0 => ranks,
            steps => steps,
        };
        b.skew((distance - 1) as u16);
        if distance == 1 {
            b.put(to, Value::Copy(input(block)));
            continue;
        }
        let (a, own) = (slot(from, block), input(block));
        b.wait(from, block);
        if me == root {
            b.reduce(out(block), a, own, true);
        } else {
            let last = false;
            b.put(to, Value::Reduce { a, b: own, last });
        }
        b.release(from);
    }
}

/// Steps along a ring from one rank to another.
fn distance(ring: &Ring, from: u32, to: u32) -> u32 {
    let at = |rank: u32| ring.order.position(rank).unwrap_or(0);
    wrap(at(to), ring.order.len() - at(from), ring.order.len())
}
