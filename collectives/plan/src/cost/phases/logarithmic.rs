//! Exchanges at distances that double or halve.

use crate::ir::Op;

use super::super::pattern::Pattern;
use super::super::rate::Ratio;
use super::{Message, Overlap, Work};

pub(super) fn recursive_doubling(work: &mut Work, op: Op, m: &Message<'_>) {
    let core = 1 << m.p.ilog2();
    let some = |pattern: Pattern, ranks| pattern.of_some(ranks, m.p, m.fabric.crowd);
    let fold =
        (core < m.p).then(|| (m.fabric.fold).of_pairs(2 * (m.p - core), m.p, m.fabric.crowd));
    if op == Op::Barrier {
        for &exchange in &m.fabric.exchanges {
            work.signals(some(exchange, core), 1);
        }
        fold.into_iter().for_each(|fold| work.signals(fold, 2));
        return;
    }
    for &exchange in &m.fabric.exchanges {
        work.rounds(some(exchange, core), 1, m.s, Overlap::None);
        work.reduced.push(m.s);
    }
    if let Some(fold) = fold {
        work.rounds(fold, 2, m.s, Overlap::Latency);
        work.reduced.push(m.s);
        work.copied.push(m.s);
    }
}

pub(super) fn dissemination(work: &mut Work, m: &Message<'_>) {
    for &shift in &m.fabric.shifts {
        work.signals(shift, 1);
    }
}

/// Every level has groups of one size or of two that differ by one. Of an odd group one rank takes
/// two messages of the smaller half.
pub(super) fn halving_doubling(work: &mut Work, op: Op, m: &Message<'_>) {
    let mut largest = m.p;
    for &exchange in &m.fabric.halvings {
        let half = largest.div_ceil(2);
        both_ways(work, op, [exchange; 2], m.shares(half));
        largest = half;
    }
}

/// Far exchanges carry the fewest blocks.
pub(super) fn nhr(work: &mut Work, op: Op, m: &Message<'_>) {
    let ways = m.fabric.shifts_down.iter().zip(&m.fabric.shifts);
    for (k, (&down, &up)) in ways.enumerate() {
        let distance = 1 << k;
        let count = (m.p - 1 + distance) / (2 * distance);
        both_ways(work, op, [down, up], m.shares(count));
    }
}

pub(super) fn bruck(work: &mut Work, op: Op, m: &Message<'_>) {
    let ways = m.fabric.shifts.iter().zip(&m.fabric.shifts_down);
    if op == Op::AllToAll {
        // Into scratch, and out of it.
        work.copied.extend([m.s; 2]);
    }
    for (k, (&up, &down)) in ways.enumerate() {
        let bit = 1 << k;
        if op == Op::AllToAll {
            let whole = m.p / (2 * bit) * bit;
            let bytes = m.shares(whole + (m.p % (2 * bit)).saturating_sub(bit));
            work.rounds(up, 1, bytes, Overlap::None);
            work.copied.push(bytes);
        } else {
            both_ways(work, op, [up, down], m.shares(bit.min(m.p - bit)));
        }
    }
}

/// A round of a reduce_scatter over the first pattern, one of an all_gather over the second, or
/// both, then the gathering of one piece beside the scattering of the next.
fn both_ways(work: &mut Work, op: Op, patterns: [super::Pattern; 2], bytes: Ratio) {
    let scatters = op != Op::AllGather;
    if scatters {
        work.rounds(patterns[0], 1, bytes, Overlap::None);
        work.reduced.push(bytes);
    }
    if op != Op::ReduceScatter {
        let overlap = if scatters {
            Overlap::Latency
        } else {
            Overlap::None
        };
        work.rounds(patterns[1], 1, bytes, overlap);
        work.copied.push(bytes);
    }
}
