//! `unisono`: starts ranks, measures, shows and checks.

mod args;
mod commands;
mod join;
mod launch;
mod logging;
mod output;
mod units;

use std::process::ExitCode;

use clap::Parser;

use args::Cli;

fn main() -> ExitCode {
    let cli = Cli::parse();
    logging::install(cli.verbose);
    match commands::run(cli.command) {
        Ok(code) => code,
        Err(error) => {
            output::error(&error);
            ExitCode::FAILURE
        }
    }
}
