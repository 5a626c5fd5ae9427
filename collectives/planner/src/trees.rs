//! Schedules from packings of spanning trees.
//!
//! Each tree carries its share of the message in chunks. Down an out-tree every rank hands a chunk
//! on as soon as it has it; up an in-tree it adds what its children send, in the order of the
//! children, and sends the sum on. Chunks of all trees have about the same size, and a tree with
//! twice the weight has twice as many. Lanes take whoever is ready: first the chunks that come
//! first in their share, and of those the ones with the longest way to go.

mod channels;
mod collect;
mod distribute;
mod shape;

use std::ops::Range;

use unisono_network::{Network, Router};
use unisono_pack::{Packing, PairPacking, Tree, Way};
use unisono_plan::Op;

use crate::schedule::{Buffer, Cut, Extent, Kind, Part, Place, Schedule, Turn, Weave};
pub(crate) use channels::Channels;
use collect::Collect;
use distribute::Distribute;
use shape::Shape;

/// How a message is cut for trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutting {
    /// About how large a chunk is, in bytes.
    pub chunk: u64,
    /// Chunks of one lane that may wait for a rank that reduces them.
    pub slots: u32,
    /// Which chunks share a lane.
    pub lanes: Lanes,
}

/// Which chunks of a rank share a lane, so that one goes after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lanes {
    /// All that take the same path. Best where paths share no links: each link always serves the
    /// chunk that matters most.
    Path,
    /// Those of one unit of weight of one tree, of which there may be so many. Best where paths
    /// share links: as all lanes have the same rate in the packing, and fair sharing never gives
    /// one less than what all could have, each lane always goes at least as fast as the packing
    /// says.
    Share {
        /// Units of weight in all, at most.
        most: u32,
    },
    /// As many as with [`Lanes::Share`], each from the first rank of a route to its last one in one
    /// step, which flows over all links at once and pays their latencies once: nobody in between stores what passes.
    /// Of routes alone.
    Through {
        /// Units of weight in all, at most.
        most: u32,
    },
}

/// The smallest chunk, unless a rank's own share is smaller.
pub const LEAST_CHUNK: u64 = 4096;

/// The schedule of a packing: out-trees for all_gather and broadcast, in-trees for reduce_scatter
/// and reduce. None if the packing isn't for the operation.
#[must_use]
pub fn packing(
    op: Op,
    network: &Network,
    packing: &Packing,
    bytes: u64,
    cutting: Cutting,
) -> Option<Schedule> {
    let way = match op {
        Op::AllGather | Op::Broadcast { .. } => Way::Out,
        Op::ReduceScatter | Op::Reduce { .. } => Way::In,
        _ => return None,
    };
    if packing.way != way {
        return None;
    }
    let mut weave = Weave::new(op, network.ranks(), bytes);
    let weights: Vec<u64> = packing.trees.iter().map(|tree| tree.weight).collect();
    let mut channels = Channels::new(&weights, cutting.lanes);
    let message = weave.message();
    for root in 0..network.ranks() {
        let share = match op {
            Op::AllGather | Op::ReduceScatter => message.block(root),
            _ if op.root() == Some(root) => message.whole(),
            _ => continue,
        };
        let of_root = |tree: &&Tree| tree.root == root;
        let of_root: Vec<&Tree> = packing.trees.iter().filter(of_root).collect();
        if way == Way::Out {
            keep(&mut weave, root, share.clone());
        }
        let weights: Vec<u64> = of_root.iter().map(|tree| tree.weight).collect();
        let parts = shares(&weave, share, &weights);
        for (tree, range) in of_root.into_iter().zip(parts) {
            if range.is_empty() {
                continue;
            }
            let shape = Shape::new(tree)?;
            let channel = channels.next(tree.weight);
            let pieces = pieces(&range, cutting);
            let cut = Cut {
                element: message.element,
            };
            let mut collect =
                (way == Way::In).then(|| Collect::new(&shape, cutting, channel.count, pieces));
            let distribute = Distribute::new(&shape);
            for (piece, range) in (0..).zip(cut.even(range, pieces)) {
                let lane = channel.of(piece);
                let chunk = Chunk {
                    piece,
                    pieces,
                    lane,
                };
                match &mut collect {
                    Some(collect) => {
                        let to = output(op, &weave, root, range.start);
                        collect.chunk(&mut weave, network, range, to, chunk, 0);
                    }
                    None => {
                        let from = input(op, &weave, root, range.start);
                        distribute.chunk(&mut weave, range, from, None, chunk);
                    }
                }
            }
        }
    }
    Some(weave.finish())
}

/// The schedule of an all_reduce over pairs of trees: each share is reduced up an in-tree to its
/// root, and goes from there down an out-tree, chunk by chunk.
#[must_use]
pub fn pairs(
    network: &Network,
    packing: &PairPacking,
    bytes: u64,
    cutting: Cutting,
) -> Option<Schedule> {
    let op = Op::AllReduce;
    let mut weave = Weave::new(op, network.ranks(), bytes);
    let message = weave.message();
    let weights: Vec<u64> = packing
        .pairs
        .iter()
        .map(|pair| pair.reduce.weight)
        .collect();
    let mut channels = Channels::new(&weights, cutting.lanes);
    let parts = shares(&weave, message.whole(), &weights);
    for (pair, range) in packing.pairs.iter().zip(parts) {
        if range.is_empty() {
            continue;
        }
        let channel = channels.next(pair.reduce.weight);
        let (up, down) = (Shape::new(&pair.reduce)?, Shape::new(&pair.distribute)?);
        let pieces = pieces(&range, cutting);
        let cut = Cut {
            element: message.element,
        };
        let mut collect = Collect::new(&up, cutting, channel.count, pieces);
        let distribute = Distribute::new(&down);
        for (piece, range) in (0..).zip(cut.even(range, pieces)) {
            let lane = channel.of(piece);
            let chunk = Chunk {
                piece,
                pieces,
                lane,
            };
            let to = Place::new(Buffer::Out, range.start);
            let rest = down.tallest();
            let last = collect.chunk(&mut weave, network, range.clone(), to, chunk, rest);
            distribute.chunk(&mut weave, range, to, last, chunk);
        }
    }
    Some(weave.finish())
}

/// Shares by weight, without those that would be too small: the lightest trees go first.
pub(crate) fn shares(weave: &Weave, range: Range<u64>, weights: &[u64]) -> Vec<Range<u64>> {
    let mut weights = weights.to_vec();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&tree| weights[tree]);
    let bytes = u128::from(range.end - range.start);
    let mut sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    for &tree in order.iter().take(order.len().saturating_sub(1)) {
        if u128::from(weights[tree]) * bytes >= u128::from(LEAST_CHUNK) * sum {
            break;
        }
        sum -= u128::from(weights[tree]);
        weights[tree] = 0;
    }
    let element = weave.message().element;
    Cut { element }.weighted(range, &weights)
}

fn pieces(range: &Range<u64>, cutting: Cutting) -> u64 {
    let bytes = range.end - range.start;
    let wanted = (bytes + cutting.chunk / 2) / cutting.chunk.max(1);
    wanted.min(bytes / LEAST_CHUNK).max(1)
}

/// The root's own share goes from its input to its output.
fn keep(weave: &mut Weave, root: u32, share: Range<u64>) {
    let op = weave.op();
    let extent = Extent {
        a: input(op, weave, root, share.start),
        b: None,
        to: output(op, weave, root, share.start),
        bytes: share.end - share.start,
    };
    weave.step(Part {
        rank: root,
        peer: root,
        kind: Kind::Copy,
        path: &[],
        extents: &[extent],
        after: &[],
        turn: Turn::Path(0),
        priority: 0,
    });
}

/// Where a byte of the message is in a rank's input.
fn input(op: Op, weave: &Weave, rank: u32, at: u64) -> Place {
    let base = match op {
        Op::AllGather | Op::Gather { .. } => weave.message().block(rank).start,
        _ => 0,
    };
    Place::new(Buffer::In, at - base)
}

/// Where a byte of the message is in a rank's output.
fn output(op: Op, weave: &Weave, rank: u32, at: u64) -> Place {
    let base = match op {
        Op::ReduceScatter | Op::Scatter { .. } => weave.message().block(rank).start,
        _ => 0,
    };
    Place::new(Buffer::Out, at - base)
}

/// Which chunk of a tree's share it is.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    piece: u64,
    pieces: u64,
    lane: u32,
}

impl Chunk {
    /// Earlier chunks first; of those as early, the ones with more hops to go.
    fn priority(self, hops: u32) -> u64 {
        hops_first((self.piece, self.pieces), hops)
    }
}

/// The priority of one of many chunks of a share: earlier chunks first; of those as early, the ones
/// with more hops to go.
pub(crate) fn hops_first((piece, pieces): (u64, u64), hops: u32) -> u64 {
    let part = ((2 * piece + 1) << 30) / (2 * pieces);
    (part << 20) | u64::from(0xF_FFFF - hops.min(0xF_FFFF))
}

/// The way back from a rank to one that sends to it; nothing if there is none.
fn back(router: &mut Router<'_>, from: u32, to: u32) -> Vec<unisono_network::EdgeId> {
    router.path(from, to).unwrap_or_default()
}
