//! The command line: what there is. Each subcommand's own arguments stand in its file.

use clap::{Parser, Subcommand};

use crate::commands::{
    bench, completions, config, explain, man, plan, plugin, run, simulate, topo, tune,
};

/// Collective communication between accelerators of several vendors.
#[derive(Debug, Parser)]
#[command(
    name = "unisono",
    version,
    propagate_version = true,
    max_term_width = 100
)]
#[command(after_help = "\
Examples:
  unisono bench all_reduce --ranks 4          measure, with checked results
  unisono run -n 4 -- ./train                 start four ranks on this machine
  unisono topo --ranks 4 --format svg -o job.svg
  unisono explain all_reduce --bytes 64M --ranks 4
  unisono tune --ranks 4                      measure once, choose by it from then on

Exit codes: 0 all is well, 1 something failed, 2 the command line is wrong; `run` and `bench \
--ranks` end with the code of the first rank that failed.")]
pub struct Cli {
    /// More of what happens, on standard error; twice or three times for still more.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Run(run::Args),
    Bench(Box<bench::Args>),
    Topo(topo::Args),
    Explain(explain::Args),
    Tune(tune::Args),
    Plan(Box<plan::Args>),
    Simulate(simulate::Args),
    Plugin(plugin::Args),
    Config(config::Args),
    Completions(completions::Args),
    Man(man::Args),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
