//! The left fold in rank order: what deterministic mode promises, and what both meshes do.

use crate::builder::{Builder, input, local, out, peer, slot};
use crate::ir::{Blocks, Buffer, Place};

/// Where the inputs of the peers are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// In the next slot of each channel.
    Slots,
    /// In the peers' windows.
    Windows,
}

/// `out = ((x0 + x1) + x2) + ...` for some blocks, on a communicator of at least two ranks.
///
/// In place the output is this rank's own input. So the partial sums go to scratch until the own
/// input has been used, and to the output from then on.
pub(super) fn fold_in_rank_order(b: &mut Builder, blocks: Blocks, source: Source) {
    let (me, ranks) = (b.rank(), b.ranks());
    let operand = |b: &mut Builder, rank: u32| -> Place {
        if rank == me {
            return input(blocks);
        }
        match source {
            Source::Windows => peer(rank, Buffer::In, blocks),
            Source::Slots => {
                b.wait(rank, blocks);
                slot(rank, blocks)
            }
        }
    };
    let done = |b: &mut Builder, rank: u32| {
        if rank != me && source == Source::Slots {
            b.release(rank);
        }
    };
    let mut sum = operand(b, 0);
    for rank in 1..ranks {
        let next = operand(b, rank);
        let dst = if rank >= me {
            out(blocks)
        } else {
            local(Buffer::Scratch, blocks)
        };
        b.reduce(dst, sum, next, rank + 1 == ranks);
        if rank == 1 {
            done(b, 0);
        }
        done(b, rank);
        sum = dst;
    }
}
