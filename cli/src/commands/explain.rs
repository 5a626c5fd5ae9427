//! `unisono explain`: why a call runs as it does.

use std::process::ExitCode;

use anyhow::{Result, bail};
use unisono::plan::OpKind;
use unisono::{Communicator, DataType, TuneOptions};

use crate::join::{JoinArgs, RankArgs};
use crate::{output, units};

/// Show which algorithms could run a call, what each is predicted to take, why the winner won, and
/// what limits it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono explain all_reduce --bytes 64M --ranks 4
  unisono explain all_gather --bytes 1M --ranks 4 --measure
  unisono explain all_to_all --bytes 1M --ranks 2 --windows
  unisono explain all_reduce --ranks 4
  unisono explain broadcast --bytes 1K --ranks 8 --without-links shm")]
pub struct Args {
    /// The operation: all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter,
    /// all_to_all, barrier, send, recv.
    op: OpKind,
    /// Bytes of the whole message; a barrier has none. What runs at which size, if absent.
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    bytes: Option<u64>,
    /// The data type.
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    dtype: DataType,
    /// Run every candidate right now, on floats, and show what it took beside what was predicted.
    #[arg(long)]
    measure: bool,
    /// Of buffers in windows: memory of `Communicator::alloc`, which peers map.
    #[arg(long, requires = "bytes", conflicts_with = "measure")]
    windows: bool,
    #[command(flatten)]
    ranks: RankArgs,
    #[command(flatten)]
    join: JoinArgs,
}

/// Explains. Without a launcher and without a number of ranks, two are started.
pub fn run(args: &Args) -> Result<ExitCode> {
    let bytes = match args.op {
        OpKind::Barrier => Some(0),
        _ => args.bytes,
    };
    if args.measure && bytes.is_none() {
        bail!("--measure is of one size: say which by --bytes");
    }
    let launched = unisono::bootstrap::RankInfo::from_environment().is_ok();
    if let Some(code) = args.ranks.launch((!launched).then_some(2))? {
        return Ok(code);
    }
    let communicator = args.join.join(false)?;
    let Some(bytes) = bytes else {
        if communicator.rank() == 0 {
            let op = args.op.with(0, [communicator.size() - 1; 2]);
            let front = communicator.front(op, args.dtype)?;
            output::print(&format!("{front}\n"))?;
        }
        communicator.finalize()?;
        return Ok(ExitCode::SUCCESS);
    };
    let explanation = if args.measure {
        if !matches!(args.op, OpKind::Send | OpKind::Recv) {
            let options = TuneOptions::default();
            communicator.explain_measured(args.op, bytes, &options)?
        } else {
            bail!("--measure is for collectives; `unisono bench` measures sends and receives");
        }
    } else {
        let op = args.op.with(0, [communicator.size() - 1; 2]);
        // Links that nobody uses are not made: these few can be told of.
        communicator.barrier()?;
        match communicator.rank() {
            // A rank neither sends to itself nor has anything to explain then.
            rank if !op.is_collective() && rank > 0 => {
                communicator.finalize()?;
                return Ok(ExitCode::SUCCESS);
            }
            _ if args.windows => communicator.explain_windows(op, bytes, args.dtype)?,
            _ => communicator.explain(op, bytes, args.dtype)?,
        }
    };
    if communicator.rank() == 0 {
        let bottleneck = communicator.bottleneck(&explanation)?;
        output::print(&format!("{explanation}\n{bottleneck}\n"))?;
        let winner = explanation.selection().winner();
        let template = &winner.template;
        if winner.windowed {
            output::print(
                "Peers' buffers are read and written where they lie: no byte passes a slot.\n",
            )?;
        } else if template.reads_peers() {
            output::print(
                "Ranks read each other's memory where it lies: no byte passes a slot.\n",
            )?;
        } else if template.shows_puts() {
            output::print(
                "What others need a rank writes once, into memory that all map, and they read it there.\n",
            )?;
        } else {
            output::print(&communicator.memory_paths().to_string())?;
        }
        output::print(&links(&communicator)?)?;
    }
    communicator.finalize()?;
    Ok(ExitCode::SUCCESS)
}

/// Lines about so many links at most.
const LINKS: usize = 8;

/// What this rank's links have done so far, a line each; nothing of those that were not used.
fn links(communicator: &Communicator) -> Result<String> {
    let mut links = communicator.peer_links()?;
    // A link whose connections are all lost just now is one to be told of.
    links.retain(|link| {
        link.statistics.as_ref().is_some_and(|seen| {
            seen.connections > 0 || seen.bytes_sent > 0 || seen.bytes_received > 0
        })
    });
    let mut lines: String = links.iter().take(LINKS).map(|l| format!("{l}\n")).collect();
    if links.len() > LINKS {
        lines += &format!("And {} more links.\n", links.len() - LINKS);
    }
    Ok(lines)
}
