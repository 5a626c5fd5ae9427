//! From the bandwidth of an algorithm to that of the bus, as nccl-tests defines it.

use crate::ir::Op;

/// A fraction: `busbw = algbw * numerator / denominator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BusFactor {
    /// The numerator.
    pub numerator: u32,
    /// The denominator; never 0.
    pub denominator: u32,
}

/// What an operation's algbw (bytes of the whole message over time) is multiplied by to compare it
/// with the speed of the links: all_reduce `2(n-1)/n`; reduce_scatter, all_gather, all_to_all,
/// gather and scatter `(n-1)/n`; broadcast, reduce, send and receive 1. Barrier moves nothing: 0.
#[must_use]
pub fn bus_factor(op: Op, ranks: u32) -> BusFactor {
    let factor = |numerator, denominator| BusFactor {
        numerator,
        denominator,
    };
    let ranks = ranks.max(1);
    match op {
        Op::AllReduce => factor((ranks - 1).saturating_mul(2), ranks),
        Op::ReduceScatter
        | Op::AllGather
        | Op::AllToAll
        | Op::Gather { .. }
        | Op::Scatter { .. } => factor(ranks - 1, ranks),
        Op::Broadcast { .. } | Op::Reduce { .. } | Op::Send { .. } | Op::Recv { .. } => {
            factor(1, 1)
        }
        Op::Barrier => factor(0, 1),
    }
}
