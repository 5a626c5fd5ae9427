//! The host plugin's reductions beside a plain loop that adds, for every type and several sizes.
//!
//! `cargo xtask reduction` runs this program and keeps its page. That results are right is tested in
//! `plugins/host/src/reduce/tests.rs`; here the instruction sets are only compared with each other.

mod cell;
mod operands;
mod page;
mod plain;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;

/// In the first-level cache, in the second, in the third, in memory.
const SIZES: [usize; 4] = [8 << 10, 256 << 10, 4 << 20, 64 << 20];

/// Measure the reductions of the host plugin, and write the page.
#[derive(Parser)]
struct Args {
    /// How long each of the 172 cells is measured, in milliseconds; three rounds at least.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    cell_ms: u64,
    /// Write the page to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A line for the page that says on what it was run.
    #[arg(long, default_value = "")]
    about: String,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let time = Duration::from_millis(args.cell_ms);
    let mut cells = Vec::new();
    for size in SIZES {
        let mut operands = operands::Operands::new(size);
        for (dtype, reduction) in cell::cases() {
            cells.push(cell::measure(&mut operands, dtype, reduction, time)?);
        }
        eprintln!("{} measured", page::size(size));
    }
    let page = page::page(&cells, args.cell_ms, &args.about);
    match &args.output {
        Some(path) => {
            std::fs::write(path, page).with_context(|| format!("writing {}", path.display()))
        }
        None => {
            print!("{page}");
            Ok(())
        }
    }
}
