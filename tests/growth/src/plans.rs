//! What planning costs: each plan in a process of its own, since a peak of memory is a process's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum as _;
use serde::{Deserialize, Serialize};
use unisono::graph::LinkGraph;
use unisono_network::Network;
use unisono_plan::Op;
use unisono_planner::{Request, plan};
use unisono_regret::OPS;
use unisono_tests::peak_bytes;

use crate::fabric::Fabric;

/// How often a planner is looked at.
const TICK: Duration = Duration::from_millis(5);

/// The size that is planned.
pub const BYTES: u64 = 1 << 20;

/// Where the graph of a plan comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Graph {
    /// The link graph that a job of ranks froze.
    File(PathBuf),
    /// One that is made up.
    Fabric(Fabric, u32),
}

/// What planning cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// What was chosen.
    pub algorithm: String,
    /// How its time was predicted.
    pub method: String,
    /// Of planning alone.
    pub seconds: f64,
    /// The most memory of the process with graph and plan, beyond what it had before.
    pub peak: u64,
}

impl Graph {
    /// From what stands on the command line, one of both.
    pub fn new(file: Option<PathBuf>, fabric: Option<Fabric>, ranks: Option<u32>) -> Result<Self> {
        match (file, fabric, ranks) {
            (Some(file), None, None) => Ok(Self::File(file)),
            (None, Some(fabric), Some(ranks)) => Ok(Self::Fabric(fabric, ranks)),
            _ => anyhow::bail!("give either --graph FILE, or --fabric and --ranks"),
        }
    }

    fn network(&self) -> Result<Network> {
        match self {
            Self::File(path) => network_of(path),
            Self::Fabric(fabric, ranks) => fabric.network(*ranks),
        }
    }
}

/// Plans in this process.
pub fn here(graph: &Graph, op: &str) -> Result<Planned> {
    let op = OPS.into_iter().find(|known| known.name() == op);
    let op = op.context("--op names no operation that is planned here")?;
    let before = peak_bytes()?;
    let network = graph.network()?;
    let plan = plan(&network, &Request::new(op, BYTES))?;
    Ok(Planned {
        peak: peak_bytes()?.saturating_sub(before),
        algorithm: plan.algorithm.clone(),
        method: plan.method().to_owned(),
        seconds: plan.seconds,
    })
}

/// Plans in a process of its own; none if that takes longer than `limit`.
pub fn apart(graph: &Graph, op: Op, limit: Duration) -> Result<Option<Planned>> {
    let program = std::env::current_exe().context("finding this program's file")?;
    let mut command = Command::new(program);
    command.args(["plan", "--op", op.name()]);
    match graph {
        Graph::File(path) => command.arg("--graph").arg(path),
        Graph::Fabric(fabric, ranks) => {
            let fabric = fabric.to_possible_value().context("a fabric has a name")?;
            command.args(["--fabric", fabric.get_name(), "--ranks", &ranks.to_string()])
        }
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut planner = command.spawn().context("starting a planner")?;
    // It says one line, which the pipe holds until it has ended.
    let end = Instant::now() + limit;
    while planner.try_wait()?.is_none() {
        if Instant::now() >= end {
            planner.kill().context("ending a planner")?;
            planner.wait()?;
            return Ok(None);
        }
        std::thread::sleep(TICK);
    }
    let output = planner.wait_with_output()?;
    let told = || format!("the planner of {} on {graph:?}", op.name());
    ensure!(
        output.status.success(),
        "{} ended with {}; what it said is above",
        told(),
        output.status
    );
    serde_json::from_slice(&output.stdout)
        .with_context(told)
        .map(Some)
}

fn network_of(path: &Path) -> Result<Network> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("reading {}", path.display()))?;
    let graph = LinkGraph::from_json(&text).with_context(|| format!("in {}", path.display()))?;
    Network::from_graph(&graph).with_context(|| format!("in {}", path.display()))
}
