//! A flat algorithm in which ranks play each other's parts.
//!
//! Steps name ranks by their positions, and blocks that belong to ranks by their ranks' positions;
//! the program's tables say which those are. So a program stays as short as that of the algorithm.

use crate::algorithms::{self, Algorithm, Runs, Shape, Unsupported};
use crate::ir::{Op, Program};

use super::super::Order;
use super::names_in_order;

pub(super) fn generate(
    algorithm: Algorithm,
    order: &Order,
    shape: &Shape,
) -> Result<Program, Unsupported> {
    let (order, runs) = match shape.op {
        // Sums go to the first of each run, and from there to the root.
        Op::Reduce { root } if order.run() > 1 => {
            let (led, first) = order.led_by(root);
            let others = order.run();
            (led, Runs { first, others })
        }
        _ => (order.clone(), Runs::NONE),
    };
    // The caller has checked that the ranks are there.
    let position = |rank: u32| order.position(rank).unwrap_or(rank);
    let at_position = Shape {
        op: match shape.op {
            Op::Broadcast { root } => Op::Broadcast {
                root: position(root),
            },
            Op::Reduce { root } => Op::Reduce {
                root: position(root),
            },
            Op::Gather { root } => Op::Gather {
                root: position(root),
            },
            Op::Scatter { root } => Op::Scatter {
                root: position(root),
            },
            op => op,
        },
        rank: position(shape.rank),
        ..*shape
    };
    let mut program = algorithms::generate_in_runs(algorithm, &at_position, runs)?;
    program.op = shape.op;
    program.rank = shape.rank;
    program.order = Some(order.ranks().clone());
    if shape.op.has_block_per_rank() {
        let each = program.blocks / shape.op.parts(shape.ranks);
        let names = names_in_order(order.ranks(), each);
        program.names = Some(match shape.op {
            // What comes is in the same order as what goes.
            Op::AllToAll => {
                let half = names.len() as u32;
                let came = names.iter().map(|&number| number + half);
                names.iter().copied().chain(came).collect()
            }
            _ => names,
        });
    }
    Ok(program)
}
