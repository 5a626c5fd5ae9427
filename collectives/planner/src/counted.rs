//! What plans of many ranks take, counted instead of simulated.
//!
//! All steps of a thousand ranks are millions, and their simulation takes minutes. But what decides
//! is seen without it: a plan is a chain of *stages*, each as long as its longest latency and its
//! fullest link; and however the stages overlap when the message is cut, no link and no lane
//! between two ranks does two things at once. That gives a time for every number of chunks from
//! one pass over the programs.
//!
//! Messages take the shortest path on which most room is left; where everybody sends to everybody,
//! they spread over all shortest paths by their widths. Where stages are even, the result is within a
//! few per cent of the simulation; it is too long where they overlap better than one after the
//! other.

mod exchange;
mod packed;
mod race;
mod rounds;
mod ways;

use unisono_network::Network;
use unisono_plan::{Op, Program, Template};

use crate::PlanError;
use crate::programs::ProgramError;
use crate::timing::Speeds;

use exchange::Exchange;
pub use packed::{pairs, routes, trees};
use race::Race;
use rounds::{Message, Rounds};
use ways::Ways;

/// Up to so many stages each has a load of its own for each link. Chains of more are pipelines in
/// which a message has its links to itself.
const MOST_STAGES: usize = 64;

/// One stage of a plan that isn't cut.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stage {
    /// Its longest latency, in picoseconds.
    pub latency_ps: f64,
    /// How long its fullest link is used, in picoseconds.
    pub busy_ps: f64,
}

/// What a plan takes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counted {
    /// What happens one after the other.
    pub stages: Vec<Stage>,
    /// How long the fullest link is used in all, in picoseconds.
    pub fullest_ps: f64,
    /// What the messages between two ranks take one after the other, at most.
    pub lane: Stage,
    /// What copying and reducing within a rank takes at most, in picoseconds.
    pub local_ps: f64,
    /// Of the chunks so many go side by side, each on a tree or route of its own; less than 1 counts as 1.
    pub side_by_side: f64,
    /// The bytes that pass each edge.
    pub edge_bytes: Vec<u64>,
    /// About how many steps all ranks have when nothing is cut.
    pub steps: u64,
    /// Whether counting ended early, since others are far ahead: all figures are the least they could be.
    pub at_least: bool,
}

impl Counted {
    /// The time in picoseconds, when the message goes in so many chunks.
    #[must_use]
    pub fn ps(&self, chunks: u64) -> f64 {
        let chunks = (chunks as f64 / self.side_by_side.max(1.0)).max(1.0);
        let through: f64 = (self.stages.iter())
            .map(|stage| stage.latency_ps + stage.busy_ps / chunks)
            .sum();
        let lane = self.lane.latency_ps + self.lane.busy_ps / chunks;
        let each = lane.max(self.fullest_ps / chunks);
        through + (chunks - 1.0) * each + self.local_ps
    }

    /// The number of chunks with the least time, of powers of two up to `most`.
    #[must_use]
    pub fn best_chunks(&self, most: u64) -> u64 {
        let powers = (0..63)
            .map(|power| 1u64 << power)
            .take_while(|&chunks| chunks <= most.max(1));
        let best = powers.min_by(|&a, &b| self.ps(a).total_cmp(&self.ps(b)));
        best.unwrap_or(1)
    }

    fn add(&mut self, stage: usize, latency_ps: f64, busy_ps: f64) {
        if self.stages.len() <= stage {
            self.stages.resize(stage + 1, Stage::default());
        }
        let stage = &mut self.stages[stage];
        stage.latency_ps = stage.latency_ps.max(latency_ps);
        stage.busy_ps = stage.busy_ps.max(busy_ps);
    }
}

/// Counts what templates take, all in one walk over the network. None for one whose programs are
/// too long even for that.
///
/// # Errors
/// If a template doesn't have the operation, or some rank cannot reach another.
pub fn templates(
    network: &Network,
    op: Op,
    bytes: u64,
    speeds: Speeds,
    templates: &[Template],
) -> Vec<Result<Option<Counted>, PlanError>> {
    let walked: Vec<Result<Option<Rounds>, PlanError>> = (templates.iter())
        .map(|template| rounds::of(template, op, network.ranks(), bytes))
        .collect();
    let mut sums: Vec<Sum> = walked
        .iter()
        .map(|rounds| match rounds {
            Ok(Some(rounds)) => Sum::new(network, rounds),
            _ => Sum::default(),
        })
        .collect();
    let mut cut_off = None;
    let mut ways = Ways::new(network);
    let exchanges = |rounds: &Rounds| !rounds.exchanges.is_empty();
    if walked.iter().flatten().flatten().any(exchanges) {
        match Exchange::new(network, &mut ways) {
            Ok(exchange) => {
                for (rounds, sum) in walked.iter().zip(&mut sums) {
                    if let Ok(Some(rounds)) = rounds {
                        sum.add_exchanges(&exchange, rounds);
                    }
                }
            }
            Err(error) => {
                let error = PlanError::from(error);
                return templates.iter().map(|_| Err(error.clone())).collect();
            }
        }
    }
    let mut race = Race::new(network, &walked);
    while let Some(from) = race.next(network, &sums) {
        ways.start_at(from);
        for &runner in race.running() {
            if let Ok(Some(rounds)) = &walked[runner] {
                cut_off = cut_off.or(sums[runner].add_rank(&mut ways, rounds, from).err());
            }
        }
        if let Some(to) = cut_off {
            let error = PlanError::from(ProgramError::NoPath { from, to });
            return templates.iter().map(|_| Err(error.clone())).collect();
        }
    }
    let finish = |(at, (rounds, sum)): (usize, (Result<Option<Rounds>, PlanError>, Sum))| {
        let finish = |rounds| Counted {
            at_least: race.has_left(at),
            ..sum.finish(network, &rounds, speeds)
        };
        rounds.map(|rounds| rounds.map(finish))
    };
    walked
        .into_iter()
        .zip(sums)
        .enumerate()
        .map(finish)
        .collect()
}

/// What is summed up over all ranks.
#[derive(Default)]
struct Sum {
    counted: Counted,
    /// Bytes over each edge.
    total: Vec<f64>,
    /// The same for each stage, stage by stage, if there are not too many.
    staged: Vec<f64>,
    stages: usize,
}

impl Sum {
    fn new(network: &Network, rounds: &Rounds) -> Self {
        let edges = network.edges().len();
        let stages = match rounds.stages {
            few if few <= MOST_STAGES => few,
            _ => 0,
        };
        Self {
            counted: Counted::default(),
            total: vec![0.0; edges],
            staged: vec![0.0; edges * stages],
            stages,
        }
    }

    /// Adds what everybody sends to everybody.
    fn add_exchanges(&mut self, exchange: &Exchange, rounds: &Rounds) {
        let edges = self.total.len();
        for &(stage, bytes) in &rounds.exchanges {
            for (edge, &load) in exchange.loads.iter().enumerate() {
                self.total[edge] += load * bytes;
                if let Some(sum) = self.staged.get_mut(stage * edges + edge) {
                    *sum += load * bytes;
                }
            }
            let busy_ps = bytes / exchange.facts.width * 1e12;
            self.counted.add(stage, exchange.facts.latency_ps, busy_ps);
            self.lane(exchange.facts.latency_ps, busy_ps);
        }
    }

    /// Adds what a rank sends. The error is a rank that it can't reach.
    fn add_rank(&mut self, ways: &mut Ways<'_>, rounds: &Rounds, from: u32) -> Result<(), u32> {
        let edges = self.total.len();
        // As in a schedule, all messages between two ranks take the same path.
        for of_pair in rounds.of_rank(from).chunk_by(|a, b| a.to == b.to) {
            let to = of_pair[0].to;
            let bytes = of_pair.iter().map(|m| m.bytes * m.times).sum();
            let (facts, path) = ways.send(to, bytes, &mut self.total).ok_or(to)?;
            let mut lane = Stage::default();
            for &Message {
                stage,
                bytes,
                times,
                ..
            } in of_pair
            {
                for &edge in path {
                    let load = self.staged.get_mut(stage as usize * edges + edge as usize);
                    if let Some(load) = load {
                        *load += bytes * times;
                    }
                }
                let latency_ps = facts.latency_ps * times;
                let busy_ps = bytes * times / facts.width * 1e12;
                self.counted.add(stage as usize, latency_ps, busy_ps);
                lane.latency_ps += latency_ps;
                lane.busy_ps += busy_ps;
            }
            self.lane(lane.latency_ps, lane.busy_ps);
        }
        Ok(())
    }

    fn lane(&mut self, latency_ps: f64, busy_ps: f64) {
        let lane = &mut self.counted.lane;
        lane.latency_ps = lane.latency_ps.max(latency_ps);
        lane.busy_ps = lane.busy_ps.max(busy_ps);
    }

    /// What is counted so far, without the bytes of each edge.
    fn so_far(&self, network: &Network) -> Counted {
        let mut counted = self.counted.clone();
        for stage in 0..self.stages {
            let edges = self.total.len();
            let loads = &self.staged[stage * edges..(stage + 1) * edges];
            counted.add(stage, 0.0, fullest(network, loads));
        }
        counted.fullest_ps = self.fullest_ps(network);
        counted
    }

    /// How long the fullest edge is used so far, in picoseconds.
    fn fullest_ps(&self, network: &Network) -> f64 {
        fullest(network, &self.total)
    }

    fn finish(self, network: &Network, rounds: &Rounds, speeds: Speeds) -> Counted {
        let mut counted = self.so_far(network);
        counted.edge_bytes = self
            .total
            .iter()
            .map(|&bytes| bytes.round() as u64)
            .collect();
        let time = |bytes: f64, speed: Option<u64>| match speed {
            Some(speed) => bytes / speed as f64 * 1e12,
            None => 0.0,
        };
        counted.local_ps = time(rounds.reduced, speeds.reduce) + time(rounds.copied, speeds.copy);
        counted.steps = rounds.steps;
        counted
    }
}

/// How long the fullest edge, or group of edges, takes for its bytes, in picoseconds.
fn fullest(network: &Network, bytes: &[f64]) -> f64 {
    let edges = network.edges().iter().zip(bytes);
    let edges = edges.map(|(edge, bytes)| bytes / edge.bytes_per_second as f64);
    let groups = network.groups().iter().map(|group| {
        let sum: f64 = (group.edges.iter()).map(|&edge| bytes[edge as usize]).sum();
        sum / group.bytes_per_second as f64
    });
    edges.chain(groups).fold(0.0, f64::max) * 1e12
}

/// All steps of a program, counting iterations and both ends of a message once.
fn steps(program: &Program) -> u64 {
    program.len() as u64
}

#[cfg(test)]
mod tests;
