//! `unisono bench`: measures collectives as nccl-tests do, with checked results.

mod compare;
mod measure;
mod memory;
mod op;
mod paired;
mod pattern;
mod report;
mod side;
mod sizes;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use unisono::{DataType, ReduceOp};

use crate::join::{JoinArgs, RankArgs};
use crate::units;
use measure::measure;
use op::{BenchOp, Shape};
use report::{Report, Row};
use side::{Buffers, Side};

/// Measure collectives, with nccl-tests' flags and columns
///
/// Every result is checked on the device's memory, element by element, against values that are
/// exact in every type. A figure is the slowest rank's time for a batch of calls divided by their
/// number, and of several such rounds the median.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono bench all_reduce --ranks 4 -b 8 -e 64M -f 2
  unisono bench all_reduce,broadcast --ranks 2 --without-links shm      over TCP
  unisono bench all_reduce --ranks 2 -d bf16 -o max --json > figures.jsonl
  unisono bench all_reduce --ranks 2 --against-plugin mine --plugin-path ./target/release")]
pub struct Args {
    /// What to measure, separated by commas: all_reduce, all_gather, reduce_scatter, broadcast, reduce, gather, scatter,
    /// all_to_all, send_recv (to the next rank, from the one before), barrier.
    #[arg(value_name = "OP", required = true, value_delimiter = ',')]
    ops: Vec<BenchOp>,
    /// The smallest message.
    #[arg(short = 'b', long, value_name = "SIZE", value_parser = units::size, default_value = "8")]
    minbytes: u64,
    /// The largest message; it is measured even if no step leads to it.
    #[arg(short = 'e', long, value_name = "SIZE", value_parser = units::size, default_value = "64M")]
    maxbytes: u64,
    /// From one size to the next: times this (default: 4).
    #[arg(short = 'f', long, value_name = "N", conflicts_with = "stepbytes",
          value_parser = clap::value_parser!(u64).range(2..))]
    stepfactor: Option<u64>,
    /// From one size to the next: this much more.
    #[arg(short = 'i', long, value_name = "SIZE", value_parser = units::size)]
    stepbytes: Option<u64>,
    /// Calls a round.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..))]
    iters: u32,
    /// Calls before the clock starts.
    #[arg(short = 'w', long, value_name = "N", default_value_t = 5)]
    warmup_iters: u32,
    /// Rounds: a row shows their median. With --against-plugin the fewest of a session.
    #[arg(long, value_name = "N", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Where calls are slow, fewer of them, so that a figure takes about this long; 0s for no limit.
    #[arg(long, value_name = "TIME", value_parser = units::time, default_value = "500ms")]
    budget: Duration,
    /// Whether results are checked: 1 or 0.
    #[arg(short = 'c', long, value_name = "0|1", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(0..=1))]
    check: u8,
    /// Reductions, separated by commas, or `all`: sum, prod, min, max, avg.
    #[arg(short = 'o', long, value_name = "OP", default_value = "sum", value_parser = op::reductions)]
    op: op::Reductions,
    /// Data types, separated by commas, or `all`: f32 (float), f64, f16 (half), bf16, i8 to u64.
    #[arg(short = 'd', long, value_name = "TYPE", default_value = "f32", value_parser = op::datatypes)]
    datatype: op::DataTypes,
    /// The root of broadcast, reduce, gather and scatter.
    #[arg(short = 'r', long, value_name = "RANK", default_value_t = 0)]
    root: u32,
    /// Write the input anew before each call, as a program would: one word of each cache line, the
    /// time of which is taken off.
    #[arg(long)]
    dirty: bool,
    /// Use memory that the peers can reach directly (`Communicator::alloc`).
    #[arg(long)]
    windows: bool,
    /// Show the devices and the link graph first (not with --json).
    #[arg(long)]
    topo: bool,
    /// One JSON object a line instead of the table (times out of place; min and p99 over rounds).
    #[arg(long)]
    json: bool,
    /// Measure this plugin against the first one, out of place, in turns in the same processes:
    /// rounds in the order A B, B A, A B, …, as many as the budget allows; the median of their
    /// ratios and its 95 % interval.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["json", "topo"])]
    against_plugin: Option<String>,
    /// With --against-plugin: how often to join anew, with fresh memory, the other plugin first
    /// every second time.
    #[arg(long, value_name = "N", default_value_t = 6, requires = "against_plugin",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    sessions: u32,
    /// With --against-plugin: fail if the interval of any ratio lies wholly above this.
    #[arg(long, value_name = "RATIO", requires = "against_plugin")]
    ratio_limit: Option<f64>,
    #[command(flatten)]
    ranks: RankArgs,
    #[command(flatten)]
    join: JoinArgs,
}

/// Measures, or starts the ranks that do.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.maxbytes < args.minbytes {
        bail!("-e {} is less than -b {}", args.maxbytes, args.minbytes);
    }
    if let Some(code) = args.ranks.launch(None)? {
        return Ok(code);
    }
    if let Some(other) = &args.against_plugin {
        return compare::run(args, other);
    }
    let side = Side::join(args)?;
    let plan = plan(args, &side)?;
    let mut report = Report::new(args, &side, plan.len())?;
    for group in groups(&plan) {
        let buffers = buffers(args, &side, group)?;
        report.begin(&group[0])?;
        for shape in group {
            report.row(&row(args, &side, &buffers, shape)?)?;
        }
    }
    let wrong = report.finish()?;
    side.finalize()?;
    Ok(if wrong == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The shapes that use the same buffers and stand in one table.
fn groups(plan: &[Shape]) -> impl Iterator<Item = &[Shape]> {
    plan.chunk_by(|a, b| a.op == b.op && a.dtype == b.dtype && a.reduction == b.reduction)
}

/// Everything that is measured, in order.
fn plan(args: &Args, side: &Side) -> Result<Vec<Shape>> {
    let ranks = side.communicator.size();
    if args.root >= ranks {
        bail!("-r {}: the ranks are 0 to {}", args.root, ranks - 1);
    }
    let step = match (args.stepfactor, args.stepbytes) {
        (_, Some(bytes)) => sizes::Step::Add(bytes),
        (factor, None) => sizes::Step::Times(factor.unwrap_or(4)),
    };
    let sizes = sizes::sizes(args.minbytes, args.maxbytes, step)?;
    let mut plan: Vec<Shape> = Vec::new();
    for op in &args.ops {
        if *op == BenchOp::SendRecv && ranks < 2 {
            bail!("send_recv needs two ranks");
        }
        let reductions: &[ReduceOp] = if op.reduces() {
            &args.op.0
        } else {
            &args.op.0[..1]
        };
        let types: &[DataType] = if op.moves() {
            &args.datatype.0
        } else {
            &[DataType::U8]
        };
        for dtype in types {
            for reduction in reductions {
                if op.reduces() && !reduction.applies_to(*dtype) {
                    continue;
                }
                for size in &sizes {
                    let shape = Shape::new(*op, *dtype, *reduction, args.root, ranks, *size);
                    // Small sizes may come to the same number of elements.
                    if plan.last() != Some(&shape) {
                        plan.push(shape);
                    }
                }
            }
        }
    }
    if plan.is_empty() {
        bail!("nothing to run: bitwise reductions are for integers");
    }
    Ok(plan)
}

/// Buffers for the largest shape of a group.
fn buffers(args: &Args, side: &Side, group: &[Shape]) -> Result<Buffers> {
    let most = |bytes: fn(&Shape) -> u64| group.iter().map(bytes).max().unwrap_or(0);
    let (send, recv) = (most(Shape::send_bytes), most(Shape::recv_bytes));
    Buffers::new(&side.communicator, send, recv, args.windows)
        .with_context(|| format!("buffers of {send} and {recv} bytes"))
}

fn row(args: &Args, side: &Side, buffers: &Buffers, shape: &Shape) -> Result<Row> {
    let mut wrong = [None; 2];
    let mut times = [None; 2];
    let places = shape.op.places(args.json);
    if args.check == 1 && shape.op.moves() {
        for (place, wrong) in wrong.iter_mut().enumerate().take(places) {
            *wrong = Some(side.check(buffers, shape, place == 1)?);
        }
    }
    for (place, times) in times.iter_mut().enumerate().take(places) {
        *times = Some(measure(args, side, buffers, shape, place == 1)?);
    }
    Ok(Row {
        shape: *shape,
        times,
        wrong,
        algorithm: side.algorithm(shape, buffers)?,
    })
}
