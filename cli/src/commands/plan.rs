//! `unisono plan`: what would run on a graph, without hardware.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::json;
use unisono::graph::LinkGraph;
use unisono::plan::OpKind;
use unisono_network::Network;
use unisono_planner::names::Names;
use unisono_planner::{Plan, Planner, Request, front, plan, steps, svg, table};

use crate::{output, units};

/// Plan a collective on a graph from a file, without hardware
///
/// Compares all algorithms, each cut in several ways, by simulating their steps on the graph's
/// links, and shows the fastest: its predicted time, algbw, how much of the lower bound that is, and
/// the use of every link.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The graph is what `unisono topo --format json` writes, or short:
  {\"nodes\": [{\"id\": 0, \"compute\": true}, {\"id\": \"sw\", \"compute\": false}, ...],
   \"edges\": [{\"src\": 0, \"dst\": \"sw\", \"GBps\": 50.0, \"latency_us\": 1.0}, ...]}

The steps are a JSON array, a step a line: {id, rank, lane, kind, peer, buffer, offset, bytes, \
with_buffer, with_offset, to_buffer, to_offset, more, path, after}. A step reads `bytes` at \
`buffer`[`offset`] of `rank`, adds those of `with_buffer` if there are any, and writes the result \
to `to_buffer`[`to_offset`] of `peer`; `more` lists further runs of bytes. Buffers are `in`, `out`, \
`scratch` and `slots R`, those that rank R fills. It starts when the steps of `after` and the one \
before it in its lane have ended, waits for the latencies of its `path`, and then flows at the max-min \
fair rate. Ranks are counted from 0 in the order of --ranks.

With more than 128 ranks candidates are compared by counting their messages and bytes, and the winner is simulated if it is short enough; --steps asks for its steps and a simulation in any case. Simulated times are exact, but where thousands of messages share links: there they may be wrong by some thousandths, and a candidate of more than 20,000 steps that could be faster by 3 % at most is not simulated but listed with the least it could take (`>`).

Examples:
  unisono plan --graph box.json --op all_reduce --bytes 64M
  unisono plan --graph box.json --op broadcast --root 2 --bytes 1G --ranks 0-3 --json
  unisono plan --graph box.json --op all_reduce --bytes 4G --front
  unisono plan --graph box.json --op all_gather --bytes 1M --format svg -o plan.svg")]
pub struct Args {
    /// The file of the graph.
    #[arg(long, value_name = "FILE")]
    graph: PathBuf,
    /// The operation: all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter,
    /// all_to_all, send, recv (from the first rank to the last), barrier.
    #[arg(long)]
    op: OpKind,
    /// The size of the larger buffer of a rank, as nccl-tests counts. A barrier has none, whatever is said here.
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    bytes: Option<u64>,
    /// The ranks that take part, in this order: `0,1,2` or `0-3,8`. All if absent.
    #[arg(long, value_name = "LIST")]
    ranks: Option<String>,
    /// The root of a rooted operation, counted among the ranks that take part.
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    root: u32,
    /// Only this algorithm.
    #[arg(long, value_name = "NAME")]
    algorithm: Option<String>,
    /// What is chosen at sizes that double, from 256 B to --bytes; with --json a size a line.
    #[arg(long, conflicts_with_all = ["steps", "format"])]
    front: bool,
    /// The figures as one JSON object.
    #[arg(long)]
    json: bool,
    /// Write all steps of all ranks to this file.
    #[arg(long, value_name = "FILE")]
    steps: Option<PathBuf>,
    /// How to show the plan.
    #[arg(long, value_enum, default_value_t = Format::Table, conflicts_with = "json")]
    format: Format,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text for a terminal.
    Table,
    /// The figures as one JSON object.
    Json,
    /// A drawing: who sends what to whom, step by step, and when each link is busy.
    Svg,
}

impl Args {
    fn size(&self) -> Result<u64> {
        match self.bytes {
            _ if self.op == OpKind::Barrier => Ok(0),
            Some(bytes) => Ok(bytes),
            None => {
                bail!("--bytes SIZE is needed: of the larger buffer of a rank, as in --bytes 64M")
            }
        }
    }
}

/// Plans.
pub fn run(args: &Args) -> Result<ExitCode> {
    let bytes = args.size()?;
    let file = args.graph.display();
    let text = std::fs::read_to_string(&args.graph).with_context(|| format!("reading {file}"))?;
    let graph = LinkGraph::from_json(&text).with_context(|| format!("in the graph {file}"))?;
    let mut network = Network::from_graph(&graph).with_context(|| format!("in {file}"))?;
    if let Some(list) = &args.ranks {
        let ranks = ranks(list)?;
        network = network.restrict(&ranks).context("in --ranks")?;
    }
    let last = network.ranks() - 1;
    if args.root > last {
        bail!(
            "--root {}: the ranks that take part are 0 to {last}",
            args.root
        );
    }
    let request = Request {
        algorithm: args.algorithm.clone(),
        spelled_out: args.steps.is_some(),
        ..Request::new(args.op.with(args.root, [last, 0]), bytes)
    };
    if args.front {
        return front(args, &network, &request);
    }
    let planned = plan(&network, &request)?;
    let names = Names::new(&graph, &network);
    if let Some(path) = &args.steps {
        let file = std::fs::File::create(path);
        let file = file.with_context(|| format!("writing {}", path.display()))?;
        let mut out = BufWriter::new(file);
        steps::write(&mut out, &planned.schedule, &names)
            .and_then(|()| out.flush())
            .with_context(|| format!("writing {}", path.display()))?;
    }
    let format = if args.json { Format::Json } else { args.format };
    let text = match format {
        Format::Table => table::table(&planned, &network, &names),
        Format::Json => figures(args, bytes, &planned).to_string() + "\n",
        Format::Svg => svg::svg(&planned, &network, &names),
    };
    write(args, &text)
}

fn write(args: &Args, text: &str) -> Result<ExitCode> {
    match &args.output {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        None => output::print(text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What is chosen at all sizes.
fn front(args: &Args, network: &Network, request: &Request) -> Result<ExitCode> {
    let rows = Planner::new(network, request.op)?.front(request)?;
    if !args.json {
        return write(args, &front::text(request.op, network.ranks(), &rows));
    }
    let line = |row: &front::Row| {
        let line = json!({
            "op": args.op.name(),
            "bytes": row.bytes,
            "ranks": network.ranks(),
            "algorithm": row.label,
            "chunks": row.chunks,
            "predicted_us": row.predicted_us,
            "share_of_bound": row.share_of_bound,
        });
        line.to_string() + "\n"
    };
    write(args, &rows.iter().map(line).collect::<String>())
}

fn figures(args: &Args, bytes: u64, planned: &Plan) -> serde_json::Value {
    json!({
        "op": args.op.name(),
        "bytes": bytes,
        "ranks": planned.schedule.ranks,
        "algorithm": planned.algorithm,
        "predicted_us": planned.predicted_us(),
        "algbw_GBps": planned.algbw_gigabytes(),
        "bound_algbw_GBps": planned.bound_algbw_gigabytes(),
        "share_of_bound": planned.share_of_bound(),
        "bound_exact": planned.bound_is_exact(),
        "predicted_by": planned.method(),
        "program_bytes": planned.program_bytes(),
        "plan_seconds": planned.seconds,
    })
}

/// Ranks and ranges of ranks.
fn ranks(list: &str) -> Result<Vec<u32>> {
    let number = |text: &str| {
        let number = text.trim().parse::<u32>();
        number.with_context(|| format!("`{text}` in --ranks is no rank: write 0,1,2 or 0-3"))
    };
    let mut ranks = Vec::new();
    for part in list.split(',') {
        match part.split_once('-') {
            None => ranks.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first || last - first > 1 << 20 {
                    bail!("`{part}` in --ranks is no range of ranks");
                }
                ranks.extend(first..=last);
            }
        }
    }
    Ok(ranks)
}

#[cfg(test)]
mod tests {
    use super::ranks;

    #[test]
    fn ranks_and_ranges() {
        assert_eq!(ranks("0,1, 2").unwrap(), [0, 1, 2]);
        assert_eq!(ranks("4-6,1").unwrap(), [4, 5, 6, 1]);
        for bad in ["", "a", "1-", "3-1", "0-99999999"] {
            assert!(ranks(bad).is_err(), "{bad}");
        }
    }
}
