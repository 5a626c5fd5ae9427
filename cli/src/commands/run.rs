//! `unisono run`: starts the ranks of a job on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use unisono::cluster;

use crate::launch::{Launch, Output};
use crate::units;

/// Start ranks of a program on this machine
///
/// Each rank gets UNISONO_RANK, UNISONO_WORLD_SIZE, UNISONO_LOCAL_RANK, UNISONO_LOCAL_SIZE, the
/// job's name and a fresh secret. Signals are passed on. When a rank fails, the others are ended,
/// and the exit code is that of the first failure (128 + the signal's number for one that a signal
/// ended; 124 if the time was up). Nothing that the ranks started is left behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono run -n 8 -- ./train --epochs 3
  unisono run -n 2 --timeout 1min -- python3 test.py
  unisono run --cluster fleet.yaml -- ./train      as many ranks as the file's `ranks`
  UNISONO_WITHOUT_LINKS=shm unisono run -n 4 -- ./train     over TCP alone")]
pub struct Args {
    /// How many ranks; without it, as many as the cluster file names devices for.
    #[arg(short = 'n', long = "ranks", value_name = "N", required_unless_present = "cluster",
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    ranks: Option<u32>,
    /// The cluster file of the ranks, instead of the one that UNISONO_CLUSTER_FILE names or a search
    /// finds.
    #[arg(long = "cluster-file", visible_alias = "cluster", value_name = "FILE")]
    cluster: Option<PathBuf>,
    /// Leave the ranks' output as it is, instead of putting `[rank]` before each line.
    #[arg(long)]
    no_prefix: bool,
    /// End everything after this time.
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    timeout: Option<Duration>,
    /// How long ranks that were asked to end may take before they are killed.
    #[arg(long, value_name = "TIME", value_parser = units::time, default_value = "5s")]
    grace: Duration,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Starts the ranks and waits for them.
pub fn run(args: Args) -> Result<ExitCode> {
    let mut command = args.command.into_iter();
    let program = command.next().unwrap_or_default();
    let cluster = args.cluster.as_deref().map(absolute).transpose()?;
    let ranks = match (args.ranks, &cluster) {
        (Some(ranks), _) => ranks,
        (None, Some(file)) => ranks_of(file)?,
        (None, None) => bail!("give the number of ranks (-n) or a cluster file that has `ranks`"),
    };
    let mut launch = Launch::new(ranks, program, command.collect());
    launch.cluster = cluster;
    launch.output = if args.no_prefix {
        Output::Shared
    } else {
        Output::Prefixed
    };
    launch.timeout = args.timeout;
    launch.grace = args.grace;
    launch.run()
}

/// Ranks may change their folder before they read the file.
fn absolute(file: &Path) -> Result<PathBuf> {
    std::path::absolute(file).with_context(|| format!("the cluster file {}", file.display()))
}

/// How many ranks the file has devices for on this machine.
fn ranks_of(file: &Path) -> Result<u32> {
    let effective = cluster::load(&cluster::LoadOptions {
        path: Some(file.to_owned()),
        env: cluster::Environment::process(),
        code: cluster::Overrides::new(),
    })?;
    let system = rustix::system::uname();
    let devices = effective
        .cluster
        .ranks_on(&system.nodename().to_string_lossy());
    match devices.len() {
        0 => bail!(
            "{} has no `ranks` for this machine: give their number with -n, or write \
             `ranks: [PLUGIN:NUMBER, ...]`",
            file.display()
        ),
        count @ 1..=4096 => Ok(count as u32),
        count => bail!(
            "{} has {count} `ranks` for this machine; one command starts 4096 at most",
            file.display()
        ),
    }
}
