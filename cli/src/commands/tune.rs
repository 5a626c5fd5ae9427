//! `unisono tune`: measures links and plans, so that selection need not guess.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use unisono::plan::OpKind;
use unisono::{Calibration, TuneOptions};

use crate::join::{JoinArgs, RankArgs};
use crate::{output, units};

/// Measure links and algorithms here, and let every later choice go by it
///
/// The figures are added to the cluster's calibration file, under what the communicator looks like:
/// how many ranks, on how many hosts, over which links. Jobs that look the same use them from then
/// on; `unisono explain` shows them beside the predictions. Run it on an otherwise idle machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono tune --ranks 2
  unisono tune --ranks 8 --without-links shm --op all_reduce,all_gather
  mpirun -n 16 unisono tune --cluster-file cluster.yaml")]
pub struct Args {
    /// The operations to measure, separated by commas (default: all).
    #[arg(long, value_name = "OP", value_delimiter = ',')]
    op: Vec<OpKind>,
    /// The smallest message.
    #[arg(short = 'b', long, value_name = "SIZE", value_parser = units::size, default_value = "8")]
    minbytes: u64,
    /// The largest message. Each rank holds four buffers of this size.
    #[arg(short = 'e', long, value_name = "SIZE", value_parser = units::size, default_value = "64M")]
    maxbytes: u64,
    /// From one size to the next: times this.
    #[arg(short = 'f', long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u64).range(2..))]
    stepfactor: u64,
    /// About how long one algorithm runs at one size.
    #[arg(long, value_name = "TIME", value_parser = units::time, default_value = "12ms")]
    figure: Duration,
    /// Write here instead of where jobs look (`-` for the terminal); an existing file is added to.
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Measure nothing anew: run every algorithm at every size in turns, show which is chosen now and
    /// which is fastest, and fail if a choice is surely more than 10 % behind.
    #[arg(long, conflicts_with = "output")]
    check: bool,
    /// Rounds; algorithms take turns in each. Where ranks share cores, others do in each round.
    /// Without --check, algorithms that are close to each other have as many again, and one whose
    /// single call takes longer than --figure has three at most of either.
    #[arg(long, value_name = "N", default_value_t = 7,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    #[command(flatten)]
    ranks: RankArgs,
    #[command(flatten)]
    join: JoinArgs,
}

/// Measures, or starts the ranks that do. Without a launcher and without a number of ranks, two.
pub fn run(args: &Args) -> Result<ExitCode> {
    let launched = unisono::bootstrap::RankInfo::from_environment().is_ok();
    if let Some(code) = args.ranks.launch((!launched).then_some(2))? {
        return Ok(code);
    }
    if args.check {
        return check(args);
    }
    let init = args.join.init()?;
    let file = match &args.output {
        Some(path) => Some(path.clone()),
        None => init.calibration_file()?,
    };
    let Some(file) = file else {
        bail!(
            "calibration is switched off, or there is no home folder for it; give a file with -o, \
             and name it in the cluster file as `calibration`"
        );
    };
    let communicator = args.join.join(false)?;
    let first = communicator.rank() == 0;
    let bar = if first { bar()? } else { ProgressBar::hidden() };
    let measured = communicator.tune(&options(args), &mut |step| show(&bar, step))?;
    bar.finish_and_clear();
    if first {
        for (kind, link) in &measured.links {
            output::print(&format!(
                "{kind}: {:.2} us, {:.2} GB/s\n",
                link.latency_us,
                link.bytes_per_second as f64 / 1e9
            ))?;
        }
        for figures in measured.fabrics.values() {
            output::print(&format!(
                "{}: {} plans measured\n",
                figures.about,
                figures.plans.len()
            ))?;
        }
        save(&file, measured)?;
    }
    communicator.finalize()?;
    Ok(ExitCode::SUCCESS)
}

fn options(args: &Args) -> TuneOptions {
    let mut options = TuneOptions {
        min_bytes: args.minbytes,
        max_bytes: args.maxbytes,
        factor: args.stepfactor,
        figure: args.figure,
        rounds: args.rounds,
        ..TuneOptions::default()
    };
    if !args.op.is_empty() {
        options.ops.clone_from(&args.op);
    }
    options
}

/// How much slower than the best a choice may be.
const TOLERATED: f64 = 0.1;

/// Holds the choices against the best.
fn check(args: &Args) -> Result<ExitCode> {
    let communicator = args.join.join(false)?;
    let first = communicator.rank() == 0;
    let bar = if first { bar()? } else { ProgressBar::hidden() };
    let choices = communicator.check_choices(&options(args), &mut |step| show(&bar, step))?;
    bar.finish_and_clear();
    let misses = choices.iter().filter(|c| c.is_miss(TOLERATED)).count();
    if first {
        output::print(&format!(
            "# {} ranks, {} rounds; time over the fastest's with its 95 % interval\n",
            communicator.size(),
            args.rounds
        ))?;
        output::print(&format!(
            "{:15} {:>10}  {:20} {:>10}  {:20} {:>10}  {:>6}\n",
            "operation", "bytes", "chosen", "us", "fastest", "us", "ratio"
        ))?;
        for choice in &choices {
            let (low, high) = choice.interval;
            output::print(&format!(
                "{:15} {:>10}  {:20} {:>10.2}  {:20} {:>10.2}  {:>6.2}  {low:.2} to {high:.2}{}\n",
                choice.op,
                choice.bytes,
                choice.chosen,
                choice.chosen_us,
                choice.best,
                choice.best_us,
                choice.ratio,
                if choice.is_miss(TOLERATED) {
                    "  MISS"
                } else {
                    ""
                }
            ))?;
        }
        output::print(&format!("# {misses} of {} choices missed\n", choices.len()))?;
    }
    communicator.finalize()?;
    Ok(if misses == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn show(bar: &ProgressBar, step: &unisono::TuneProgress) {
    bar.set_length(step.total);
    bar.set_position(step.done);
    bar.set_message(format!("{} of {} B", step.op, step.bytes));
}

/// Adds to a file, in one step: a job that starts meanwhile reads the old or the new one.
fn save(path: &Path, measured: Calibration) -> Result<()> {
    if path.as_os_str() == "-" {
        return output::print(&format!("{}\n", measured.to_json()));
    }
    let mut all = match fs::read_to_string(path) {
        Ok(text) => Calibration::from_json(&text)
            .with_context(|| format!("{} is there, and not to be added to", path.display()))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Calibration::default(),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    all.merge(measured);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&beside, all.to_json() + "\n")
        .and_then(|()| fs::rename(&beside, path))
        .with_context(|| format!("writing {}", path.display()))?;
    output::print(&format!("written to {}\n", path.display()))
}

/// A bar where there is a terminal, nothing elsewhere.
fn bar() -> Result<ProgressBar> {
    let style = ProgressStyle::with_template("{msg:36} {bar:40} {pos}/{len}  {eta}")?;
    Ok(ProgressBar::new(0).with_style(style))
}
