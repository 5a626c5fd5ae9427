//! Everybody to everybody.

use crate::ir::Op;

use super::super::fabric::in_memory;
use super::super::pattern::Pattern;
use super::super::rate::{Rate, Ratio};
use super::{Message, Overlap, Phase, Work};

pub(super) fn direct(work: &mut Work, m: &Message<'_>) {
    let pair = m.fabric.mesh.with_fan(1);
    work.rounds(pair, 1, m.s, Overlap::Latency);
    work.signals(pair, 1);
    work.taken = Some(m.s);
}

pub(super) fn one_shot(work: &mut Work, op: Op, m: &Message<'_>) {
    let mesh = match op.root() {
        Some(_) => m.fabric.mesh.of_root(m.fabric.crowd),
        None => m.fabric.mesh,
    };
    let sums = m.s.times(u128::from(m.p) - 1);
    let crowd = m.fabric.crowd;
    // A root's core works for it alone, nearly.
    let alone = |bytes: Ratio| bytes.times(crowd.den).over(crowd.num);
    // What goes to a root each rank fills by itself.
    let filled = m.fabric.mesh.with_fan(1);
    let mut round = |bytes| work.rounds(mesh, 1, bytes, Overlap::Latency);
    match op {
        Op::Reduce { .. } if filled.is_filled() => {
            work.rounds(filled, 1, m.s, Overlap::Latency);
            work.reduced.push(alone(sums));
        }
        Op::Gather { .. } if filled.is_filled() => {
            work.rounds(filled, 1, m.share, Overlap::Latency);
            work.copied.push(alone(m.rest));
        }
        Op::AllReduce | Op::Reduce { .. } => {
            round(m.s);
            work.reduced.push(sums);
        }
        Op::ReduceScatter => {
            round(m.share);
            work.reduced.push(m.rest);
        }
        Op::AllGather | Op::Gather { .. } | Op::AllToAll => {
            round(m.share);
            work.copied.push(m.rest);
        }
        Op::Broadcast { .. } => {
            round(m.s);
            work.answers(mesh.with_fan(1));
            // The round counts what other ranks of the root's core do.
            work.copied.push(match mesh.is_filled() {
                true => alone(m.s),
                false => m.s,
            });
        }
        Op::Scatter { .. } => {
            round(m.share);
            work.answers(mesh.with_fan(1));
            work.copied.push(m.share);
        }
        _ => work.signals(mesh, 1),
    }
}

pub(super) fn two_shot(work: &mut Work, op: Op, m: &Message<'_>) {
    let mesh = m.fabric.mesh;
    if let Op::Broadcast { .. } = op {
        let share = m.s.over(u128::from(m.p) - 1);
        let others = mesh.with_fan(u64::from(m.p).saturating_sub(2));
        // In the first round the root alone sends, and its core moves the bytes; those to which it sends go on to the second.
        let root = Pattern {
            rate: match mesh.is_served() {
                true => mesh.of_root(m.fabric.crowd).rate,
                false => mesh.rate,
            },
            ..mesh
        };
        work.rounds(root, 1, share, Overlap::Latency);
        work.rounds(others, 1, share, Overlap::Latency);
        work.signals(mesh.with_fan(1), 1);
        work.copied.push(m.s);
    } else {
        work.rounds(mesh, 2, m.share, Overlap::Latency);
        work.reduced.push(m.rest);
        work.copied.push(m.rest);
    }
}

/// The plans over windows: "enter" and "done", and one pass over the data.
pub(super) fn windows(work: &mut Work, op: Op, m: &Message<'_>) {
    let mesh = match op.is_collective() {
        true => m.fabric.mesh,
        false => m.fabric.mesh.with_fan(1),
    };
    let written = Pattern {
        rate: mesh.rate.min(m.fabric.written),
        ..mesh
    };
    work.signals(mesh, 1);
    let mut round = |pattern: Pattern, bytes: Ratio, reduced: Ratio, latency: bool| {
        let pattern = Pattern {
            alpha_ps: if latency { pattern.alpha_ps } else { 0 },
            ..pattern
        };
        work.phases.push(Phase {
            pattern,
            rounds: 1,
            bytes,
            overlap: Overlap::Latency,
            reduced,
        });
    };
    // A core that reduces straight from a window moves those bytes by reducing them.
    let read = |bytes: Ratio| if mesh.by_core { Ratio::ZERO } else { bytes };
    // Cores fetch what peers have just written from the peers' caches.
    let fresh = |pattern: Pattern, bytes: Ratio, rate: Rate| Pattern {
        alpha_ps: pattern.alpha_ps
            + match mesh.by_core {
                true => m.fabric.fresh_ps(m.s, bytes, rate),
                false => 0,
            },
        ..pattern
    };
    match op {
        Op::AllReduce => {
            round(mesh, read(m.share), m.rest, false);
            let written = fresh(written, m.rest, m.fabric.speeds.reduce);
            round(written, m.share, Ratio::ZERO, true);
        }
        Op::ReduceScatter => {
            let reducing = fresh(mesh, m.rest, m.fabric.speeds.reduce);
            round(reducing, read(m.share), m.rest, true);
        }
        Op::Reduce { .. } => {
            let reducing = fresh(written, m.rest, m.fabric.speeds.reduce);
            round(reducing, read(m.share), m.rest, true);
        }
        // The sender hears how fast its peer fetches, and does without windows where that is slow.
        Op::Send { .. } | Op::Recv { .. } => round(mesh, m.s, Ratio::ZERO, true),
        Op::Broadcast { .. } => {
            // The receivers pull: each core moves its own copy, links leave the root's port.
            let fan = if mesh.by_core { 1 } else { mesh.fan };
            let pulled = fresh(mesh.with_fan(fan), m.s, mesh.rate);
            round(pulled, m.s, Ratio::ZERO, true);
        }
        Op::AllToAll => {
            let pulled = fresh(written, m.rest, written.rate);
            round(pulled, m.share, Ratio::ZERO, true);
        }
        // Each rank writes what it has itself just written.
        _ => round(written, m.share, Ratio::ZERO, true),
    }
}

/// The plan that reads the peers' memory: "enter" and "done", and one pass over the data, each peer's by a call of the
/// operating system. The root of a broadcast copies while others read: the slower sets the pace. What is reduced is added
/// up when it has been read. What several read, each of them brings from memory where no cache holds it; what passes slots
/// is brought from there once, by whoever fills them (measured on an EPYC 7003 of 2 cores, with either mesh forced:
/// `unisono bench all_gather --ranks 8 -b 16M -e 64M -f 4 --dirty`). Of an all_to_all each byte is one rank's to read, which
/// has a rate of its own.
pub(super) fn reads(work: &mut Work, op: Op, m: &Message<'_>) {
    let mesh = m.fabric.mesh;
    let Some(reads) = m.fabric.crowded_reads() else {
        return;
    };
    let (rate, fan, bytes, all) = match op {
        Op::Broadcast { .. } => (reads.from_one.min(m.fabric.speeds.copy), 1, m.s, m.s),
        // No other rank of its core has read it before.
        Op::AllToAll => (reads.rate, mesh.fan, m.share, m.rest),
        _ => (m.fabric.read_of_all(&reads), mesh.fan, m.share, m.rest),
    };
    // What a rank has just written: its own share, or all.
    let whole = match op {
        Op::AllGather => m.share,
        _ => m.s,
    };
    let fetched = reads.fetched_ps(all, rate) + m.fabric.fresh_read_ps(whole, all, rate);
    let read = Pattern {
        alpha_ps: mesh.alpha_ps + fetched,
        rate: mesh.rate.min(rate),
        message_ps: mesh.message_ps.max(u128::from(reads.call_ps)),
        ..mesh
    };
    work.signals(mesh, 2);
    work.rounds(read.with_fan(fan), 1, bytes, Overlap::Latency);
    // As much of some bytes as of all that comes.
    let fetched = in_memory(m.s, m.fabric.ranks());
    let in_memory_of = |bytes: Ratio| {
        let part = fetched.times(bytes.num).over(bytes.den);
        part.times(m.s.den).over(m.s.num.max(1))
    };
    if op.reduces() {
        work.added_ps += reads.added.time(m.rest) + reads.summed.time(in_memory_of(m.share));
    }
    // What is read and kept as it is, the sums of all others too.
    work.stalled_ps += match op {
        Op::AllToAll => reads.alone.time_ps(all, m.s, m.fabric.ranks()),
        Op::ReduceScatter | Op::Reduce { .. } => 0,
        _ => rate.time(in_memory_of(all)),
    };
    if op == Op::AllReduce {
        work.signals(mesh, 1);
        work.rounds(read, 1, bytes, Overlap::Latency);
    }
}

/// A put of so many bytes at most lies where it is looked for what tells of it.
const WITH_ITS_SIGNAL: u128 = 1 << 10;
/// The same of one that comes in one line with that: the arena's `INLINE`. Whatever each rank has for all others, it shows
/// all of it in such a line where it would put each its own. Of one f32 for each rank (16 and 32 B in all) all_to_alls and
/// reduce_scatters take 0.95 of the time so with two ranks on each core of a Xeon with AMX-FP16, and 0.83 with four; of 64 B
/// in all and more as long or longer, up to 1.7 times (`cargo xtask peers -- --dirty --ranks 4,8 --ops
/// all_to_all,reduce_scatter --sizes 4,64,1K,16K` with `mesh_shared` and `mesh_one_shot` forced).
const IN_ONE_LINE: u128 = 32;

/// The plan of shown puts: each rank's core writes what others need once, and reads what they have written.
pub(super) fn shared(work: &mut Work, op: Op, m: &Message<'_>) {
    let mesh = m.fabric.mesh;
    let crowd = m.fabric.crowd;
    let is_short = |put: Ratio| put.num <= WITH_ITS_SIGNAL * put.den;
    match op {
        Op::Barrier => return work.signals(told_once(m), 1),
        Op::AllGather if is_short(m.share) => {
            work.rounds(told_once(m), 1, m.share, Overlap::Latency);
            return work.copied.push(m.rest);
        }
        Op::ReduceScatter | Op::AllToAll if m.s.num <= IN_ONE_LINE * m.s.den => {
            work.rounds(told_once(m), 1, m.share, Overlap::Latency);
            return match op {
                Op::ReduceScatter => work.reduced.push(m.rest),
                _ => work.copied.push(m.rest),
            };
        }
        // The root's core writes one line for all. With two ranks on a core that is 1.0 to 1.2 times as fast as one for each,
        // with four 1.2 to 1.4 times; with fewer a root is further ahead where each has lines of its own, of which its core
        // writes one while another is read. Measured on an EPYC 7003 of 2 cores, with either mesh forced:
        // `unisono bench broadcast --ranks 8 -b 4 -e 1K --dirty`.
        Op::Broadcast { .. } if is_short(m.s) && crowd.num >= 2 * crowd.den => {
            let one = mesh.with_fan(1);
            work.rounds(one, 1, m.s, Overlap::Latency);
            work.answers(one);
            return work.copied.push(m.s.times(crowd.den).over(crowd.num));
        }
        Op::Broadcast { .. } if is_short(m.s) => work.signals(mesh, 1),
        _ => {}
    }
    let read = read_by_cores(m);
    match op {
        Op::AllReduce | Op::ReduceScatter => {
            work.copied.push(m.s);
            work.phases.push(Phase {
                pattern: read,
                rounds: 1,
                bytes: m.share,
                overlap: Overlap::Latency,
                reduced: m.rest,
            });
            if op == Op::AllReduce {
                work.copied.push(m.share);
                work.rounds(read, 1, m.share, Overlap::Latency);
            }
        }
        Op::AllToAll => {
            work.copied.push(m.s);
            work.rounds(read, 1, m.share, Overlap::Latency);
        }
        Op::Broadcast { .. } => {
            // It tells all at once.
            work.signals(mesh.of_root(crowd).with_fan(1), 1);
            work.answers(mesh.with_fan(1));
            // The root's core writes for it alone, nearly.
            work.copied.push(m.s.times(crowd.den).over(crowd.num));
            let read = Pattern {
                alpha_ps: 0,
                ..read.with_fan(1)
            };
            work.rounds(read, 1, m.s, Overlap::Latency);
        }
        _ => {
            work.copied.push(m.share);
            work.rounds(read, 1, m.share, Overlap::Latency);
        }
    }
}

/// The same of an all_reduce in one exchange.
pub(super) fn shared_one_shot(work: &mut Work, m: &Message<'_>) {
    let sums = m.s.times(u128::from(m.p) - 1);
    if m.s.num <= WITH_ITS_SIGNAL * m.s.den {
        work.rounds(told_once(m), 1, m.s, Overlap::Latency);
        return work.reduced.push(sums);
    }
    work.copied.push(m.s);
    work.phases.push(Phase {
        pattern: read_by_cores(m),
        rounds: 1,
        bytes: m.s,
        overlap: Overlap::Latency,
        reduced: sums,
    });
}

/// What tells of a put to all is one message, and one comes from each: a round has half as many as where each peer is told
/// by itself, and one.
fn told_once(m: &Message<'_>) -> Pattern {
    let mesh = m.fabric.mesh;
    mesh.with_fan((mesh.fan + 1).div_ceil(2))
}

/// Each reads over its links, with its core.
fn read_by_cores(m: &Message<'_>) -> Pattern {
    let mesh = m.fabric.mesh;
    Pattern {
        rate: mesh.rate.min(m.fabric.speeds.copy),
        ..mesh
    }
}
