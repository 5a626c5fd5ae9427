//! What other libraries choose, as their documents describe it, in the names of this project.
//!
//! Both know more than is published: NCCL's tables of measured figures for each generation of
//! hardware, HCCL's adaptive choice on its newer machines. These are the rules that users read.

use unisono_network::Network;
use unisono_plan::Op;

/// The documented chunk of NCCL's simple protocol: an eighth of its buffer of 4 MiB.
pub const NCCL_CHUNK: u64 = 512 << 10;

/// NCCL: the model of its tuner. Rings for everything that keeps blocks apart; for all_reduce the
/// lower of a ring's and a double binary tree's time; chains along the ring for rooted operations;
/// sends and receives at once for all_to_all, gather and scatter.
pub fn nccl(network: &Network, op: Op, bytes: u64) -> &'static str {
    let ranks = f64::from(network.ranks());
    match op {
        Op::AllReduce => {
            let (latency, width) = link(network);
            let bytes = bytes as f64;
            let ring = 2.0 * (ranks - 1.0) * (latency + bytes / ranks / width);
            let tree = 2.0 * ranks.log2() * latency + 2.0 * bytes / width;
            if tree < ring {
                "double_binary_tree"
            } else {
                "ring"
            }
        }
        Op::AllGather | Op::ReduceScatter => "ring",
        Op::Broadcast { .. } | Op::Reduce { .. } => "chain",
        _ => "mesh_one_shot",
    }
}

/// HCCL without HCCL_ALGO: a mesh where every two ranks have a link; else halving and doubling for
/// powers of two, and a ring for other numbers. Pairwise for all_to_all.
pub fn hccl(network: &Network, op: Op) -> &'static str {
    let ranks = network.ranks();
    let direct = network
        .edges()
        .iter()
        .filter(|edge| network.rank_of(edge.from).is_some() && network.rank_of(edge.to).is_some());
    let mesh = direct.count() as u64 >= u64::from(ranks) * u64::from(ranks - 1);
    match op {
        Op::AllToAll => "pairwise",
        Op::AllReduce | Op::Broadcast { .. } if mesh => "mesh_two_shot",
        _ if mesh => "mesh_one_shot",
        Op::AllReduce | Op::AllGather | Op::ReduceScatter if ranks.is_power_of_two() => {
            "halving_doubling"
        }
        Op::AllReduce | Op::AllGather | Op::ReduceScatter => "ring",
        Op::Broadcast { .. } | Op::Reduce { .. } if ranks.is_power_of_two() => "binomial",
        Op::Broadcast { .. } | Op::Reduce { .. } => "scatter_all_gather",
        _ => "mesh_one_shot",
    }
}

/// The mean latency in seconds and the mean bandwidth in bytes a second of a link.
fn link(network: &Network) -> (f64, f64) {
    let count = network.edges().len().max(1) as f64;
    let latency: u64 = network.edges().iter().map(|edge| edge.latency_ns).sum();
    let width: u64 = (network.edges().iter())
        .map(|edge| edge.bytes_per_second / 1024)
        .sum();
    (latency as f64 / count * 1e-9, width as f64 * 1024.0 / count)
}
