//! What the library costs as jobs grow: time and memory of joining, of a communicator, of first calls,
//! and of plans.
//!
//! Ranks are processes, which `unisono run` starts; each measures itself ([`rank`]) and says what it found
//! on one line of JSON. `cargo xtask growth` runs this program and keeps its page.

mod columns;
mod fabric;
mod job;
mod page;
mod plans;
mod promises;
mod rank;
mod survey;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use fabric::Fabric;

/// Measure what the library costs as jobs grow, and write the page.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    part: Option<Part>,
    /// The numbers of ranks, each the double of the one before it.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8,16,32,64",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    ranks: Vec<u32>,
    /// The numbers of ranks of plans on fabrics, each the double of the one before it.
    #[arg(long, value_delimiter = ',', default_value = "64,128,256,512,1024",
          value_parser = clap::value_parser!(u32).range(16..=4096))]
    fabric_ranks: Vec<u32>,
    /// Jobs of each number of ranks; figures are their medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    repeat: u32,
    /// A plan that takes longer than so many seconds is given up, and told of.
    #[arg(long, default_value_t = 30)]
    plan_seconds: u64,
    /// Write the page to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A line for the page that says on what it was run.
    #[arg(long, default_value = "")]
    about: String,
}

/// What this program starts itself as.
#[derive(Subcommand)]
enum Part {
    /// Measure as one rank of a job that a launcher started.
    #[command(hide = true)]
    Rank {
        /// Where rank 0 writes the job's link graph.
        #[arg(long, value_name = "FILE")]
        graph: PathBuf,
    },
    /// Plan once.
    #[command(hide = true)]
    Plan {
        #[arg(long)]
        op: String,
        #[arg(long, value_name = "FILE")]
        graph: Option<PathBuf>,
        #[arg(long, value_enum)]
        fabric: Option<Fabric>,
        #[arg(long)]
        ranks: Option<u32>,
    },
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> Result<ExitCode> {
    match args.part {
        Some(Part::Rank { graph }) => {
            println!("{}", serde_json::to_string(&rank::measure(&graph)?)?);
            return Ok(ExitCode::SUCCESS);
        }
        Some(Part::Plan {
            op,
            graph,
            fabric,
            ranks,
        }) => {
            let graph = plans::Graph::new(graph, fabric, ranks)?;
            println!("{}", serde_json::to_string(&plans::here(&graph, &op)?)?);
            return Ok(ExitCode::SUCCESS);
        }
        None => {}
    }
    let survey = survey::run(&survey::Asked {
        ranks: &args.ranks,
        fabric_ranks: &args.fabric_ranks,
        repeat: args.repeat,
        limit: Duration::from_secs(args.plan_seconds),
    })?;
    let promises = promises::check(&survey);
    let page = page::page(&survey, &promises, &args.about);
    match &args.output {
        Some(path) => {
            std::fs::write(path, page).with_context(|| format!("writing {}", path.display()))?;
        }
        None => print!("{page}"),
    }
    let broken: Vec<_> = promises.iter().filter(|one| !one.is_kept()).collect();
    for promise in &broken {
        eprintln!("not kept: {promise}");
    }
    Ok(if broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
