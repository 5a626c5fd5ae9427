//! Schedules from routes: what one rank has for another goes ways of its own.
//!
//! It goes over one or several routes, in shares by weight. On each, the ranks in between store what
//! they get and hand it on, or it goes through to the last one in one step. Lanes take whoever is ready, first what has the longest way to go.

mod flow;

use std::ops::Range;

use unisono_network::{EdgeId, Network};
use unisono_pack::Route;
use unisono_plan::Op;

use crate::schedule::{Buffer, Cut, Extent, Kind, Part, Place, Schedule, StepId, Turn, Weave};
use crate::trees::{Channels, Cutting, LEAST_CHUNK, Lanes, hops_first, shares};

pub use flow::{gather, scatter, send};

/// The schedule of an all_to_all, a scatter, a gather or a send over routes, those of one pair of
/// ranks one after the other. None for other operations.
#[must_use]
pub fn schedule(
    op: Op,
    network: &Network,
    routes: &[Route],
    bytes: u64,
    cutting: Cutting,
) -> Option<Schedule> {
    let mut weave = Weave::new(op, network.ranks(), bytes);
    let message = weave.message();
    let cut = Cut {
        element: message.element,
    };
    let kept = match op {
        Op::AllToAll => 0..network.ranks(),
        Op::Scatter { root } | Op::Gather { root } => root..root + 1,
        Op::Send { .. } | Op::Recv { .. } => 0..0,
        _ => return None,
    };
    for rank in kept {
        own(&mut weave, rank);
    }
    let weights: Vec<u64> = routes.iter().map(|route| route.weight).collect();
    let mut channels = Channels::new(&weights, cutting.lanes);
    for routes in routes.chunk_by(|a, b| ends(a) == ends(b)) {
        let (from, to) = ends(&routes[0]);
        let (range, source, target) = exchanged(&weave, from, to);
        let weights: Vec<u64> = routes.iter().map(|route| route.weight).collect();
        let shares = shares(&weave, range.clone(), &weights);
        for (route, share) in routes
            .iter()
            .zip(shares)
            .filter(|(_, share)| !share.is_empty())
        {
            let channel = channels.next(route.weight);
            let length = share.end - share.start;
            let pieces = (length / cutting.chunk.max(LEAST_CHUNK)).max(1);
            let is_through = matches!(cutting.lanes, Lanes::Through { .. });
            let hops = match op.is_collective() && !is_through {
                true => hops(network, route),
                false => vec![(from, to, &route.edges[..])],
            };
            for (piece, part) in (0..).zip(cut.even(share, pieces)) {
                let chunk = Chunk {
                    source: moved(source, part.start - range.start),
                    target: moved(target, part.start - range.start),
                    bytes: part.end - part.start,
                    part: (piece, pieces),
                    lane: channel.of(piece),
                };
                send_along(&mut weave, &hops, chunk);
            }
        }
    }
    Some(weave.finish())
}

fn ends(route: &Route) -> (u32, u32) {
    let first = route.ranks.first().copied().unwrap_or(0);
    (first, route.ranks.last().copied().unwrap_or(0))
}

fn moved(place: Place, by: u64) -> Place {
    Place::new(place.buffer, place.offset + by)
}

/// What one rank has for another: the bytes of the message, and where they are on either side.
fn exchanged(weave: &Weave, from: u32, to: u32) -> (Range<u64>, Place, Place) {
    let message = weave.message();
    let (input, output) = (Buffer::In, Buffer::Out);
    let at = Place::new;
    match weave.op() {
        Op::AllToAll => {
            let block = message.block(to);
            let target = at(output, message.block(from).start);
            (block.clone(), at(input, block.start), target)
        }
        Op::Scatter { .. } => {
            let block = message.block(to);
            (block.clone(), at(input, block.start), at(output, 0))
        }
        Op::Gather { .. } => {
            let block = message.block(from);
            (block.clone(), at(input, 0), at(output, block.start))
        }
        _ => (message.whole(), at(input, 0), at(output, 0)),
    }
}

/// What a rank has for itself.
fn own(weave: &mut Weave, rank: u32) {
    let (range, a, to) = exchanged(weave, rank, rank);
    weave.step(Part {
        rank,
        peer: rank,
        kind: Kind::Copy,
        path: &[],
        extents: &[Extent {
            a,
            b: None,
            to,
            bytes: range.end - range.start,
        }],
        after: &[],
        priority: 0,
        turn: Turn::Path(0),
    });
}

/// A part of what goes over one route.
#[derive(Clone, Copy)]
struct Chunk {
    source: Place,
    target: Place,
    bytes: u64,
    /// Which of how many it is.
    part: (u64, u64),
    lane: u32,
}

type Hop<'r> = (u32, u32, &'r [EdgeId]);

fn send_along(weave: &mut Weave, hops: &[Hop<'_>], chunk: Chunk) {
    let bytes = chunk.bytes;
    if bytes == 0 {
        return;
    }
    let mut a = chunk.source;
    let mut arrived: Option<StepId> = None;
    for (place, &(rank, peer, path)) in hops.iter().enumerate() {
        let left = (hops.len() - place) as u32;
        let to = match left {
            1 => chunk.target,
            _ => weave.scratch(peer, bytes),
        };
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
            priority: hops_first(chunk.part, left),
            turn: Turn::Path(chunk.lane),
        }));
        a = to;
    }
}

/// From rank to rank along a route, and over which edges.
fn hops<'r>(network: &Network, route: &'r Route) -> Vec<Hop<'r>> {
    let mut hops = Vec::new();
    let mut start = 0;
    for (place, &edge) in route.edges.iter().enumerate() {
        if let Some(peer) = network.rank_of(network.edge(edge).to) {
            let rank = network.edge(route.edges[start]).from;
            hops.push((rank, peer, &route.edges[start..=place]));
            start = place + 1;
        }
    }
    hops
}
