//! From flows to routes of pairs, with whole weights.

use std::collections::BinaryHeap;

use unisono_network::{EdgeId, Network, Rational, VertexId, to_f64};

use super::flows::Flows;
use super::{Route, Routing};
use crate::plain::Plain;
use crate::whole::{fastest, shares};

/// Sums of weights of a pair that are tried, and the last one if none is good.
const WEIGHTS: [u64; 18] = [
    1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 48, 96, 240, 1000, 5000, 65536,
];

/// Rounding may cost this part.
const ROUNDING: f64 = 0.002;

/// A route that carries less than this part of its pair's share is left out.
const LEAST: f64 = 0.002;

/// So little flow is none: what subtractions leave.
const NOTHING: f64 = 1e-9;

struct Piece {
    from: u32,
    to: u32,
    edges: Vec<EdgeId>,
    part: f64,
}

pub(super) fn routes(network: &Network, plain: &Plain, flows: &Flows) -> Routing {
    let mut pieces = Vec::new();
    for (source, flow) in (0..).zip(&flows.by_source) {
        decompose(&plain.network, source, flow.clone(), &mut pieces);
    }
    for piece in &mut pieces {
        piece.edges = plain.path(&piece.edges);
    }
    let fluid = {
        let mut loads = vec![0.0; network.edges().len()];
        for piece in &pieces {
            for &edge in &piece.edges {
                loads[edge as usize] += piece.part;
            }
        }
        rate(network, &loads)
    };
    let mut weights = Vec::new();
    let mut unit = Rational::from(1);
    let mut weight = 1;
    for try_ in WEIGHTS {
        weights = rounded(&pieces, try_);
        let mut loads = vec![0; network.edges().len()];
        for (piece, weight) in pieces.iter().zip(&weights) {
            for &edge in &piece.edges {
                loads[edge as usize] += weight;
            }
        }
        unit = fastest(network, &loads);
        weight = try_;
        if to_f64(unit * i128::from(try_)) >= fluid * (1.0 - ROUNDING) {
            break;
        }
    }
    let routes = pieces
        .into_iter()
        .zip(weights)
        .filter(|(_, weight)| *weight > 0);
    Routing {
        routes: routes
            .map(|(piece, weight)| route(network, piece, weight))
            .collect(),
        weight,
        unit,
        bound: flows.bound,
    }
}

/// What each pair can exchange with these loads.
fn rate(network: &Network, loads: &[f64]) -> f64 {
    let edges = network.edges().iter().zip(loads);
    let edges = edges.map(|(edge, load)| edge.bytes_per_second as f64 / load);
    let groups = network.groups().iter().map(|group| {
        let load: f64 = group.edges.iter().map(|&edge| loads[edge as usize]).sum();
        group.bytes_per_second as f64 / load
    });
    edges.chain(groups).fold(f64::INFINITY, f64::min)
}

fn route(network: &Network, piece: Piece, weight: u64) -> Route {
    let stops = piece
        .edges
        .iter()
        .filter_map(|&edge| network.rank_of(network.edge(edge).to));
    Route {
        ranks: std::iter::once(piece.from).chain(stops).collect(),
        edges: piece.edges,
        weight,
    }
}

/// Cuts one source's flow into ways to each destination.
fn decompose(network: &Network, source: VertexId, mut flow: Vec<f64>, pieces: &mut Vec<Piece>) {
    for to in (0..network.ranks()).filter(|&to| to != source) {
        let mut found: Vec<Piece> = Vec::new();
        let mut left = 1.0;
        while left > LEAST {
            let Some(edges) = widest(network, source, to, &flow) else {
                break;
            };
            let narrowest = edges
                .iter()
                .map(|&edge| flow[edge as usize])
                .fold(left, f64::min);
            for &edge in &edges {
                flow[edge as usize] -= narrowest;
            }
            left -= narrowest;
            found.push(Piece {
                from: source,
                to,
                edges,
                part: narrowest,
            });
        }
        // What was left out goes the ways that there are.
        let sum: f64 = found.iter().map(|piece| piece.part).sum();
        for piece in &mut found {
            piece.part /= sum;
        }
        found.sort_by(|one, other| other.part.total_cmp(&one.part));
        pieces.extend(found);
    }
}

/// The way on which most of the flow goes.
fn widest(network: &Network, source: VertexId, to: VertexId, flow: &[f64]) -> Option<Vec<EdgeId>> {
    let n = network.vertices().len();
    let mut width = vec![0.0_f64; n];
    let mut arrival: Vec<Option<EdgeId>> = vec![None; n];
    let mut done = vec![false; n];
    width[source as usize] = f64::INFINITY;
    // Widths are not negative, so that their bits are in their order.
    let mut open = BinaryHeap::from([(f64::INFINITY.to_bits(), source)]);
    loop {
        let (_, at) = open.pop()?;
        if at == to {
            break;
        }
        if std::mem::replace(&mut done[at as usize], true) {
            continue;
        }
        for &id in network.out_edges(at) {
            let next = network.edge(id).to;
            let through = width[at as usize].min(flow[id as usize]);
            if !done[next as usize] && through > width[next as usize].max(NOTHING) {
                width[next as usize] = through;
                arrival[next as usize] = Some(id);
                open.push((through.to_bits(), next));
            }
        }
    }
    let mut edges = Vec::new();
    let mut at = to;
    while at != source {
        let edge = arrival[at as usize]?;
        edges.push(edge);
        at = network.edge(edge).from;
    }
    edges.reverse();
    Some(edges)
}

/// Whole weights that add up to `sum` for each pair.
fn rounded(pieces: &[Piece], sum: u64) -> Vec<u64> {
    let pairs = pieces.chunk_by(|one, other| (one.from, one.to) == (other.from, other.to));
    pairs
        .flat_map(|pair| {
            let parts: Vec<f64> = pair.iter().map(|piece| piece.part).collect();
            shares(&parts, sum)
        })
        .collect()
}
