//! `unisono topo`: devices and links, as text, JSON or a drawing.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::ValueEnum;
use unisono::graph::{LinkGraph, draw};

use crate::join::{JoinArgs, RankArgs};

/// Show devices and the links between them
///
/// Without --ranks and without a launcher: this machine, as one rank sees it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono topo                                    this machine
  unisono topo --ranks 4 --format svg -o job.svg  the graph of a job of four ranks
  unisono topo --graph job.json --format dot | dot -Tpdf > job.pdf")]
pub struct Args {
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Show the graph of this file instead.
    #[arg(long, value_name = "FILE", conflicts_with = "ranks")]
    graph: Option<PathBuf>,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    ranks: RankArgs,
    #[command(flatten)]
    join: JoinArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Text for a terminal.
    Table,
    /// The whole graph, which `--graph` reads back.
    Json,
    /// A drawing.
    Svg,
    /// For Graphviz.
    Dot,
}

/// Shows the graph.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(path) = &args.graph {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("reading the graph {}", path.display()))?;
        let graph = LinkGraph::from_json(&text)
            .with_context(|| format!("in the graph {}", path.display()))?;
        return show(args, &graph, "");
    }
    if let Some(code) = args.ranks.launch(None)? {
        return Ok(code);
    }
    let communicator = args.join.join(true)?;
    let code = match communicator.rank() {
        0 => {
            let paths = communicator.memory_paths().to_string();
            show(args, communicator.graph(), &paths)?
        }
        _ => ExitCode::SUCCESS,
    };
    communicator.finalize()?;
    Ok(code)
}

/// `paths`: through what memory bytes go between the ranks, for people.
fn show(args: &Args, graph: &LinkGraph, paths: &str) -> Result<ExitCode> {
    let mut text = match args.format {
        Format::Table if paths.is_empty() => draw::table(graph),
        Format::Table => format!("{}\n\n{paths}", draw::table(graph).trim_end()),
        Format::Json => graph.to_json(),
        Format::Svg => draw::svg(graph),
        Format::Dot => draw::dot(graph),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    match &args.output {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?
        }
        None => crate::output::print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}
