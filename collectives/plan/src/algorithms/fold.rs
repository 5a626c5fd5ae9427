//! The left fold in rank order: what deterministic mode promises, and what both meshes do.

use crate::builder::{Builder, input, local, out, peer, slot};
use crate::ir::{Blocks, Buffer, Place};

/// Where the inputs of the peers are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// In the next slot of each channel.
    Slots,
    /// The same, but the slots hold these blocks, of which only some are folded.
    Wider(Blocks),
    /// In the peers' buffers: their windows, or memory that they let this rank read.
    Buffers,
}

/// `out = ((x0 + x1) + x2) + ...` for some blocks, on a communicator of at least two ranks.
///
/// In place the output is this rank's own input. So the partial sums go to scratch until the own
/// input has been used, and to the output from then on.
pub(super) fn fold_in_rank_order(b: &mut Builder, blocks: Blocks, source: Source) {
    let partial = local(Buffer::Scratch, blocks);
    fold(b, blocks, source, [partial, out(blocks), out(blocks)]);
}

/// The same, over windows, to an output that is never the input.
pub(super) fn fold_apart(b: &mut Builder, blocks: Blocks) {
    fold(b, blocks, Source::Buffers, [out(blocks); 3]);
}

/// The same, from the peers' buffers, to a place that is written once: partial sums stay in scratch.
pub(super) fn fold_to(b: &mut Builder, blocks: Blocks, target: Place) {
    let partial = local(Buffer::Scratch, blocks);
    fold(b, blocks, Source::Buffers, [partial, partial, target]);
}

/// Partial sums lie in the first place until the own input has been used, and in the second from then on; the third is for
/// the result.
fn fold(b: &mut Builder, blocks: Blocks, source: Source, [partial, sums, target]: [Place; 3]) {
    let (me, ranks) = (b.rank(), b.ranks());
    let fold = Fold { blocks, source };
    // Where the sum of the first so many lies.
    let place = |count: u32| match count {
        _ if count == ranks => target,
        _ if count > me => sums,
        _ => partial,
    };
    let first = fold.operand(b, 0);
    let second = fold.operand(b, 1);
    b.reduce(place(2), first, second, ranks == 2);
    fold.done(b, 0);
    fold.done(b, 1);
    if me > 1 {
        fold.add(b, 2, me - 2, partial);
        b.reduce(place(me + 1), partial, input(blocks), me + 1 == ranks);
    }
    let next = me.max(1) + 1;
    if next < ranks {
        fold.add(b, next, ranks - 1 - next, sums);
        fold.add_one(b, ranks - 1, [sums, target], true);
    }
}

/// What is folded, and from where.
struct Fold {
    blocks: Blocks,
    source: Source,
}

impl Fold {
    /// Adds the inputs of `count` ranks from `first` on, none of them this rank, to a sum.
    fn add(&self, b: &mut Builder, first: u32, count: u32, sum: Place) {
        b.repeat(count, |b| {
            self.add_one(b.drift(1, 0), first, [sum; 2], false)
        });
    }

    fn add_one(&self, b: &mut Builder, rank: u32, [sum, to]: [Place; 2], last: bool) {
        let next = self.operand(b, rank);
        b.reduce(to, sum, next, last);
        self.done(b, rank);
    }

    fn operand(&self, b: &mut Builder, rank: u32) -> Place {
        let blocks = self.blocks;
        if rank == b.rank() {
            return input(blocks);
        }
        match self.source {
            Source::Buffers => peer(rank, Buffer::In, blocks),
            Source::Slots => {
                b.wait(rank, blocks);
                slot(rank, blocks)
            }
            Source::Wider(held) => {
                b.wait(rank, held);
                slot(rank, blocks)
            }
        }
    }

    fn done(&self, b: &mut Builder, rank: u32) {
        if rank != b.rank() && self.source != Source::Buffers {
            b.release(rank);
        }
    }
}
