//! What each algorithm does, as rounds of messages: the table of costs, as code.
//!
//! With `p` ranks and a message of `S` bytes; `q` is the largest power of two up to `p`. The
//! classical formulas, for one piece and links that don't get in each other's way:
//!
//! | | |
//! |---|---|
//! | all_reduce, mesh one-shot | `a + S b + (p-1) S g` |
//! | all_reduce, mesh two-shot | `2a + 2 (S/p) b + ((p-1)/p) S g` |
//! | all_reduce, ring | `2(p-1) a + 2((p-1)/p) S b + ((p-1)/p) S g` |
//! | all_reduce, recursive doubling | `lg p (a + S b + S g)`, and the fold |
//! | all_reduce, halving-doubling | `2 lg q a + 2((q-1)/q) S b + ...`, and `2a + 2 S b` for the fold |
//! | all_gather, reduce_scatter, gather, scatter, all_to_all, mesh | `a + (S/p) b` |
//! | reduce, mesh | `a + S b + (p-1) S g` |
//! | all_gather, reduce_scatter, ring | `(p-1) a + ((p-1)/p) S b` |
//! | broadcast, binomial | `ceil(lg p) (a + S b)` |
//! | broadcast, chain in `k` pieces | `(p-2+k)(a + S b/k)` |
//! | barrier | `a` on a mesh, `ceil(lg p) a` by dissemination |
//!
//! To these come what the implementation does besides: acknowledgements of broadcasts and sends,
//! the copy from a slot to the output, and the signals of windowed plans.

use crate::algorithms::Algorithm;
use crate::ir::Op;

use super::fabric::{Fabric, Pattern};
use super::rate::Ratio;

/// How the rounds of a phase overlap with those of other pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    /// Each piece waits for each round.
    None,
    /// The latency is paid once: other pieces fill it.
    Latency,
    /// The rounds are the stages of a pipeline: all work at once, on different pieces.
    Stages,
}

/// Equal rounds, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phase {
    pub(super) pattern: Pattern,
    pub(super) rounds: u64,
    /// Bytes of each message.
    pub(super) bytes: Ratio,
    pub(super) overlap: Overlap,
    /// Bytes that each round reduces straight from the link: the slower of the two counts.
    pub(super) reduced: Ratio,
}

/// What one operation costs a rank.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) phases: Vec<Phase>,
    /// Bytes reduced, besides those in phases.
    pub(super) reduced: Vec<Ratio>,
    /// Bytes copied from slots to the output.
    pub(super) copied: Vec<Ratio>,
}

impl Work {
    fn rounds(&mut self, pattern: Pattern, rounds: u64, bytes: Ratio, overlap: Overlap) {
        self.phases.push(Phase {
            pattern,
            rounds,
            bytes,
            overlap,
            reduced: Ratio::ZERO,
        });
    }

    fn signals(&mut self, pattern: Pattern, rounds: u64) {
        self.rounds(pattern, rounds, Ratio::ZERO, Overlap::Latency);
    }
}

/// The work of an operation over a fabric of at least two ranks, for a message of `bytes` bytes.
pub(super) fn work(
    algorithm: Algorithm,
    op: Op,
    windowed: bool,
    bytes: u64,
    fabric: &Fabric,
) -> Work {
    let mut work = Work::default();
    let s = Ratio::new(u128::from(bytes), 1);
    let p = u64::from(fabric.ranks());
    let share = s.over(u128::from(p));
    let rest = share.times(u128::from(p) - 1);
    match (algorithm, op) {
        (Algorithm::MeshOneShot | Algorithm::MeshTwoShot, _) if windowed => {
            windows(&mut work, op, s, share, fabric);
        }
        (Algorithm::MeshOneShot, Op::AllReduce) => {
            work.rounds(fabric.mesh, 1, s, Overlap::Latency);
            work.reduced.push(s.times(u128::from(p) - 1));
        }
        (Algorithm::MeshOneShot, Op::ReduceScatter) => {
            work.rounds(fabric.mesh, 1, share, Overlap::Latency);
            work.reduced.push(rest);
        }
        (Algorithm::MeshOneShot, Op::AllGather) => {
            work.rounds(fabric.mesh, 1, share, Overlap::Latency);
            work.copied.push(rest);
        }
        (Algorithm::MeshOneShot, Op::Broadcast { .. }) => {
            work.rounds(fabric.mesh, 1, s, Overlap::Latency);
            work.signals(single(fabric.mesh), 1);
            work.copied.push(s);
        }
        (Algorithm::MeshOneShot, Op::Reduce { .. }) => {
            work.rounds(fabric.mesh, 1, s, Overlap::Latency);
            work.reduced.push(s.times(u128::from(p) - 1));
        }
        (Algorithm::MeshOneShot, Op::Gather { .. } | Op::AllToAll) => {
            work.rounds(fabric.mesh, 1, share, Overlap::Latency);
            work.copied.push(rest);
        }
        (Algorithm::MeshOneShot, Op::Scatter { .. }) => {
            work.rounds(fabric.mesh, 1, share, Overlap::Latency);
            work.signals(single(fabric.mesh), 1);
            work.copied.push(share);
        }
        (Algorithm::MeshOneShot, _) => work.signals(fabric.mesh, 1),
        (Algorithm::MeshTwoShot, Op::Broadcast { .. }) => {
            let share = s.over(u128::from(p) - 1);
            work.rounds(fabric.mesh, 1, share, Overlap::Latency);
            let others = Pattern {
                fan: p.saturating_sub(2),
                ..fabric.mesh
            };
            work.rounds(others, 1, share, Overlap::Latency);
            work.signals(single(fabric.mesh), 1);
            work.copied.push(s);
        }
        (Algorithm::MeshTwoShot, _) => {
            work.rounds(fabric.mesh, 2, share, Overlap::Latency);
            work.reduced.push(rest);
            work.copied.push(rest);
        }
        (Algorithm::RecursiveDoubling, _) => {
            for &exchange in &fabric.exchanges {
                work.rounds(exchange, 1, s, Overlap::None);
                work.reduced.push(s);
            }
            if !u64::is_power_of_two(p) {
                work.rounds(fabric.fold, 2, s, Overlap::Latency);
                work.reduced.push(s);
                work.copied.push(s);
            }
        }
        (Algorithm::HalvingDoubling, Op::Broadcast { .. }) => {
            for &shift in &fabric.shifts {
                work.rounds(shift, 1, s, Overlap::Latency);
            }
            for &shift in &fabric.shifts {
                work.signals(shift, 1);
            }
            work.copied.push(s);
        }
        (Algorithm::HalvingDoubling, _) => halving_doubling(&mut work, op, s, fabric),
        (Algorithm::Ring, Op::AllReduce) => {
            work.rounds(fabric.ring_up, p - 1, share, Overlap::None);
            // Runs in the waits of the other direction.
            work.rounds(fabric.ring_down, p - 1, share, Overlap::Latency);
            work.reduced.push(rest);
            work.copied.push(rest);
        }
        (Algorithm::Ring, Op::Broadcast { .. }) => {
            work.rounds(fabric.ring_up, p - 1, s, Overlap::Stages);
            work.signals(fabric.ring_down, p - 1);
            work.copied.push(s);
        }
        (Algorithm::Ring, _) => {
            work.rounds(fabric.ring_up, p - 1, share, Overlap::None);
            match op {
                Op::ReduceScatter => work.reduced.push(rest),
                _ => work.copied.push(rest),
            }
        }
        (Algorithm::Dissemination, _) => {
            for &shift in &fabric.shifts {
                work.signals(shift, 1);
            }
        }
        (Algorithm::Direct, _) => {
            work.rounds(single(fabric.mesh), 1, s, Overlap::Latency);
            work.signals(single(fabric.mesh), 1);
            work.copied.push(s);
        }
    }
    work
}

/// A pattern in which a rank sends one message only.
fn single(pattern: Pattern) -> Pattern {
    Pattern { fan: 1, ..pattern }
}

/// The plans over windows: "enter" and "done", and one pass over the data.
fn windows(work: &mut Work, op: Op, s: Ratio, share: Ratio, fabric: &Fabric) {
    let mesh = fabric.mesh;
    let p = u128::from(fabric.ranks());
    let rest = share.times(p - 1);
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
    match op {
        Op::AllReduce => {
            round(mesh, read(share), rest, false);
            round(mesh, share, Ratio::ZERO, true);
        }
        Op::ReduceScatter => round(mesh, read(share), rest, true),
        Op::Broadcast { .. } => {
            // The receivers pull: each core moves its own copy, links leave the root's port.
            let fan = if mesh.by_core { 1 } else { mesh.fan };
            round(Pattern { fan, ..mesh }, s, Ratio::ZERO, true);
        }
        _ => round(mesh, share, Ratio::ZERO, true),
    }
}

fn halving_doubling(work: &mut Work, op: Op, s: Ratio, fabric: &Fabric) {
    let p = u128::from(fabric.ranks());
    let core = 1u128 << fabric.exchanges.len();
    let extra = p - core;
    let per_rank = op.has_block_per_rank();
    // The share of the first `distance` ranks of the core, who have the most blocks.
    let half = |distance: u128| match per_rank {
        true => s.over(p).times(distance + distance.min(extra)),
        false => s.over(core).times(distance),
    };
    let (halves, doubles) = (op != Op::AllGather, op != Op::ReduceScatter);
    for (level, &exchange) in fabric.exchanges.iter().enumerate() {
        let bytes = half(1 << level);
        if halves {
            work.rounds(exchange, 1, bytes, Overlap::None);
            work.reduced.push(bytes);
        }
        if doubles {
            let overlap = if halves {
                Overlap::Latency
            } else {
                Overlap::None
            };
            work.rounds(exchange, 1, bytes, overlap);
            work.copied.push(bytes);
        }
    }
    if extra > 0 {
        let own = if per_rank { s.over(p) } else { s };
        let (gives, gets) = match op {
            Op::AllGather => (own, s),
            Op::ReduceScatter => (s, own),
            _ => (s, s),
        };
        work.rounds(fabric.fold, 1, gives, Overlap::Latency);
        work.rounds(fabric.fold, 1, gets, Overlap::Latency);
        if halves {
            work.reduced.push(s);
        }
    }
}
