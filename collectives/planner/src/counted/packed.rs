//! What packings of trees and routes take.

use unisono_network::{EdgeId, Network};
use unisono_pack::{Packing, PairPacking, Route, Tree};
use unisono_plan::Op;

use super::{Counted, Stage, fullest};
use crate::schedule::Message;
use crate::trees::{Channels, Lanes};

/// What a packing of trees takes.
#[must_use]
pub fn trees(network: &Network, op: Op, packing: &Packing, bytes: u64, lanes: Lanes) -> Counted {
    let message = Message::new(op, network.ranks(), bytes);
    let root_weights = packing.root_weights();
    let tree_weights: Vec<u64> = packing.trees.iter().map(|tree| tree.weight).collect();
    let mut channels = Channels::new(&tree_weights, lanes);
    let mut sum = Sum::new(network);
    for tree in &packing.trees {
        let block = match op.has_block_per_rank() {
            true => message.block(tree.root),
            false => message.whole(),
        };
        let weight = root_weights[tree.root as usize].max(1) as f64;
        let part = tree.weight as f64 / weight;
        sum.part(part);
        let share = (block.end - block.start) as f64 * part;
        let fill = sum.tree(tree, share, channels.next(tree.weight).count);
        sum.fill(fill);
    }
    sum.finish()
}

/// What a packing of pairs of trees takes.
#[must_use]
pub fn pairs(network: &Network, packing: &PairPacking, bytes: u64, lanes: Lanes) -> Counted {
    let total = packing.total().max(1) as f64;
    let weights: Vec<u64> = packing
        .pairs
        .iter()
        .map(|pair| pair.reduce.weight)
        .collect();
    let mut channels = Channels::new(&weights, lanes);
    let mut sum = Sum::new(network);
    for pair in &packing.pairs {
        let part = pair.reduce.weight as f64 / total;
        sum.part(part);
        let share = bytes as f64 * part;
        let lanes = channels.next(pair.reduce.weight).count;
        let (up, down) = (
            sum.tree(&pair.reduce, share, lanes),
            sum.tree(&pair.distribute, share, lanes),
        );
        sum.fill(Stage {
            latency_ps: up.latency_ps + down.latency_ps,
            busy_ps: up.busy_ps + down.busy_ps,
        });
    }
    sum.finish()
}

/// What routes take, those of one pair of ranks one after the other.
#[must_use]
pub fn routes(network: &Network, op: Op, routes: &[Route], bytes: u64, lanes: Lanes) -> Counted {
    let message = Message::new(op, network.ranks(), bytes);
    let weights: Vec<u64> = routes.iter().map(|route| route.weight).collect();
    let mut channels = Channels::new(&weights, lanes);
    let mut sum = Sum::new(network);
    let ends = |route: &Route| (route.ranks.first().copied(), route.ranks.last().copied());
    for of_pair in routes.chunk_by(|a, b| ends(a) == ends(b)) {
        let weights: u64 = of_pair.iter().map(|route| route.weight).sum();
        let block = match op {
            Op::Gather { .. } => message.block(of_pair[0].ranks[0]),
            _ if op.has_block_per_rank() => {
                message.block(of_pair[0].ranks.last().copied().unwrap_or(0))
            }
            _ => message.whole(),
        };
        for route in of_pair {
            let part = route.weight as f64 / weights.max(1) as f64;
            sum.part(part);
            let share = (block.end - block.start) as f64 * part;
            let hop = sum.hop(&route.edges, share, channels.next(route.weight).count);
            let hops = match lanes {
                Lanes::Through { .. } => 1,
                _ => route.ranks.len().saturating_sub(1),
            };
            sum.fill(Stage {
                latency_ps: hop.latency_ps,
                // What isn't stored on its way is on all links at once, and counts in the fullest one's time.
                busy_ps: hop.busy_ps * hops.saturating_sub(1) as f64,
            });
            sum.steps += hops as u64;
        }
    }
    let mut counted = sum.finish();
    if let Op::Gather { .. } | Op::Scatter { .. } = op {
        // What has the longest way goes first, and the rest while it is on its way.
        for stage in &mut counted.stages {
            let way = stage.busy_ps - counted.fullest_ps;
            stage.busy_ps = way.max(counted.fullest_ps - stage.latency_ps);
        }
    }
    counted
}

struct Sum<'n> {
    network: &'n Network,
    loads: Vec<f64>,
    /// What goes over a path for one tree or route: each has lanes of its own.
    lane: Stage,
    fill: Stage,
    /// The largest part of what one rank has for others that goes one way.
    largest: f64,
    steps: u64,
}

impl<'n> Sum<'n> {
    fn new(network: &'n Network) -> Self {
        Self {
            network,
            loads: vec![0.0; network.edges().len()],
            lane: Stage::default(),
            fill: Stage::default(),
            largest: 0.0,
            steps: 0,
        }
    }

    fn part(&mut self, part: f64) {
        self.largest = self.largest.max(part);
    }

    /// Sends a share over a path, of which as many chunks are on their way as it has lanes.
    fn hop(&mut self, path: &[EdgeId], share: f64, lanes: u32) -> Stage {
        for &edge in path {
            self.loads[edge as usize] += share;
        }
        let facts = self.network.path_facts(path);
        let hop = Stage {
            latency_ps: facts.latency_ns as f64 * 1e3,
            busy_ps: share / facts.bytes_per_second as f64 * 1e12,
        };
        let latency_ps = hop.latency_ps / f64::from(lanes.max(1));
        self.lane.latency_ps = self.lane.latency_ps.max(latency_ps);
        self.lane.busy_ps = self.lane.busy_ps.max(hop.busy_ps);
        hop
    }

    /// Sends a share over all edges of a tree, and says how long the longest way to the root is.
    fn tree(&mut self, tree: &Tree, share: f64, lanes: u32) -> Stage {
        let count = tree.parents.len();
        let mut far: Vec<Option<Stage>> = vec![None; count];
        far[tree.root as usize] = Some(Stage::default());
        let mut longest = Stage::default();
        let mut chain = Vec::new();
        for rank in 0..count {
            let mut at = rank;
            while far[at].is_none() && chain.len() <= count {
                chain.push(at);
                at = tree.parents[at] as usize;
            }
            while let Some(next) = chain.pop() {
                let hop = self.hop(&tree.paths[next], share, lanes);
                self.steps += 2;
                let parent = far[tree.parents[next] as usize].unwrap_or_default();
                let here = Stage {
                    latency_ps: parent.latency_ps + hop.latency_ps,
                    busy_ps: parent.busy_ps + hop.busy_ps,
                };
                longest.latency_ps = longest.latency_ps.max(here.latency_ps);
                longest.busy_ps = longest.busy_ps.max(here.busy_ps);
                far[next] = Some(here);
            }
        }
        longest
    }

    fn fill(&mut self, fill: Stage) {
        self.fill.latency_ps = self.fill.latency_ps.max(fill.latency_ps);
        self.fill.busy_ps = self.fill.busy_ps.max(fill.busy_ps);
    }

    fn finish(self) -> Counted {
        let fullest_ps = fullest(self.network, &self.loads);
        Counted {
            stages: vec![Stage {
                latency_ps: self.fill.latency_ps,
                busy_ps: self.fill.busy_ps + fullest_ps,
            }],
            fullest_ps,
            lane: self.lane,
            local_ps: 0.0,
            side_by_side: 1.0 / self.largest.max(f64::MIN_POSITIVE),
            edge_bytes: self
                .loads
                .iter()
                .map(|&bytes| bytes.round() as u64)
                .collect(),
            at_least: false,
            steps: self.steps,
        }
    }
}
