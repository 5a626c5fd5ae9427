//! `unisono config`: checks and shows the cluster file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use unisono::cluster;

use crate::join::JoinArgs;
use crate::output;

/// Check and show the cluster file
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say all that is wrong with a cluster file, with line, column and remedy
    Check {
        /// The file.
        file: PathBuf,
    },
    /// Show the configuration in effect: defaults, file, environment
    Show {
        /// Where each value comes from, as comments.
        #[arg(long)]
        sources: bool,
        #[command(flatten)]
        join: Box<JoinArgs>,
    },
    /// Print the JSON Schema of cluster files, for editors
    Schema,
}

/// Does what was asked.
pub fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::Check { file } => check(&file),
        Command::Show { sources, join } => {
            let effective = join.init()?.cluster()?;
            for warning in &effective.warnings {
                log::warn!("{warning}");
            }
            output::print(&cluster::show(&effective, sources))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Schema => {
            let schema = serde_json::to_string_pretty(&cluster::schema())?;
            output::print(&format!("{schema}\n"))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn check(file: &std::path::Path) -> Result<ExitCode> {
    match cluster::check(file) {
        Ok(warnings) => {
            for warning in &warnings {
                output::line(&format!("warning: {warning}"));
            }
            output::print(&format!("{}: no problems\n", file.display()))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(problems) => {
            for problem in &problems {
                eprintln!("{problem}\n");
            }
            let s = if problems.len() == 1 { "" } else { "s" };
            output::line(&format!(
                "{}: {} problem{s}",
                file.display(),
                problems.len()
            ));
            Ok(ExitCode::FAILURE)
        }
    }
}
