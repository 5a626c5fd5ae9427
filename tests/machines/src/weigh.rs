//! all_reduce between hosts: its time, and the bytes that leave a host beside what the plan says.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use unisono::{Communicator, DataType, Op, ReduceOp};

use crate::join::LinkArgs;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    link: LinkArgs,
    /// Bytes of the message.
    #[arg(long, value_name = "N", default_value_t = 4 << 20)]
    bytes: u64,
    /// Calls a round; the time is the median of the rounds.
    #[arg(long, value_name = "N", default_value_t = 3)]
    calls: u32,
    /// Rounds.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: u32,
    /// The card whose bytes are counted on each host.
    #[arg(long, value_name = "NAME", default_value = "eth0")]
    card: String,
    /// Write the job's link graph to this file.
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let world = args.link.join()?;
    let count = (args.bytes / 4).max(1) as usize;
    let mut data = vec![1.0_f32; count];
    one(&world, &mut data)?;
    let mut times = Vec::new();
    let before = sent(&args.card)?;
    for _ in 0..args.rounds.max(1) {
        let mut took = Duration::ZERO;
        for _ in 0..args.calls {
            took += one(&world, &mut data)?;
        }
        times.push(took.as_secs_f64() * 1e3 / f64::from(args.calls.max(1)));
    }
    // Who is first may still send for others.
    world.barrier()?;
    let counted = (sent(&args.card)? - before) / u64::from(args.rounds * args.calls).max(1);
    let (mut most, mut least) = ([counted], [counted]);
    world.all_reduce_in_place(&mut most, ReduceOp::Max)?;
    world.all_reduce_in_place(&mut least, ReduceOp::Min)?;
    if world.rank() == 0 {
        times.sort_by(f64::total_cmp);
        let explained = world.explain(Op::AllReduce, args.bytes, DataType::F32)?;
        let busiest = world.bottleneck(&explained)?.busiest;
        let (what, planned) = busiest.map_or(("nothing".to_owned(), 0), |b| (b.what, b.bytes));
        println!(
            "algorithm {} ms {:.3} planned {planned} counted {} least {} of {what}",
            explained.selection().winner().label,
            times[times.len() / 2],
            most[0],
            least[0],
        );
        if let Some(path) = &args.graph {
            fs::write(path, world.graph().to_json())
                .with_context(|| format!("writing {}", path.display()))?;
        }
    }
    if args.link.shared {
        println!("device {}", world.device().info().name);
    }
    args.link.tell_shared(&world)?;
    world.finalize()?;
    Ok(ExitCode::SUCCESS)
}

/// The time of one call, checked at a few places: that all of them are right is for other suites. All
/// ranks have their data when it begins.
fn one(world: &Communicator, data: &mut [f32]) -> Result<Duration> {
    data.fill(1.0);
    world.barrier()?;
    let start = Instant::now();
    world.all_reduce_in_place(data, ReduceOp::Sum)?;
    let took = start.elapsed();
    let expected = world.size() as f32;
    if let Some(at) = data.iter().step_by(97).position(|x| *x != expected) {
        bail!("rank {}: element {} is wrong", world.rank(), at * 97);
    }
    Ok(took)
}

fn sent(card: &str) -> Result<u64> {
    let path = format!("/sys/class/net/{card}/statistics/tx_bytes");
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    Ok(text.trim().parse()?)
}
