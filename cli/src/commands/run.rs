//! `unisono run`: starts the ranks of a job on this machine.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;

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
  UNISONO_WITHOUT_LINKS=shm unisono run -n 4 -- ./train     over TCP alone")]
pub struct Args {
    /// How many ranks.
    #[arg(short = 'n', long = "ranks", value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    ranks: u32,
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
    let mut launch = Launch::new(args.ranks, program, command.collect());
    launch.output = if args.no_prefix {
        Output::Shared
    } else {
        Output::Prefixed
    };
    launch.timeout = args.timeout;
    launch.grace = args.grace;
    launch.run()
}
