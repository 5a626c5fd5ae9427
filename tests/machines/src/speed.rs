//! One link between two processes, below the collectives: what perftest's `ib_write_bw` and
//! `ib_write_lat` measure, measured alike.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use unisono::hal::{Queue, SleepWays};
use unisono_conformance::sleep::Sleeper;
use unisono_conformance::{Case, Checked, Ends, Peer, Stop, batch};

use crate::join::LinkArgs;
use crate::pair::PairArgs;

/// Puts under way at once, as perftest's depth of its send queue.
const DEPTH: u64 = 128;
/// Time without pause before the core is given up, and time awake before a sleep: as the library's calls
/// wait. A core that only polls is missing where the kernel must work for the link.
const CALLS: Waiting = Waiting {
    spinning: Duration::from_micros(50),
    awake: Duration::from_micros(200),
};
/// As perftest waits for a short write: it only polls.
const PERFTEST: Waiting = Waiting {
    spinning: Duration::from_millis(20),
    awake: Duration::from_millis(40),
};

/// How one waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    spinning: Duration,
    awake: Duration,
}

/// Polls between two looks at the clock.
const LOOK: u32 = 16;
/// The longest measurement.
const LIMIT: Duration = Duration::from_secs(120);
/// The flag that the peer raises for what was measured.
const FLAG: u64 = 0;
/// The flag that ends a measurement of bandwidth.
const END: u64 = 1;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    link: LinkArgs,
    /// Bytes of a put for the bandwidth; several separated by commas.
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "65536,1048576"
    )]
    bytes: Vec<u64>,
    /// Bytes to move for each.
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    volume: u64,
    /// Round trips for the latency.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rounds: u64,
    #[command(flatten)]
    pair: PairArgs,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let path = LinkArgs::library(&args.link.plugin)?
        .with_context(|| format!("no plugin {} beside this program", args.link.plugin))?;
    let mut pair = args.pair.meet()?;
    let peer = Peer::new(pair.socket.try_clone()?, pair.role)?;
    let case = Case::new(path, args.link.params(pair.role), pair.role, Some(peer));
    measure(&case, args).map_err(|stop| match stop {
        Stop::Failed(what) | Stop::Unsupported(what) => anyhow!(what),
    })?;
    pair.part()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints half the median of round trips.
pub fn tell_latency(mut times: Vec<Duration>) {
    times.sort_unstable();
    let half = |at: usize| times[at].as_secs_f64() * 5e5;
    println!(
        "latency 8 B: {:.2} us (median of {}), {:.2} us (least)",
        half(times.len() / 2),
        times.len(),
        half(0)
    );
}

fn measure(case: &Case, args: &Args) -> Checked {
    let most = args.bytes.iter().copied().max().unwrap_or(1).max(64);
    let mut ends = Ends::connect_with(case, 1, most)?;
    let (warm, rounds) = (args.rounds / 10, args.rounds.max(1));
    let mut done = 0;
    ping_pong(&mut ends, warm, &mut done)?;
    let times = ping_pong(&mut ends, rounds, &mut done)?;
    if case.role() == 0 {
        tell_latency(times);
    }
    for (turn, bytes) in (1..).zip(&args.bytes) {
        let puts = (args.volume / bytes).max(DEPTH.min(32));
        stream(&mut ends, *bytes, 8, 2 * turn - 1)?;
        let took = stream(&mut ends, *bytes, puts, 2 * turn)?;
        if case.role() == 0 {
            let rate = (puts * bytes) as f64 / took.as_secs_f64() / f64::from(1 << 20);
            println!("bandwidth {bytes} B: {rate:.2} MiB/s");
        }
    }
    ends.part()
}

/// Puts of 8 bytes there and back; the time of each round trip. What is no part of a put (memory, clocks) is
/// kept out of the way, as perftest does.
fn ping_pong(ends: &mut Ends<'_>, rounds: u64, done: &mut u64) -> Checked<Vec<Duration>> {
    let mut times = Vec::with_capacity(rounds as usize);
    let sleeper = Sleeper::new();
    let put = ends.put(0, 8, 0, FLAG);
    let mut one = batch();
    for _ in 0..rounds {
        let start = Instant::now();
        *done += 1;
        if ends.role() == 1 {
            wait(ends, &sleeper, FLAG, *done, PERFTEST)?;
        }
        one.put(&put);
        ends.link.submit(&mut one)?;
        if !one.is_empty() {
            ends.submit(&mut one)?;
        }
        if ends.role() == 0 {
            wait(ends, &sleeper, FLAG, *done, PERFTEST)?;
        }
        times.push(start.elapsed());
    }
    Ok(times)
}

/// Puts from the first process to the other, which answers when all have come.
fn stream(ends: &mut Ends<'_>, bytes: u64, puts: u64, turn: u64) -> Checked<Duration> {
    let before = ends.flags.value(2);
    let sleeper = Sleeper::new();
    ends.meet(turn)?;
    let start = Instant::now();
    if ends.role() == 0 {
        for _ in 0..puts {
            let mut one = batch();
            one.put(&ends.put(0, bytes, 0, 2));
            ends.submit(&mut one)?;
        }
        wait(ends, &sleeper, END, turn, CALLS)?;
    } else {
        wait(ends, &sleeper, 2, before + puts, CALLS)?;
        let mut one = batch();
        one.put(&ends.put(0, 0, 0, END));
        ends.submit(&mut one)?;
        ends.drain()?;
    }
    Ok(start.elapsed())
}

/// Polls until a flag has come so far: without pause at first and with a look at the clock now and then, then
/// giving the core up, then asleep.
fn wait(
    ends: &mut Ends<'_>,
    sleeper: &Sleeper,
    flag: u64,
    value: u64,
    waiting: Waiting,
) -> Checked {
    let mut polls = 0_u32;
    // When something last moved, and when that is too long ago: looked at when nothing comes at once.
    let mut clock: Option<(Instant, Instant)> = None;
    while ends.flags.value(flag) < value {
        if ends.link.poll(1 << 20)?.moved {
            if let Some((since, _)) = &mut clock {
                *since = Instant::now();
            }
            continue;
        }
        polls += 1;
        if !polls.is_multiple_of(LOOK) {
            continue;
        }
        let now = Instant::now();
        let (since, end) = clock.get_or_insert((now, now + LIMIT));
        match now.saturating_duration_since(*since) {
            time if time < waiting.spinning => {}
            time if time < waiting.awake => std::thread::yield_now(),
            _ => {
                sleeper.sleep(&mut ends.link, SleepWays::FD)?;
            }
        }
        if now > *end {
            return Err(Stop::failed(format!("nothing came within {LIMIT:?}")));
        }
    }
    Ok(())
}
