//! all_reduce after all_reduce, in one buffer that is used again at once.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use unisono::{Communicator, ReduceOp};

use crate::join::LinkArgs;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    link: LinkArgs,
    /// How many calls.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    calls: u64,
    /// Elements of the largest message; they vary.
    #[arg(long, value_name = "N", default_value_t = 16_384)]
    count: usize,
    /// Elements of the smallest.
    #[arg(long, value_name = "N", default_value_t = 1)]
    least: usize,
    /// After that many calls, goes on until this file exists.
    #[arg(long, value_name = "FILE")]
    until: Option<PathBuf>,
    /// Milliseconds to wait between calls.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pause: u64,
}

/// What a rank gives for element `at` of a call: no two calls have the same bytes.
fn given(call: u64, rank: u32, at: usize) -> u32 {
    let seed = (call << 8 | u64::from(rank)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (seed as u32).wrapping_add((at as u32).wrapping_mul(2_654_435_761))
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let world = args.link.join()?;
    let (rank, ranks) = (world.rank(), world.size());
    let least = args.least.max(1);
    let mut buffer = vec![0_u32; args.count.max(least)];
    let (mut longest, start) = (Duration::ZERO, Instant::now());
    let mut call = 0;
    while call < args.calls || goes_on(&world, args)? {
        let count = least + (call as usize * 7919) % (buffer.len() - least + 1);
        let message = &mut buffer[..count];
        for (at, element) in message.iter_mut().enumerate() {
            *element = given(call, rank, at);
        }
        let since = Instant::now();
        if let Err(error) = world.all_reduce_in_place(message, ReduceOp::Sum) {
            println!("rank {rank}: failed after {:.1?}: {error}", since.elapsed());
            return Ok(ExitCode::FAILURE);
        }
        longest = longest.max(since.elapsed());
        let sum = |at| (0..ranks).fold(0_u32, |sum, r| sum.wrapping_add(given(call, r, at)));
        if let Some(at) = (0..count).find(|at| message[*at] != sum(*at)) {
            bail!("rank {rank}: call {call}: element {at} of {count} is wrong");
        }
        if call == 0 {
            println!("rank {rank}: the first call is done");
        }
        std::thread::sleep(Duration::from_millis(args.pause));
        call += 1;
    }
    if rank == 0 {
        println!(
            "{call} calls right in {:.1?}, the longest took {longest:.1?}",
            start.elapsed()
        );
        for link in world.peer_links()? {
            println!("{link}");
        }
    }
    args.link.tell_shared(&world)?;
    world.finalize()?;
    // What a link tells of its connections as it goes is told by the thread that lets go of it last.
    std::thread::sleep(Duration::from_millis(200));
    Ok(ExitCode::SUCCESS)
}

/// Whether the file that ends it is missing still: all ranks go by what rank 0 sees.
fn goes_on(world: &Communicator, args: &Args) -> Result<bool> {
    let Some(path) = &args.until else {
        return Ok(false);
    };
    let mut missing = [u32::from(!path.exists())];
    world.broadcast(&mut missing, 0)?;
    Ok(missing[0] == 1)
}
