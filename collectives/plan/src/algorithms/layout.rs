//! What the plans of all ranks have in common, known without generating any.

use crate::ir::Op;

use super::binomial::widest_subtree;
use super::{Algorithm, Shape, bidirectional_ring, bruck};

/// Numbers on which all ranks agree, since they decide how a message is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Blocks of the message: [`crate::Program::blocks`].
    pub blocks: u32,
    /// Blocks in the widest put of any rank: [`crate::Program::max_put_blocks`].
    pub put_blocks: u32,
}

impl Layout {
    /// The layout of a plan that [`Algorithm::supports`]; of another one it means nothing.
    #[must_use]
    pub fn of(algorithm: Algorithm, op: Op, ranks: u32) -> Layout {
        let layout = |blocks, put_blocks| Layout { blocks, put_blocks };
        if op == Op::Barrier || ranks <= 1 {
            return layout(op.parts(ranks), 0);
        }
        let parts = op.parts(ranks);
        match (algorithm, op) {
            (Algorithm::HalvingDoubling, _) => layout(ranks, ranks.div_ceil(2)),
            (Algorithm::Nhr, _) => layout(ranks, ranks / 2),
            (Algorithm::Bruck, Op::AllToAll) => layout(parts, ranks / 2),
            (Algorithm::Bruck, _) => layout(parts, bruck::widest(ranks)),
            (Algorithm::BidirectionalRing, _) => {
                let halves = bidirectional_ring::halves(ranks);
                layout(ranks * halves, halves)
            }
            (Algorithm::Binomial, Op::Gather { .. } | Op::Scatter { .. })
            | (Algorithm::ScatterAllGather, _) => layout(ranks, widest_subtree(ranks)),
            (Algorithm::Binomial, Op::AllGather | Op::ReduceScatter) => layout(ranks, ranks),
            (Algorithm::DoubleBinaryTree, _) => layout(2, 1),
            (Algorithm::MeshShared, Op::AllReduce | Op::ReduceScatter) => layout(ranks, ranks),
            (Algorithm::MeshShared, Op::AllToAll) => layout(parts, ranks),
            (Algorithm::MeshTwoShot, Op::Broadcast { .. }) => layout(ranks - 1, 1),
            (
                Algorithm::MeshTwoShot
                | Algorithm::MeshRead
                | Algorithm::Ring
                | Algorithm::RingShared,
                Op::AllReduce,
            )
            | (Algorithm::MeshTwoShot, Op::Reduce { .. }) => layout(ranks, 1),
            _ => layout(parts, 1),
        }
    }

    pub(super) fn of_shape(algorithm: Algorithm, shape: &Shape) -> Layout {
        Layout::of(algorithm, shape.op, shape.ranks)
    }
}
