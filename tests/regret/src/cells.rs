//! One graph, one operation, one size: what was chosen and what was best.

use anyhow::Result;
use unisono_plan::Op;
use unisono_planner::{Request, plan, sweep};
use unisono_regret::OPS;

use crate::graphs::Graph;
use crate::rules;

/// The most steps of what is simulated in the sweep.
const MOST_STEPS: u64 = 60_000;
/// The same for more ranks than are planned by simulation.
const MOST_STEPS_OF_MANY: u64 = 250_000;
/// The most ranks of which every candidate is simulated.
const FEW: u32 = 128;

/// What is compared.
pub struct Cell {
    pub graph: usize,
    pub op: Op,
    pub bytes: u64,
}

/// What came out.
#[derive(Debug, PartialEq)]
pub struct Compared {
    pub family: &'static str,
    pub graph: String,
    pub ranks: u32,
    pub op: Op,
    pub bytes: u64,
    /// What was chosen, and what is best.
    pub chosen: String,
    pub best: String,
    /// Their times, in microseconds.
    pub chosen_us: f64,
    pub best_us: f64,
    /// What the rules of others take, where such a plan can run.
    pub nccl_us: Option<f64>,
    pub hccl_us: Option<f64>,
    /// The commit that was asked.
    pub commit: String,
}

impl Compared {
    /// How much longer the chosen plan takes than the best one, as a part of the latter.
    pub fn regret(&self) -> f64 {
        self.chosen_us / self.best_us - 1.0
    }
}

/// All cells in a random order that is the same for the same seed, so that a part of them is a sample.
pub fn all(graphs: &[Graph], full: bool, seed: u64) -> Vec<Cell> {
    let few = [256, 64 << 10, 4 << 20, 1 << 30];
    let many: Vec<u64> = (0..13).map(|power| 256 << (2 * power)).collect();
    let sizes: &[u64] = if full { &many } else { &few };
    let mut cells = Vec::new();
    for graph in 0..graphs.len() {
        for op in OPS {
            cells.extend(sizes.iter().map(|&bytes| Cell { graph, op, bytes }));
        }
    }
    // Not zero, for any seed.
    let mut state = 0x9e37_79b9_7f4a_7c15u64 ^ (seed << 1);
    for place in (1..cells.len()).rev() {
        // Xorshift: any order without a pattern does.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        cells.swap(place, (state % (place as u64 + 1)) as usize);
    }
    cells
}

/// Plans, sweeps, and looks up what others would choose.
pub fn compare(graph: &Graph, cell: &Cell, commit: &str) -> Result<Compared> {
    let network = &graph.network;
    let ranks = network.ranks();
    let request = Request::new(cell.op, cell.bytes);
    let chosen = plan(network, &request)?;
    let swept = Request {
        most_final_steps: match ranks {
            0..=FEW => MOST_STEPS,
            _ => MOST_STEPS_OF_MANY,
        },
        ..request
    };
    let all = sweep::sweep(network, &swept)?;
    let chosen_us = chosen.predicted_us();
    let (mut best, mut best_us) = (chosen.algorithm.clone(), chosen_us);
    if let Some(found) = all.first().filter(|found| found.ps / 1e6 < best_us) {
        best = format!("{} in {}", found.source.name(), found.knob.chunks);
        best_us = found.ps / 1e6;
    }
    let named = |name: &str| sweep::named(network, &swept, name);
    let nccl = named(rules::nccl(network, cell.op, cell.bytes))?;
    // Its chunks have a fixed size; of those that were simulated the nearest one is taken.
    let parts = match cell.op {
        Op::Broadcast { .. } | Op::Reduce { .. } => 1,
        _ => u64::from(ranks),
    };
    let chunks = (cell.bytes / parts / rules::NCCL_CHUNK).max(1);
    let nearest = nccl
        .iter()
        .min_by_key(|scored| scored.knob.chunks.abs_diff(chunks));
    let hccl = named(rules::hccl(network, cell.op))?;
    let whole = hccl.iter().find(|scored| scored.knob.chunks == 1);
    Ok(Compared {
        family: graph.family,
        graph: graph.name.clone(),
        ranks,
        op: cell.op,
        bytes: cell.bytes,
        chosen: format!("{} in {}", chosen.algorithm, chosen.knob.chunks),
        best,
        chosen_us,
        best_us,
        nccl_us: nearest.map(|scored| scored.ps / 1e6),
        hccl_us: whole.map(|scored| scored.ps / 1e6),
        commit: commit.to_owned(),
    })
}
