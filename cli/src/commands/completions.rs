//! `unisono completions`: completions for shells.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::output;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono completions bash > ~/.local/share/bash-completion/completions/unisono
  unisono completions zsh  > ~/.zfunc/_unisono")]
pub struct Args {
    /// The shell.
    shell: Shell,
}

/// Prints them.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "unisono", &mut text);
    output::print(&String::from_utf8(text)?)?;
    Ok(ExitCode::SUCCESS)
}
