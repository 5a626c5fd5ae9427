//! Flows from every rank to every other that load all links as evenly as can be.

use std::collections::BinaryHeap;

use unisono_network::{Network, VertexId};

use super::exact;
use crate::error::PackError;
use crate::nearest::Entry;

/// For each source and edge, how much of the source's flow is on it, when each destination gets 1.
pub(super) struct Flows {
    pub(super) by_source: Vec<Vec<f64>>,
    /// What each destination can get at most from each source at once, in bytes a second.
    pub(super) bound: f64,
}

impl Flows {
    /// What all sources together put on each edge.
    pub(super) fn loads(&self) -> Vec<f64> {
        let mut loads = vec![0.0; self.by_source.first().map_or(0, Vec::len)];
        for flow in &self.by_source {
            for (load, flow) in loads.iter_mut().zip(flow) {
                *load += flow;
            }
        }
        loads
    }

    /// What each destination gets from each source, in bytes a second.
    pub(super) fn rate(&self, capacity: &[f64]) -> f64 {
        1.0 / worst(&self.loads(), capacity)
    }
}

/// Flows within this part of the bound are good enough.
const CLOSE: f64 = 0.004;

/// How often all sources are looked at, at most.
const ROUNDS: usize = 100;

/// When a round gains less than this part, loads are told apart more sharply, up to a point.
const SLOW: f64 = 0.002;
const SHARPEST: f64 = 4000.0;

pub(super) fn balanced(network: &Network) -> Result<Flows, PackError> {
    let capacity = network
        .edges()
        .iter()
        .map(|edge| edge.bytes_per_second as f64);
    let capacity: Vec<f64> = capacity.collect();
    let ranks = network.ranks();
    let mut search = Search::new(network);
    let lengths: Vec<f64> = capacity.iter().map(|c| 1.0 / c).collect();
    let mut by_source = Vec::new();
    for source in 0..ranks {
        search.run(source, &lengths);
        if let Some(to) = (0..ranks).find(|&to| search.distance[to as usize].is_infinite()) {
            return Err(PackError::unreachable(source, to));
        }
        let mut flow = vec![0.0; capacity.len()];
        search.split(&lengths, &capacity, &mut flow);
        by_source.push(flow);
    }
    let mut flows = Flows {
        by_source,
        bound: f64::INFINITY,
    };
    improve(&mut search, &capacity, &mut flows);
    if flows.rate(&capacity) < flows.bound * (1.0 - CLOSE) {
        exact::improve(network, &capacity, &mut flows);
    }
    Ok(flows)
}

/// Moves each source's flow toward its shortest ways, again and again, with lengths that tell
/// loads apart ever more sharply.
fn improve(search: &mut Search, capacity: &[f64], flows: &mut Flows) {
    let mut lengths = vec![0.0; capacity.len()];
    let mut direction = vec![0.0; capacity.len()];
    let mut sharpness = 16.0;
    let mut last = f64::INFINITY;
    for _ in 0..ROUNDS {
        let mut loads = flows.loads();
        let worst = worst(&loads, capacity);
        let sharp = sharpness / worst;
        measure(&loads, capacity, sharp, &mut lengths);
        flows.bound = flows.bound.min(search.bound(&lengths, capacity));
        if 1.0 / worst >= flows.bound * (1.0 - CLOSE) {
            break;
        }
        if worst > last * (1.0 - SLOW) && sharpness < SHARPEST {
            sharpness *= 1.5;
        }
        last = worst;
        for (source, flow) in (0..).zip(&mut flows.by_source) {
            measure(&loads, capacity, sharp, &mut lengths);
            search.run(source, &lengths);
            direction.fill(0.0);
            search.split(&lengths, capacity, &mut direction);
            let step = step(&loads, flow, &direction, capacity, sharp);
            for (edge, flow) in flow.iter_mut().enumerate() {
                let change = step * (direction[edge] - *flow);
                *flow += change;
                loads[edge] += change;
            }
        }
    }
}

fn worst(loads: &[f64], capacity: &[f64]) -> f64 {
    let use_ = loads
        .iter()
        .zip(capacity)
        .map(|(load, capacity)| load / capacity);
    use_.fold(0.0, f64::max)
}

/// Lengths that grow with load.
fn measure(loads: &[f64], capacity: &[f64], sharpness: f64, lengths: &mut [f64]) {
    let top = worst(loads, capacity);
    for ((length, load), capacity) in lengths.iter_mut().zip(loads).zip(capacity) {
        *length = ((sharpness * (load / capacity - top)).exp() + 1e-12) / capacity;
    }
}

/// How far to go from one flow to another so that the smooth maximum of loads is least.
fn step(loads: &[f64], flow: &[f64], to: &[f64], capacity: &[f64], sharpness: f64) -> f64 {
    let changed: Vec<(f64, f64)> = (0..loads.len())
        .filter(|&edge| flow[edge] != to[edge])
        .map(|edge| {
            (
                loads[edge] / capacity[edge],
                (to[edge] - flow[edge]) / capacity[edge],
            )
        })
        .collect();
    let top = changed.iter().map(|one| one.0).fold(0.0, f64::max);
    // The slope of the smooth maximum grows: bisect for where it is zero.
    let slope = |step: f64| -> f64 {
        let terms = changed.iter();
        terms
            .map(|&(now, change)| change * (sharpness * (now + step * change - top)).exp())
            .sum()
    };
    if slope(1.0) <= 0.0 {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..12 {
        let middle = (low + high) / 2.0;
        if slope(middle) > 0.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    low
}

/// Dijkstra's search from one rank, and flow along all shortest ways.
pub(super) struct Search<'a> {
    network: &'a Network,
    pub(super) distance: Vec<f64>,
    done: Vec<VertexId>,
    heap: BinaryHeap<Entry>,
}

impl<'a> Search<'a> {
    pub(super) fn new(network: &'a Network) -> Self {
        Self {
            network,
            distance: vec![f64::INFINITY; network.vertices().len()],
            done: Vec::new(),
            heap: BinaryHeap::new(),
        }
    }

    pub(super) fn run(&mut self, source: VertexId, lengths: &[f64]) {
        self.distance.fill(f64::INFINITY);
        self.done.clear();
        self.distance[source as usize] = 0.0;
        self.heap.push(Entry(0.0, source));
        while let Some(Entry(distance, at)) = self.heap.pop() {
            if distance > self.distance[at as usize] {
                continue;
            }
            self.done.push(at);
            for &id in self.network.out_edges(at) {
                let to = self.network.edge(id).to as usize;
                let next = distance + lengths[id as usize];
                if next < self.distance[to] {
                    self.distance[to] = next;
                    self.heap.push(Entry(next, to as VertexId));
                }
            }
        }
    }

    /// What every rank can send to every other at most: all that edges carry, weighed by length,
    /// over the sum of distances.
    pub(super) fn bound(&mut self, lengths: &[f64], capacity: &[f64]) -> f64 {
        let weighed: f64 = lengths
            .iter()
            .zip(capacity)
            .map(|(length, c)| length * c)
            .sum();
        let ranks = self.network.ranks();
        let mut needed = 0.0;
        for source in 0..ranks {
            self.run(source, lengths);
            needed += self.distance[..ranks as usize].iter().sum::<f64>();
        }
        weighed / needed
    }

    /// Sends 1 to every rank, split over all entries that are as short as any, by capacity.
    pub(super) fn split(&self, lengths: &[f64], capacity: &[f64], flow: &mut [f64]) {
        let mut through = vec![0.0; self.distance.len()];
        let ranks = self.network.ranks() as usize;
        let farthest = self.done.iter().map(|&at| self.distance[at as usize]);
        let same = farthest.fold(0.0, f64::max) * 1e-7;
        for &at in self.done.iter().skip(1).rev() {
            let at_distance = self.distance[at as usize];
            let amount = through[at as usize] + f64::from(u8::from((at as usize) < ranks));
            if amount == 0.0 {
                continue;
            }
            let shortest = |id: u32| {
                let from = self.network.edge(id).from as usize;
                self.distance[from] < at_distance
                    && self.distance[from] + lengths[id as usize] <= at_distance + same
            };
            let entries = || {
                self.network
                    .in_edges(at)
                    .iter()
                    .copied()
                    .filter(|&id| shortest(id))
            };
            let all: f64 = entries().map(|id| capacity[id as usize]).sum();
            for id in entries() {
                let part = amount * capacity[id as usize] / all;
                flow[id as usize] += part;
                through[self.network.edge(id).from as usize] += part;
            }
        }
    }
}
