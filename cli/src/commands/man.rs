//! `unisono man`: manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::args::Cli;

/// Write the manual pages into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono man ~/.local/share/man/man1 && man unisono-bench")]
pub struct Args {
    /// The folder; it is made if need be.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes a page for each command that is not hidden.
pub fn run(args: &Args) -> Result<ExitCode> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    clap_mangen::generate_to(Cli::command(), folder)
        .with_context(|| format!("writing manual pages to {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
