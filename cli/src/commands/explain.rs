//! `unisono explain`: why a call runs as it does.

use std::process::ExitCode;

use anyhow::Result;
use unisono::plan::OpKind;
use unisono::{DataType, Op};

use crate::join::{JoinArgs, RankArgs};
use crate::{output, units};

/// Show which algorithms could run a call, what each is predicted to take, and why the winner won
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  unisono explain all_reduce --bytes 64M --ranks 4
  unisono explain broadcast --bytes 1K --ranks 8 --without-links shm")]
pub struct Args {
    /// The operation: all_reduce, reduce_scatter, all_gather, broadcast, barrier, send, recv.
    op: OpKind,
    /// Bytes of the whole message.
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    bytes: u64,
    /// The data type.
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    dtype: DataType,
    #[command(flatten)]
    ranks: RankArgs,
    #[command(flatten)]
    join: JoinArgs,
}

/// Explains. Without a launcher and without a number of ranks, two are started.
pub fn run(args: &Args) -> Result<ExitCode> {
    let launched = unisono::bootstrap::RankInfo::from_environment().is_ok();
    if let Some(code) = args.ranks.launch((!launched).then_some(2))? {
        return Ok(code);
    }
    let communicator = args.join.join(false)?;
    if communicator.rank() == 0 {
        let other = communicator.size() - 1;
        let op = match args.op {
            OpKind::AllReduce => Op::AllReduce,
            OpKind::ReduceScatter => Op::ReduceScatter,
            OpKind::AllGather => Op::AllGather,
            OpKind::Broadcast => Op::Broadcast { root: 0 },
            OpKind::Reduce => Op::Reduce { root: 0 },
            OpKind::Gather => Op::Gather { root: 0 },
            OpKind::Scatter => Op::Scatter { root: 0 },
            OpKind::AllToAll => Op::AllToAll,
            OpKind::Barrier => Op::Barrier,
            OpKind::Send => Op::Send { to: other },
            OpKind::Recv => Op::Recv { from: other },
        };
        let explanation = communicator.explain(op, args.bytes, args.dtype)?;
        output::print(&format!("{explanation}\n"))?;
    }
    communicator.finalize()?;
    Ok(ExitCode::SUCCESS)
}
