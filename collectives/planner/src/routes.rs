//! Schedules from routes: every pair of ranks has ways of its own.
//!
//! What a rank has for another goes over one or several routes, in shares by weight. On each, the
//! ranks in between store what they get and hand it on. Lanes take whoever is ready, first what has
//! the longest way to go.

use std::ops::Range;

use unisono_network::{EdgeId, Network};
use unisono_pack::{Route, Routing};
use unisono_plan::Op;

use crate::schedule::{Buffer, Cut, Extent, Kind, Part, Place, Schedule, StepId, Turn, Weave};
use crate::trees::{Cutting, LEAST_CHUNK, Lanes};

/// The schedule of an all_to_all over routes.
#[must_use]
pub fn all_to_all(network: &Network, routing: &Routing, bytes: u64, cutting: Cutting) -> Schedule {
    let ranks = network.ranks();
    let mut weave = Weave::new(Op::AllToAll, ranks, bytes);
    let message = weave.message();
    let cut = Cut {
        element: message.element,
    };
    for rank in 0..ranks {
        let block = message.block(rank);
        own(&mut weave, rank, block);
    }
    let pairs = routing.routes.chunk_by(|a, b| ends(a) == ends(b));
    let mut lane = 0;
    for routes in pairs {
        let (from, to) = ends(&routes[0]);
        let block = message.block(to);
        // The block of whom it comes from, in the output.
        let shift = |at: u64| at - block.start + message.block(from).start;
        let most = ((block.end - block.start) / LEAST_CHUNK).clamp(1, routes.len() as u64);
        let routes = &routes[..most as usize];
        let weights: Vec<u64> = routes.iter().map(|route| route.weight).collect();
        for (route, share) in routes.iter().zip(cut.weighted(block.clone(), &weights)) {
            lane += 1;
            let pieces = ((share.end - share.start) / cutting.chunk.max(LEAST_CHUNK)).max(1);
            for (piece, range) in (0..).zip(cut.even(share, pieces)) {
                let priority = ((2 * piece + 1) << 30) / (2 * pieces);
                let lane = match cutting.lanes {
                    Lanes::Path => 0,
                    Lanes::Share { .. } => lane,
                };
                let to = Place::new(Buffer::Out, shift(range.start));
                send(&mut weave, network, route, range, to, priority, lane);
            }
        }
    }
    weave.finish()
}

fn ends(route: &Route) -> (u32, u32) {
    let first = route.ranks.first().copied().unwrap_or(0);
    (first, route.ranks.last().copied().unwrap_or(0))
}

fn own(weave: &mut Weave, rank: u32, block: Range<u64>) {
    let extent = Extent {
        a: Place::new(Buffer::In, block.start),
        b: None,
        to: Place::new(Buffer::Out, block.start),
        bytes: block.end - block.start,
    };
    weave.step(Part {
        rank,
        peer: rank,
        kind: Kind::Copy,
        path: &[],
        extents: &[extent],
        after: &[],
        priority: 0,
        turn: Turn::Path(0),
    });
}

/// Sends a chunk along a route.
fn send(
    weave: &mut Weave,
    network: &Network,
    route: &Route,
    range: Range<u64>,
    target: Place,
    part: u64,
    lane: u32,
) {
    let bytes = range.end - range.start;
    if bytes == 0 {
        return;
    }
    let mut a = Place::new(Buffer::In, range.start);
    let mut arrived: Option<StepId> = None;
    let hops = hops(network, route);
    let count = hops.len();
    for (place, (rank, peer, path)) in hops.into_iter().enumerate() {
        let to = match place + 1 == count {
            true => target,
            false => weave.scratch(peer, bytes),
        };
        let left = (count - place) as u64;
        arrived = Some(weave.step(Part {
            rank,
            peer,
            kind: Kind::Put,
            path,
            extents: &[Extent {
                a,
                b: None,
                to,
                bytes,
            }],
            after: arrived.as_slice(),
            priority: (part << 20) | (0xF_FFFF - left.min(0xF_FFFF)),
            turn: Turn::Path(lane),
        }));
        a = to;
    }
}

/// From rank to rank along a route, and over which edges.
fn hops<'r>(network: &Network, route: &'r Route) -> Vec<(u32, u32, &'r [EdgeId])> {
    let mut hops = Vec::new();
    let mut start = 0;
    for (place, &edge) in route.edges.iter().enumerate() {
        if let Some(peer) = network.rank_of(network.edge(edge).to) {
            let rank = route.ranks[hops.len()];
            hops.push((rank, peer, &route.edges[start..=place]));
            start = place + 1;
        }
    }
    hops
}
