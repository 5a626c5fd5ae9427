//! Whether everything that must flow can flow at all.

use unisono_network::{Network, VertexId};

use crate::{BoundError, Op};

/// Finds two ranks that an op must join and that nothing joins.
pub(crate) fn check(network: &Network, op: Op) -> Result<(), BoundError> {
    match op {
        Op::Broadcast { root } | Op::Scatter { root } => from(network, root),
        Op::Reduce { root } | Op::Gather { root } => to(network, root),
        Op::SendRecv { from, to } => {
            let seen = reached(network, from);
            if seen[to as usize] {
                Ok(())
            } else {
                Err(BoundError::Disconnected { from, to })
            }
        }
        Op::AllGather | Op::ReduceScatter | Op::AllReduce { .. } | Op::AllToAll => {
            from(network, 0)?;
            to(network, 0)
        }
    }
}

fn from(network: &Network, rank: u32) -> Result<(), BoundError> {
    match missing(network, rank) {
        Some(to) => Err(BoundError::Disconnected { from: rank, to }),
        None => Ok(()),
    }
}

fn to(network: &Network, rank: u32) -> Result<(), BoundError> {
    match missing(&network.reversed(), rank) {
        Some(from) => Err(BoundError::Disconnected { from, to: rank }),
        None => Ok(()),
    }
}

/// The first rank that a rank does not reach.
fn missing(network: &Network, from: u32) -> Option<u32> {
    let seen = reached(network, from);
    (0..network.ranks()).find(|rank| !seen[*rank as usize])
}

fn reached(network: &Network, from: VertexId) -> Vec<bool> {
    let mut seen = vec![false; network.vertices().len()];
    seen[from as usize] = true;
    let mut waiting = vec![from];
    while let Some(vertex) = waiting.pop() {
        for &edge in network.out_edges(vertex) {
            let next = network.edge(edge).to;
            if !std::mem::replace(&mut seen[next as usize], true) {
                waiting.push(next);
            }
        }
    }
    seen
}
