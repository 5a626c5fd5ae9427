//! `unisono`: the command line of the library.
// NOTE to the helper on cli/: the lead is writing run/ and bench/ (these two) right now. Yours are
// topo, plugin, config, explain, completions, man, logging (stderr with the rank), one file each:
// add them to `Task` below. Remove this note when all are there. The C API can come after them.

mod bench;
mod run;
mod size;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Collective communication between accelerators of several vendors in one job.
#[derive(Parser)]
#[command(name = "unisono", version)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Start ranks of a program on this machine.
    Run(run::Args),
    /// Measure collectives, with checked results, in the way of nccl-tests.
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Run(args) => run::main(&args),
        Task::Bench(args) => bench::main(&args),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
