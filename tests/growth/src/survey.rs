//! All jobs and all plans, one after the other.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use unisono_plan::Op;
use unisono_regret::OPS;

use crate::fabric::Fabric;
use crate::job::{self, Job};
use crate::plans::{self, Graph, Planned};

/// What was found.
pub struct Survey {
    /// How long a plan could take.
    pub limit: Duration,
    /// By the number of ranks, which rises.
    pub jobs: Vec<Jobs>,
    /// By the graph.
    pub plans: Vec<Plans>,
}

/// Jobs of one number of ranks.
pub struct Jobs {
    pub ranks: u32,
    pub runs: Vec<Job>,
}

/// Plans on one family of graphs.
pub struct Plans {
    /// The family in words.
    pub graphs: String,
    /// The numbers of ranks.
    pub ranks: Vec<u32>,
    /// What each operation's plans cost, by the number of ranks; none where it took too long.
    pub costs: Vec<(Op, Vec<Option<Planned>>)>,
}

/// How much is asked for.
pub struct Asked<'a> {
    /// The numbers of ranks of jobs, and of plans on fabrics.
    pub ranks: &'a [u32],
    pub fabric_ranks: &'a [u32],
    /// Jobs of each number of ranks.
    pub repeat: u32,
    /// How long a plan may take.
    pub limit: Duration,
}

/// Runs jobs of each number of ranks, then plans on the graph of each and on fabrics.
pub fn run(asked: &Asked) -> Result<Survey> {
    let Asked {
        ranks,
        fabric_ranks,
        repeat,
        limit,
    } = *asked;
    for ranks in [ranks, fabric_ranks] {
        ensure!(
            ranks.is_sorted_by(|a, b| a < b),
            "numbers of ranks must rise, so that their growth can be told: {ranks:?}"
        );
    }
    let folder = graphs_folder()?;
    let graph = |ranks: u32| folder.join(format!("{ranks}.json"));
    let mut jobs: Vec<Jobs> = ranks
        .iter()
        .map(|&ranks| Jobs {
            ranks,
            runs: Vec::new(),
        })
        .collect();
    // Round after round, so that a machine that drifts moves all numbers alike.
    for round in 1..=repeat {
        for of_size in &mut jobs {
            let job = job::run(of_size.ranks, &graph(of_size.ranks))?;
            let ranks = of_size.ranks;
            eprintln!(
                "round {round} of {repeat}: {ranks} ranks, {:.2} s",
                job.wall
            );
            of_size.runs.push(job);
        }
    }
    // One rank has nobody to plan with.
    let several: Vec<u32> = ranks.iter().copied().filter(|&ranks| ranks > 1).collect();
    let mut plans = vec![plan_all(
        "the graph that these jobs froze",
        &several,
        limit,
        |ranks| Graph::File(graph(ranks)),
    )?];
    for fabric in [Fabric::Boxes, Fabric::Torus] {
        let graphs = match (fabric_ranks.first(), fabric_ranks.last()) {
            (Some(&least), Some(&most)) => {
                format!("{} to {}", fabric.describe(least), fabric.describe(most))
            }
            _ => continue,
        };
        plans.push(plan_all(&graphs, fabric_ranks, limit, |ranks| {
            Graph::Fabric(fabric, ranks)
        })?);
    }
    Ok(Survey { limit, jobs, plans })
}

/// Where the graphs of jobs lie: beside this program, in cargo's folder, so that nothing lies elsewhere when
/// this is interrupted, and `unisono plan` can be asked about them afterwards.
fn graphs_folder() -> Result<PathBuf> {
    let program = std::env::current_exe().context("finding this program's file")?;
    let folder = program.with_file_name("growth");
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(folder)
}

fn plan_all(
    graphs: &str,
    ranks: &[u32],
    limit: Duration,
    graph: impl Fn(u32) -> Graph,
) -> Result<Plans> {
    let mut costs = Vec::new();
    for op in OPS {
        let since = Instant::now();
        let row = ranks
            .iter()
            .map(|&ranks| plans::apart(&graph(ranks), op, limit));
        costs.push((op, row.collect::<Result<Vec<_>>>()?));
        let took = since.elapsed().as_secs_f64();
        eprintln!("plans of {} on {graphs}: {took:.2} s", op.name());
    }
    Ok(Plans {
        graphs: graphs.to_owned(),
        ranks: ranks.to_vec(),
        costs,
    })
}
