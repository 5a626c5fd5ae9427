//! Every collective.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow};
use unisono::DataType;
use unisono_tests::{everything, everything_there_is};

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
    let (counts, types) = (&args.counts, &args.types.0);
    let outcome = match args.link.as_configured {
        true => everything_there_is(&world, counts, types),
        false => everything(&world, counts, types).map(|calls| [calls, 0]),
    };
    let [calls, refused] = outcome.map_err(|what| anyhow!(what))?;
    if calls <= refused {
        return Err(anyhow!("only {calls} calls were right, {refused} refused"));
    }
    if world.rank() == 0 {
        let refused = match refused {
            0 => String::new(),
            _ => format!(", {refused} that a device has not refused"),
        };
        println!(
            "{calls} calls of {} ranks right{refused} in {:.1?}",
            world.size(),
            start.elapsed()
        );
    }
    args.link.tell_shared(&world)?;
    world.finalize()?;
    Ok(ExitCode::SUCCESS)
}
