//! What plans are compared on: regular graphs, and the operations.

use unisono_plan::Op;

pub mod families;

/// The operations that are compared.
pub const OPS: [Op; 8] = [
    Op::AllReduce,
    Op::AllGather,
    Op::ReduceScatter,
    Op::Broadcast { root: 0 },
    Op::Reduce { root: 0 },
    Op::Gather { root: 0 },
    Op::Scatter { root: 0 },
    Op::AllToAll,
];
