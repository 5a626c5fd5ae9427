//! Ranks that are processes on one device: memory is shared by the driver's own means.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use unisono::Communicator;
use unisono::bootstrap::RootSpec;
use unisono::plan::Op;
use unisono_emulated_tests::every_collective;
use unisono_tests::options;

use crate::collectives::{Home, Prepared, median};
use crate::{Scale, Settings, first_device};

/// How long a job may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of the short message.
const SHORT: usize = 8 << 10;

/// What a rank's process does: every collective, right to the element, then a short one again and again.
/// The first says what the median was, in nanoseconds.
pub fn rank(arguments: &[String], scale: Scale) -> Result<()> {
    let [rank, ranks, job] = arguments else {
        bail!("a rank, how many there are, and the name of their job");
    };
    let mut options = options(rank.parse()?, ranks.parse()?, RootSpec::Node);
    first_device(&mut options);
    options.job.clone_from(job);
    let world = Communicator::init(options)?;
    for elements in [1, 1000, 70_001] {
        every_collective::<f32>(&world, elements, elements as u64);
    }
    let prepared = Prepared::new(&world, Home::Own, SHORT);
    let times = prepared.times(&world, Op::AllReduce, scale.short_repeats);
    if world.rank() == 0 {
        println!("{}", median(times).as_nanos());
    }
    Ok(())
}

/// Runs so many; the median of a short all_reduce.
pub fn measure(ranks: u32, emulated: bool) -> Result<Duration> {
    let job = format!("gpu-{}-{ranks}", std::process::id());
    let start = |rank: u32| {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("--rank")
            .args([rank.to_string(), ranks.to_string(), job.clone()])
            .args(Settings::own().arguments())
            .stdout(Stdio::piped());
        if emulated {
            command.arg("--emulated");
        }
        command.spawn().context("starting a rank")
    };
    let mut running = (0..ranks).map(start).collect::<Result<Vec<_>>>()?;
    let ended = wait(&mut running);
    if ended.is_err() {
        for child in &mut running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
    ended?;
    let mut said = String::new();
    if let Some(output) = running.first_mut().and_then(|child| child.stdout.as_mut()) {
        output.read_to_string(&mut said)?;
    }
    let nanoseconds = said.trim().parse().context("what the first rank said")?;
    Ok(Duration::from_nanos(nanoseconds))
}

fn wait(running: &mut [Child]) -> Result<()> {
    let since = Instant::now();
    for (rank, child) in running.iter_mut().enumerate() {
        loop {
            match child.try_wait()? {
                Some(status) if status.success() => break,
                Some(status) => bail!("rank {rank} ended with {status}"),
                None if since.elapsed() > PATIENCE => bail!("rank {rank} does not end"),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
    Ok(())
}
