//! What the plans of all ranks have in common, known without generating any.

use crate::ir::Op;

use super::halving_groups::Groups;
use super::{Algorithm, Shape};

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
        match (algorithm, op) {
            (Algorithm::HalvingDoubling, Op::AllReduce | Op::AllGather | Op::ReduceScatter) => {
                let groups = Groups::new(ranks, op.has_block_per_rank());
                let blocks = groups.blocks(0, groups.core()).count;
                // The fold moves everything at once, the first halving one half.
                let all = groups.core() < ranks;
                layout(blocks, if all { blocks } else { blocks / 2 })
            }
            (Algorithm::MeshTwoShot, Op::Broadcast { .. }) => layout(ranks - 1, 1),
            (Algorithm::MeshTwoShot | Algorithm::Ring, Op::AllReduce) => layout(ranks, 1),
            (_, op) if op.has_block_per_rank() => layout(op.parts(ranks), 1),
            _ => layout(1, 1),
        }
    }

    pub(super) fn of_shape(algorithm: Algorithm, shape: &Shape) -> Layout {
        Layout::of(algorithm, shape.op, shape.ranks)
    }
}
