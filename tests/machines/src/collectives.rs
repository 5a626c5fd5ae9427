//! Every collective.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow};
use unisono::DataType;
use unisono_tests::everything;

use crate::join::LinkArgs;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    link: LinkArgs,
    /// Elements of a message, or of a rank's share of it; several separated by commas.
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,33")]
    counts: Vec<usize>,
    /// Types, separated by commas, or `all`.
    #[arg(long, value_name = "TYPE", value_parser = types, default_value = "all")]
    types: Types,
}

/// A list in one argument.
#[derive(Clone, Debug)]
struct Types(Vec<DataType>);

fn types(text: &str) -> Result<Types, String> {
    if text == "all" {
        return Ok(Types(DataType::ALL.to_vec()));
    }
    let all: Result<_, String> = text.split(',').map(str::parse).collect();
    Ok(Types(all?))
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let world = args.link.join()?;
    let start = Instant::now();
    let calls = everything(&world, &args.counts, &args.types.0).map_err(|what| anyhow!(what))?;
    if world.rank() == 0 {
        println!(
            "{calls} calls of {} ranks right in {:.1?}",
            world.size(),
            start.elapsed()
        );
    }
    world.finalize()?;
    Ok(ExitCode::SUCCESS)
}
