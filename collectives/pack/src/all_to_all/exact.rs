//! The end of the way to the bound, by a linear program.
//!
//! Improving flows step by step gets slow near the best. On small networks a program finishes: its
//! rows are the edges and, for each source, that its columns add up to the common rate; a column is
//! one way for a source to serve all, and the best one for given prices of edges goes along
//! shortest paths. It begins from the flows that are there, which are a column of their own.

use unisono_network::Network;

use super::flows::{Flows, Search};
use crate::lp::{Column, Program};

/// Flows within this part of the bound are good enough.
const CLOSE: f64 = 0.001;

/// The most rows, rounds of new columns, and steps of the method a round.
const MOST_ROWS: usize = 300;
const ROUNDS: usize = 100;
const STEPS: usize = 2000;

/// Improves flows, if the network is small enough.
pub(super) fn improve(network: &Network, capacity: &[f64], flows: &mut Flows) {
    let edges = capacity.len();
    let ranks = network.ranks();
    let rows = edges + ranks as usize;
    if rows > MOST_ROWS {
        return;
    }
    // In units in which the rate is 1 now. A little slack for the sources, so that the first columns
    // find room.
    let rate = flows.rate(capacity);
    let slack = std::iter::repeat_n(1e-5, ranks as usize);
    let limits: Vec<f64> = capacity.iter().map(|c| c / rate).chain(slack).collect();
    let mut program = Program::new(&limits);
    let all = program.add(Column {
        value: 1.0,
        uses: flows.loads().into_iter().enumerate().collect(),
    });
    let common = program.add(Column {
        value: 1.0,
        uses: (edges..rows).map(|row| (row, 1.0)).collect(),
    });
    let mut search = Search::new(network);
    let mut served: Vec<(usize, u32, Vec<f64>)> = Vec::new();
    for _ in 0..ROUNDS {
        for _ in 0..STEPS {
            match program.known(&program.prices()) {
                Some(column) if program.enter(column) => {}
                _ => break,
            }
        }
        let prices: Vec<f64> = program
            .prices()
            .iter()
            .map(|price| price.max(0.0))
            .collect();
        // Among ways that cost nothing the short ones, and those that are wide.
        let hops: Vec<f64> = capacity.iter().map(|c| 1e-9 * rate / c).collect();
        let lengths: Vec<f64> = prices
            .iter()
            .zip(&hops)
            .map(|(price, hop)| price + hop)
            .collect();
        flows.bound = flows.bound.min(search.bound(&lengths, capacity));
        for source in 0..ranks {
            search.run(source, &lengths);
            let cost: f64 = search.distance[..ranks as usize].iter().sum();
            if cost < prices[edges + source as usize] - 1e-7 {
                let mut flow = vec![0.0; edges];
                search.split(&lengths, capacity, &mut flow);
                let flowing = flow
                    .iter()
                    .copied()
                    .enumerate()
                    .filter(|(_, flow)| *flow > 0.0);
                let uses = flowing.chain([(edges + source as usize, -1.0)]).collect();
                let column = program.add(Column { value: 0.0, uses });
                served.push((column, source, flow));
            }
        }
        if program.value() * rate >= flows.bound * (1.0 - CLOSE) {
            break;
        }
    }
    let mut amounts = vec![0.0; served.len()];
    let (mut old, mut new) = (0.0, 0.0);
    for (column, amount) in program.solution() {
        match column {
            column if column == all => old = amount,
            column if column == common => new = amount,
            column => {
                let place = served.iter().position(|(one, ..)| *one == column);
                amounts[place.unwrap_or(0)] = amount;
            }
        }
    }
    if new <= 0.0 {
        return;
    }
    let mut sums = vec![0.0; ranks as usize];
    for ((_, source, _), amount) in served.iter().zip(&amounts) {
        sums[*source as usize] += amount;
    }
    for flow in flows.by_source.iter_mut().flatten() {
        *flow *= old / (old + new);
    }
    for ((_, source, flow), amount) in served.iter().zip(&amounts) {
        let part = amount / sums[*source as usize] * new / (old + new);
        if part > 0.0 {
            let into = flows.by_source[*source as usize].iter_mut();
            for (into, flow) in into.zip(flow) {
                *into += part * flow;
            }
        }
    }
}
