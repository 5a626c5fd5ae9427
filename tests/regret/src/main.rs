//! How much time the choice of a plan costs over the best plan that there is.
//!
//! For graphs, operations and sizes this compares what `unisono plan` chooses with every candidate
//! in every cut, all simulated from their steps, and beside it with what the published rules of
//! other libraries would choose on the same graph. `cargo xtask regret` runs it.

mod cells;
mod graphs;
mod page;
mod rules;
mod store;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use unisono_plan::{Op, OpKind};

/// Compare the choice of plans with an exhaustive sweep, and write the table.
#[derive(Parser)]
struct Args {
    /// All graphs, operations and sizes, not only the small ones.
    #[arg(long)]
    full: bool,
    /// Stop after so many seconds; what was compared by then is a random sample of all.
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// Compare only on the graph of this name, as the page has it ("torus 16 x 24"); may be given more than once.
    #[arg(long = "graph", value_name = "NAME")]
    graphs: Vec<String>,
    /// Compare on the graph of this file, as `unisono plan` reads it, and on no other; may be given more than once.
    #[arg(long = "file", value_name = "FILE", conflicts_with_all = ["graphs", "cells"])]
    files: Vec<PathBuf>,
    /// Compare only this operation; may be given more than once.
    #[arg(long = "op", value_name = "OP")]
    ops: Vec<OpKind>,
    /// Compare only this size; may be given more than once.
    #[arg(long, value_name = "BYTES")]
    bytes: Vec<u64>,
    /// Write the page to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave out the cells of this file, and add those that were compared.
    #[arg(long, value_name = "FILE")]
    cells: Option<PathBuf>,
    /// The order in which cells are compared.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The commit that is asked, for the cells.
    #[arg(long, default_value = "")]
    commit: String,
    /// A line for the page that says on what it was run.
    #[arg(long, default_value = "")]
    about: String,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// How much time an interrupted comparison loses at most.
const KEEP_EACH: Duration = Duration::from_secs(60);

/// Writes what was compared so far where the next comparison finds it.
fn keep(args: &Args, results: &[cells::Compared]) -> Result<()> {
    match &args.cells {
        Some(path) => store::write(path, results),
        None => Ok(()),
    }
}

fn run(args: &Args) -> Result<()> {
    let graphs = match args.files.is_empty() {
        true => graphs::all(args.full)?,
        false => args
            .files
            .iter()
            .map(|file| graphs::of_file(file))
            .collect::<Result<_>>()?,
    };
    let cells = cells::all(&graphs, args.full, args.seed);
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let mut kept = Instant::now();
    let mut results = match &args.cells {
        Some(path) => store::read(path)?,
        None => Vec::new(),
    };
    for name in &args.graphs {
        let is_known = graphs.iter().any(|graph| graph.name == *name);
        let names = || graphs.iter().map(|graph| graph.name.as_str());
        let size = if args.full { "" } else { " without --full" };
        anyhow::ensure!(
            is_known,
            "there is no graph {name:?}{size}; there are: {}",
            names().collect::<Vec<_>>().join(", ")
        );
    }
    let key = |graph: &str, op: Op, bytes: u64| (graph.to_owned(), op.name(), bytes);
    let known: BTreeSet<_> = results
        .iter()
        .map(|one| key(&one.graph, one.op, one.bytes))
        .collect();
    for cell in &cells {
        if Instant::now() > end {
            break;
        }
        let graph = &graphs[cell.graph];
        let is_asked = (args.graphs.is_empty() || args.graphs.contains(&graph.name))
            && (args.ops.is_empty() || args.ops.contains(&cell.op.kind()))
            && (args.bytes.is_empty() || args.bytes.contains(&cell.bytes));
        if !is_asked || known.contains(&key(&graph.name, cell.op, cell.bytes)) {
            continue;
        }
        let result = cells::compare(graph, cell, &args.commit)
            .with_context(|| format!("{} on {}", cell.op, graph.name));
        match result {
            Ok(compared) => results.push(compared),
            Err(error) => {
                keep(args, &results)?;
                return Err(error);
            }
        }
        if kept.elapsed() > KEEP_EACH {
            keep(args, &results)?;
            eprintln!("{} of {} cells", results.len(), cells.len());
            kept = Instant::now();
        }
    }
    keep(args, &results)?;
    // Of a graph or a size that is in the set no more, nothing is told.
    let set: BTreeSet<_> = (cells.iter())
        .map(|cell| key(&graphs[cell.graph].name, cell.op, cell.bytes))
        .collect();
    results.retain(|one| set.contains(&key(&one.graph, one.op, one.bytes)));
    let page = page::page(&results, cells.len(), args.full, &args.about);
    match &args.output {
        Some(path) => {
            std::fs::write(path, page).with_context(|| format!("writing {}", path.display()))
        }
        None => {
            print!("{page}");
            Ok(())
        }
    }
}
