//! The subcommands, a file each.

pub mod bench;
pub mod completions;
pub mod config;
pub mod explain;
pub mod man;
pub mod plan;
pub mod plugin;
pub mod run;
pub mod simulate;
pub mod topo;
pub mod tune;

use std::process::ExitCode;

use anyhow::Result;

use crate::args::Command;

/// Does what was asked.
pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Bench(args) => bench::run(&args),
        Command::Topo(args) => topo::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Plugin(args) => plugin::run(args),
        Command::Config(args) => config::run(args),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    }
}
