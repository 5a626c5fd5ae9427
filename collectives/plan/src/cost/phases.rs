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
//! | all_reduce, two-way ring | `2 floor(p/2) a + ((p-1)/p) S b + ((p-1)/p) S g` |
//! | all_reduce, recursive doubling | `lg p (a + S b + S g)`; else `lg q`, and `2a + 2 S b + S g` for the fold |
//! | all_reduce, halving-doubling | `2 ceil(lg p) a + 2((p-1)/p) S b + ...`; a little more where halves are unequal |
//! | all_reduce, NHR | `2 ceil(lg p) a + 2((p-1)/p) S b + ((p-1)/p) S g` |
//! | all_reduce, binomial | `ceil(lg p) (2a + 2 S b + S g)` |
//! | all_reduce, double binary tree in `k` pieces | `(2 lg p - 1 + k)(a + 2 S b/k)` on one port |
//! | all_gather, reduce_scatter, gather, scatter, all_to_all, mesh | `a + (S/p) b` |
//! | reduce, mesh | `a + S b + (p-1) S g` |
//! | all_gather, reduce_scatter, ring | `(p-1) a + ((p-1)/p) S b` |
//! | all_gather, reduce_scatter, two-way ring | `floor(p/2) a + ((p-1)/(2p)) S b` |
//! | all_gather, reduce_scatter, Bruck, NHR | `ceil(lg p) a + ((p-1)/p) S b` |
//! | all_gather, binomial | `ceil(lg p) (2a + S b) + ((p-1)/p) S b` |
//! | reduce_scatter, binomial | `ceil(lg p) (2a + S b + S g) + ((p-1)/p) S b` |
//! | gather, scatter, binomial | `ceil(lg p) a + ((p-1)/p) S b` |
//! | all_to_all, pairwise | `(p-1) (a + (S/p) b)`; `p (a + (S/p) b)` where `p` is odd |
//! | all_to_all, Bruck | `ceil(lg p) a + ` about `(lg p/2) S b` |
//! | broadcast, reduce, binomial | `ceil(lg p) (a + S b)` |
//! | reduce, binomial of cores with `n` of `p` ranks each | `h (a + S b) + (n-1 + h) S g`, `h` being `ceil(lg (p/n))` |
//! | broadcast, reduce, in shares | `(ceil(lg p) + p - 1) a + 2((p-1)/p) S b` |
//! | broadcast, reduce, chain in `k` pieces | `(p-2+k)(a + S b/k)` |
//! | all_gather in shared memory | `a`, a copy of `S/p`, `((p-1)/p) S b` |
//! | broadcast in shared memory | `a`, a copy of `S`, `S b` |
//! | all_reduce in shared memory | `2a`, a copy of `(1 + 1/p) S`, `2 ((p-1)/p) S b` |
//! | the same, added up by a ring | `p a + ((p-1)/p) S b + ((p-1)/p) S g`, a copy of `S/p`, `((p-1)/p) S b` |
//! | the same in one exchange | `a`, a copy of `S`, `(p-1) S b` |
//! | barrier | `a` on a mesh, `ceil(lg p) a` by dissemination, as long by recursive doubling of a power of two, else `(floor(lg p) + 2) a`; `2 ceil(lg p) a` by a tree |
//!
//! To these come what the implementation does besides: acknowledgements of broadcasts and sends,
//! the copy from a slot to the output, and the signals of windowed plans.

mod flows;
mod levels;
mod logarithmic;
mod mesh;
mod rings;
mod rooted;

use crate::algorithms::Algorithm;
use crate::ir::Op;

use super::fabric::{Fabric, beyond_cache, in_memory};
use super::flows::{RingWays, TreeWays};
use super::pattern::Pattern;
use super::rate::Ratio;
use super::shaped::LevelWays;

/// Calls of longer messages are streams', where CPUs move the bytes: the thread that calls runs shorter ones by itself.
const STREAMED: u128 = 1 << 20;
/// What a core spends on a message of such a call, at each end, besides the bytes: commands are written, checked, and looked
/// at in turns, and flags come from other cores; for each of the ranks that share it. On an EPYC 7003, by what pieces
/// of half the size took longer: 0.85 us with two ranks, 0.5 to 1.5 us with four and eight on two cores
/// (`unisono bench all_reduce --ranks 8 -b 64M -e 64M --dirty` with `UNISONO_MEMORY='{slot: 64K}'` and `'{slot: 32K}'`, and
/// `mesh_shared` or `mesh_two_shot` forced).
const STREAMED_PS: u128 = 1_000_000;

/// The same of short calls over windows, which are streams' as well: little but signals, to and from all. Two ranks took
/// 4.3 us for a reduce of 4 KiB so, three on two cores 4.6 for a broadcast of 4 B, four 18 for a reduce of 8 KiB, eight 52
/// for an all_reduce of 4 KiB, where slots took 0.5, 0.1, 2 and 10, on a Xeon with AMX-FP16 (`cargo xtask peers -- --dirty
/// --own-memory`).
const SIGNALLED_PS: u128 = 300_000;

/// What of the time that plans take it takes those by which most bytes go to a neighbour, if both share a core, in whose cache
/// they stay. With eight ranks on two cores of a Xeon with AMX-FP16, each bound to one, in an order core by core a reduce of
/// 64 KiB took 0.66 of what it took in the order of the ranks, of 256 KiB to 4 MiB 0.81 to 0.87, of 16 and 64 MiB 0.91 and 0.93;
/// reduce_scatters from 1 MiB on 0.86 to 0.89, all_reduces whose sums are shown 0.93 to 0.95 (`cargo xtask peers -- --dirty
/// --ranks 8 --ops reduce,reduce_scatter,all_reduce --sizes 64K,256K,1M,4M,16M,64M`, in turns with ranks that are bound when
/// they have joined, of which nothing is known).
const NEAR: (u128, u128) = (9, 10);

/// How the rounds of a phase overlap with those of other pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    /// Each piece waits for each round.
    None,
    /// The same, where each round is a leg. Two that meet for one come from others: until they are together the first of
    /// many pieces is alone. On an EPYC 7003 with eight ranks on two cores an all_to_all by pairs took 9 to 16 % longer than
    /// by the mesh of slots for 4 MiB, as long for 16 MiB, and 10 to 16 % less for 64 MiB; without this it is taken for
    /// the faster one of 4 MiB, too (`cargo xtask peers -- --dirty --offset 16 --ranks 8 --ops all_to_all --sizes 4M,16M,64M`
    /// with `UNISONO_ALGORITHMS` that force either).
    Legs,
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
#[derive(Debug)]
pub(super) struct Work {
    pub(super) phases: Vec<Phase>,
    /// Bytes reduced, besides those in phases.
    pub(super) reduced: Vec<Ratio>,
    /// Bytes copied from slots to the output.
    pub(super) copied: Vec<Ratio>,
    /// Bytes that the receiver of a message copies from its slots, while the sender fills those of the
    /// next piece. A broadcast's root and its receivers do so too, but from call to call.
    pub(super) taken: Option<Ratio>,
    /// What links take besides, in picoseconds.
    pub(super) stalled_ps: u128,
    /// Bytes that are reduced out of the core's cache take so long, in picoseconds.
    pub(super) added_ps: u128,
    /// What each message takes a core at least, at each end, in picoseconds, where it is moved by cores.
    pub(super) streamed_ps: u128,
    /// What of the time for bytes it takes, where these stay in caches.
    pub(super) in_caches: Ratio,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            phases: Vec::new(),
            reduced: Vec::new(),
            copied: Vec::new(),
            taken: None,
            stalled_ps: 0,
            added_ps: 0,
            streamed_ps: 0,
            in_caches: Ratio::new(1, 1),
        }
    }
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

    /// Ranks that share cores hand on what the kernel has copied to a slot for them after others had their turns: by then
    /// it is in no cache of theirs.
    fn handed_on(&mut self, m: &Message<'_>) {
        if m.fabric.mesh.is_served() && m.fabric.crowd.num > m.fabric.crowd.den {
            self.copied.push(beyond_cache(m.s));
        }
    }

    /// What all plans begin with whose messages pass slots.
    fn in_slots(op: Op, m: &Message<'_>) -> Self {
        Self {
            stalled_ps: from_memory_ps(op, m.s, m.fabric),
            streamed_ps: m.streamed_ps(0),
            in_caches: m.fabric.in_caches(m.s, exchanges(op)),
            ..Self::default()
        }
    }

    /// Signals by which ranks answer that they have something. Where each would be a call of the operating system they are
    /// held back, and go many together.
    fn answers(&mut self, pattern: Pattern) {
        if !pattern.is_served() {
            self.signals(pattern, 1);
        }
    }

    /// Signals that nobody has to wait for, since other messages take longer.
    fn hidden_signals(&mut self, pattern: Pattern) {
        let pattern = Pattern {
            alpha_ps: 0,
            ..pattern
        };
        self.signals(pattern, 1);
    }
}

/// How near to each other ranks are that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Near {
    /// Nothing is known of it.
    Apart,
    /// Most of them share a core.
    Following,
    /// The same, in runs of so many, which a tree takes as one.
    InRuns(u32),
}

/// The work of an operation over a fabric of at least two ranks, for a message of `bytes` bytes.
pub(super) fn work(
    algorithm: Algorithm,
    op: Op,
    windowed: bool,
    bytes: u64,
    fabric: &Fabric,
    near: Near,
) -> Work {
    let message = Message::new(bytes, fabric);
    let mut work = match (windowed, algorithm.reads_peers()) {
        (false, false) if algorithm.shows_puts() => Work {
            // Many read them, and they stay who put them's.
            in_caches: fabric.in_caches(message.s, false),
            ..Work::in_slots(op, &message)
        },
        (false, false) => Work::in_slots(op, &message),
        (_, reads) => Work {
            streamed_ps: message.streamed_ps(if windowed { SIGNALLED_PS } else { 0 }),
            // Over windows an all_gather alone but writes. What the others read there is fetched (`Fabric::fresh_ps`), and the
            // system copies no faster.
            in_caches: match reads || op != Op::AllGather {
                true => Ratio::new(1, 1),
                false => fabric.in_caches(message.s, false),
            },
            ..Work::default()
        },
    };
    let (w, m) = (&mut work, &message);
    match algorithm {
        Algorithm::MeshOneShot | Algorithm::MeshTwoShot | Algorithm::Direct if windowed => {
            mesh::windows(w, op, m);
        }
        Algorithm::Direct => mesh::direct(w, m),
        Algorithm::MeshOneShot => mesh::one_shot(w, op, m),
        Algorithm::MeshTwoShot => mesh::two_shot(w, op, m),
        Algorithm::RecursiveDoubling => logarithmic::recursive_doubling(w, op, m),
        Algorithm::HalvingDoubling => logarithmic::halving_doubling(w, op, m),
        Algorithm::Nhr => logarithmic::nhr(w, op, m),
        Algorithm::Bruck => logarithmic::bruck(w, op, m),
        Algorithm::Dissemination => logarithmic::dissemination(w, m),
        Algorithm::Ring => rings::ring(w, op, m),
        Algorithm::BidirectionalRing => rings::bidirectional(w, op, m),
        Algorithm::Pairwise => rings::pairwise(w, m),
        Algorithm::Chain => rings::chain(w, op, m),
        Algorithm::MeshRead => mesh::reads(w, op, m),
        Algorithm::MeshShared => mesh::shared(w, op, m),
        Algorithm::MeshSharedOneShot => mesh::shared_one_shot(w, m),
        Algorithm::RingShared => rings::shared(w, m),
        Algorithm::Binomial => match near {
            Near::InRuns(run) => rooted::reduce_in_runs(w, m, run.into()),
            Near::Apart | Near::Following => rooted::binomial(w, op, m),
        },
        Algorithm::ScatterAllGather => rooted::scatter_all_gather(w, op, m),
        Algorithm::DoubleBinaryTree => rooted::double_binary_tree(w, op, m),
    }
    let mut takes = |Ratio { num, den }| work.in_caches = work.in_caches.times(num).over(den);
    let adds_on = match algorithm {
        Algorithm::Ring => op == Op::ReduceScatter,
        other => other == Algorithm::RingShared,
    };
    if adds_on {
        takes(fabric.added_on(message.s));
    }
    if algorithm == Algorithm::Pairwise {
        takes(fabric.by_pairs(message.s));
    }
    if near != Near::Apart && algorithm.goes_by_neighbours() {
        takes(Ratio::new(NEAR.0, NEAR.1));
    }
    work
}

/// Whether ranks put each other data, so that their slots can change hands.
fn exchanges(op: Op) -> bool {
    matches!(
        op,
        Op::AllReduce | Op::AllGather | Op::ReduceScatter | Op::AllToAll
    )
}

/// How much longer a plan takes whose messages pass slots, as a long input comes from memory, which gives a core less
/// than links carry: one that is added up, and that of an all_to_all, of which reads fetch each byte once. Nothing where
/// ranks do not read each other: there all plans have it in common.
pub(super) fn from_memory_ps(op: Op, bytes: Ratio, fabric: &Fabric) -> u128 {
    let Some(reads) = fabric.crowded_reads() else {
        return 0;
    };
    let rate = match op {
        Op::AllToAll => reads.copied_from_memory,
        _ if op.reduces() => reads.from_memory,
        _ => return 0,
    };
    let long = in_memory(bytes, fabric.ranks());
    let links = fabric.mesh.rate.time(long);
    rate.time(long).saturating_sub(links)
}

/// The work of a hierarchical plan.
pub(super) fn levels(ways: &[LevelWays], op: Op, bytes: u64, fabric: &Fabric) -> Work {
    let message = Message::new(bytes, fabric);
    let mut work = Work::in_slots(op, &message);
    levels::levels(&mut work, op, ways, &message);
    work
}

/// The work of rings.
pub(super) fn rings(ways: &RingWays, op: Op, bytes: u64, fabric: &Fabric) -> Work {
    let message = Message::new(bytes, fabric);
    let mut work = Work::in_slots(op, &message);
    flows::rings(&mut work, op, ways, &message);
    work
}

/// The work of a packing of trees.
pub(super) fn trees(ways: &TreeWays, op: Op, bytes: u64, fabric: &Fabric) -> Work {
    let message = Message::new(bytes, fabric);
    let mut work = Work::in_slots(op, &message);
    flows::trees(&mut work, op, ways, &message);
    work
}

/// A message on a fabric.
struct Message<'a> {
    fabric: &'a Fabric,
    /// Ranks.
    p: u32,
    /// Bytes.
    s: Ratio,
    /// Bytes of one rank's share.
    share: Ratio,
    /// Bytes of all other ranks' shares.
    rest: Ratio,
}

impl<'a> Message<'a> {
    fn new(bytes: u64, fabric: &'a Fabric) -> Self {
        let (p, s) = (fabric.ranks(), Ratio::new(u128::from(bytes), 1));
        let share = s.over(u128::from(p));
        Self {
            fabric,
            p,
            s,
            share,
            rest: share.times(u128::from(p) - 1),
        }
    }

    /// [`Work::streamed_ps`], in a call of this message; in a short one so much before others have their turns.
    fn streamed_ps(&self, in_short: u128) -> u128 {
        let crowd = self.fabric.crowd;
        let each = match self.s.num > STREAMED * self.s.den {
            true => STREAMED_PS,
            false => in_short,
        };
        (each * crowd.num).div_ceil(crowd.den)
    }

    /// Bytes of some ranks' shares.
    fn shares(&self, count: u32) -> Ratio {
        self.share.times(u128::from(count))
    }
}
