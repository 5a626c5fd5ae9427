//! Trees, and what else has a root.

use crate::ir::Op;

use super::super::fabric::beyond_cache;
use super::super::pattern::Pattern;
use super::super::rate::Ratio;
use super::{Message, Overlap, Work};

pub(super) fn binomial(work: &mut Work, op: Op, m: &Message<'_>) {
    match op {
        Op::Gather { .. } => {
            subtrees(work, m, false, served);
            work.copied.push(m.rest);
        }
        Op::Scatter { .. } => {
            subtrees(work, m, true, served);
            work.copied.push(m.share);
            acknowledged(work, m);
        }
        Op::Reduce { .. } => {
            up(work, m, level);
            fetched_again(work, m);
            for &shift in &m.fabric.shifts {
                held_signals(work, shift);
            }
        }
        Op::Broadcast { .. } => {
            down(work, m, level);
            fetched_again(work, m);
            acknowledged(work, m);
        }
        Op::AllGather => {
            subtrees(work, m, false, handed);
            work.copied.push(m.rest);
            down(work, m, round);
        }
        Op::ReduceScatter => {
            up(work, m, round);
            subtrees(work, m, true, handed);
            work.copied.push(m.share);
        }
        Op::Barrier => {
            let ways = [&m.fabric.shifts_down, &m.fabric.shifts];
            for (k, &shift) in ways.into_iter().flat_map(|way| way.iter().enumerate()) {
                work.signals(round(shift, 1 << k, m), 1);
            }
        }
        _ => {
            up(work, m, round);
            down(work, m, round);
        }
    }
}

/// What a core's ranks put to the first of them costs no more than that while a first cache holds it: eight ranks' reduces of
/// 16 KiB took as long by this tree as by that of all ranks, those of 64 KiB 1.16 times as long (as below).
const FIRST_CACHE: u128 = 64 << 10;

/// The binomial tree that takes the `run` ranks of a core as one. All fill by themselves what goes to the first of their core,
/// which has come when each has had its turn; so they do where all put to the root. While the root's own core has its turns
/// the others are through with theirs. The root takes fewer puts. Four to eight ranks bound to two cores of a Xeon with
/// AMX-FP16 took 0.5 to 0.85 of the time for reduces of 4 B to 4 KiB one after the other (`cargo xtask peers -- --dirty
/// --ranks 4,5,6,7,8 --ops reduce --sizes 4,64,1K,4K,16K,64K,256K`, in turns with the build before). With a barrier behind
/// each call, both together took four, six and eight ranks 0.96 to 1.16 of the time, mostly 1.0 to 1.07, and those of 16 KiB
/// 0.97 to 1.18: in a build made for that, so no command shows it.
pub(super) fn reduce_in_runs(work: &mut Work, m: &Message<'_>, run: u128) {
    let crowd = m.fabric.crowd;
    let heads = u128::from(m.p).div_ceil(run);
    let levels = heads.next_power_of_two().ilog2().max(1);
    let sums = run - 1 + u128::from(levels);
    work.rounds(
        m.fabric.mesh.with_fan(1),
        levels.into(),
        m.s,
        Overlap::Latency,
    );
    // A root's core works for it alone, nearly.
    let alone = m.s.times(sums).times(crowd.den).over(crowd.num);
    work.reduced.push(alone);
    // Each but the first of a core copies its input, where in a tree of all ranks half of them add it up to what they put.
    let copies = (run - 1).saturating_sub(run.div_ceil(2));
    let long = Ratio::new(
        (m.s.num * run).saturating_sub(FIRST_CACHE * m.s.den),
        m.s.den * run,
    );
    work.copied.push(long.times(copies));
    if m.fabric.overflows_a_core(m.s) {
        // Heads keep their sums from one of their core to the next, where a chain adds on the way.
        work.copied.push(m.s.times(sums - 1).over(2));
    }
    fetched_again(work, m);
}

pub(super) fn scatter_all_gather(work: &mut Work, op: Op, m: &Message<'_>) {
    let rounds = u64::from(m.p) - 1;
    let is_reduce = matches!(op, Op::Reduce { .. });
    work.rounds(m.fabric.ring_up, rounds, m.share, Overlap::None);
    subtrees(work, m, !is_reduce, served);
    work.copied.push(m.rest);
    if is_reduce {
        work.reduced.push(m.rest);
    } else {
        acknowledged(work, m);
    }
}

/// Each rank is inside one tree: it takes half of the message from above and hands it to two, and
/// the other way round for sums. In the other tree it is a leaf.
pub(super) fn double_binary_tree(work: &mut Work, op: Op, m: &Message<'_>) {
    let half = m.s.over(2);
    let height = |ranks: u32| u64::from(ranks.ilog2());
    let trees = m.fabric.trees;
    match op {
        Op::AllReduce => {
            work.rounds(trees.with_fan(4), 2 * height(m.p), half, Overlap::Stages);
            work.reduced.push(m.s);
            work.copied.push(m.s);
        }
        Op::Reduce { .. } => {
            let stages = height(m.p - 1) + 1;
            work.rounds(trees.with_fan(2), stages, half, Overlap::Stages);
            work.hidden_signals(trees.with_fan(1));
            work.reduced.push(m.s);
            work.copied.push(m.fabric.kept_between_children(half));
        }
        _ => {
            let stages = height(m.p - 1) + 1;
            work.rounds(trees.with_fan(2), stages, half, Overlap::Stages);
            work.signals(trees.with_fan(1), stages);
            work.copied.push(m.s);
            work.handed_on(m);
        }
    }
}

/// The level of a tree at which so many ranks send, and as many receive; or at which subtrees of so many are handed over.
type Level = fn(Pattern, u32, &Message<'_>) -> Pattern;

fn down(work: &mut Work, m: &Message<'_>, level: Level) {
    for (k, &shift) in m.fabric.shifts.iter().enumerate() {
        work.rounds(level(shift, 1 << k, m), 1, m.s, Overlap::Latency);
    }
    work.copied.push(m.s);
}

fn up(work: &mut Work, m: &Message<'_>, level: Level) {
    for (k, &shift) in m.fabric.shifts_down.iter().enumerate() {
        work.rounds(level(shift, 1 << k, m), 1, m.s, Overlap::Latency);
        // The speed is that of a core of which all ranks reduce; here `2^k` do.
        let crowd = m.fabric.crowd;
        let busy = crowd.part(1 << k, m.p.into()).at_least_one();
        let part = Ratio::new(busy.num * crowd.den, busy.den * crowd.num);
        work.reduced.push(m.s.times(part.num).over(part.den));
    }
}

/// Of a call with a root: others of its ranks are in the calls before and behind it, so a level whose ranks are not all
/// there has no fewer at work.
fn level(shift: Pattern, pairs: u32, m: &Message<'_>) -> Pattern {
    shift.of_level(2 * pairs, m.p, m.fabric.crowd)
}

/// Of one that all wait for.
fn round(shift: Pattern, pairs: u32, m: &Message<'_>) -> Pattern {
    shift.of_pairs(2 * pairs.min(m.p - pairs), m.p, m.fabric.crowd)
}

/// The same where subtrees of up to so many ranks are handed over, which are the fewer the larger they are.
fn handed(shift: Pattern, ranks: u32, m: &Message<'_>) -> Pattern {
    round(shift, (m.p - ranks).div_ceil(2 * ranks), m)
}

/// Of a call with a root whose puts differ in size: a [`level`] where messages are calls of the operating system, else as if
/// all ranks took part.
fn served(shift: Pattern, pairs: u32, m: &Message<'_>) -> Pattern {
    match shift.is_served() {
        true => level(shift, pairs, m),
        false => shift,
    }
}

/// The root's part of a binomial scatter, or gather: ever larger subtrees.
fn subtrees(work: &mut Work, m: &Message<'_>, down: bool, level: Level) {
    let shifts = match down {
        true => &m.fabric.shifts,
        false => &m.fabric.shifts_down,
    };
    for (k, &shift) in shifts.iter().enumerate() {
        let first = 1 << k;
        let bytes = m.shares(first.min(m.p - first));
        work.rounds(level(shift, first, m), 1, bytes, Overlap::Latency);
    }
}

/// Each rank tells its parent as soon as it has its data, while that still puts to others.
fn acknowledged(work: &mut Work, m: &Message<'_>) {
    if let Some((&last, others)) = m.fabric.shifts_down.split_last() {
        work.answers(level(last, 1 << others.len(), m));
        for &shift in others {
            held_signals(work, shift);
        }
    }
}

/// As [`Work::answers`], behind other messages that take longer.
fn held_signals(work: &mut Work, pattern: Pattern) {
    if !pattern.is_served() {
        work.hidden_signals(pattern);
    }
}

/// What ranks hand on of a long message is in no cache of theirs any more.
fn fetched_again(work: &mut Work, m: &Message<'_>) {
    if m.fabric.mesh.is_filled() {
        work.copied.push(beyond_cache(m.s));
    }
}
