//! Messages of more than 4 GiB, really sent: every offset and count that would lose its upper half
//! in 32 bits shows.

use std::time::{Duration, Instant};

use unisono::{Communicator, InitOptions, ReduceOp};
use unisono_tests::{Count, threads};

/// Bytes of a message: beyond 4 GiB by more than a block, and no multiple of a cache line.
const BYTES: Count = Count::new((24 << 20) + 34, (4 << 30) + (80 << 20) + 34);

/// What a rank has at a place; small enough that two ranks' sums fit a byte.
fn pattern(rank: u32, at: usize) -> u8 {
    let mixed = (at as u64 ^ u64::from(rank) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 57) as u8
}

fn fill(data: &mut [u8], first: usize, rank: u32) {
    for (at, byte) in (first..).zip(data) {
        *byte = pattern(rank, at);
    }
}

/// The first place that is wrong.
fn wrong(data: &[u8], expected: impl Fn(usize) -> u8) -> Option<usize> {
    (0..data.len()).find(|at| data[*at] != expected(*at))
}

/// The largest that this process has been, in GiB.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / f64::from(1 << 20)
}

fn all(world: &Communicator, bytes: usize) -> [Duration; 3] {
    let rank = world.rank();
    let mut data = vec![0_u8; bytes];
    let time = |call: &mut dyn FnMut() -> unisono::Result<()>, what: &str| {
        let since = Instant::now();
        call().expect(what);
        since.elapsed()
    };

    if rank == 1 {
        fill(&mut data, 0, 1);
    }
    let broadcast = time(&mut || world.broadcast(&mut data, 1), "broadcast");
    assert_eq!(wrong(&data, |at| pattern(1, at)), None, "broadcast");

    data.fill(0xff);
    let half = bytes / 2;
    let own = rank as usize * half;
    fill(&mut data[own..own + half], own, rank);
    let gather = time(&mut || world.all_gather_in_place(&mut data), "all_gather");
    let from = |at: usize| u32::from(at >= half);
    assert_eq!(wrong(&data, |at| pattern(from(at), at)), None, "all_gather");

    fill(&mut data, 0, rank);
    let reduce = time(
        &mut || world.all_reduce_in_place(&mut data, ReduceOp::Sum),
        "all_reduce",
    );
    let sum = |at: usize| pattern(0, at) + pattern(1, at);
    assert_eq!(wrong(&data, sum), None, "all_reduce");
    [broadcast, gather, reduce]
}

fn over(name: &str, adjust: fn(&mut InitOptions)) {
    let bytes = BYTES.get() as usize;
    let times = threads(
        2,
        move |options| {
            adjust(options);
            options.timeouts.op = Duration::from_secs(900);
        },
        move |world| {
            let times = all(&world, bytes);
            world.finalize().expect("finalize");
            times
        },
    );
    let [broadcast, gather, reduce] = times[0];
    println!(
        "soak: {BYTES} bytes, u8, 2 ranks as threads over {name}: broadcast {broadcast:.2?}, \
         all_gather {gather:.2?}, all_reduce {reduce:.2?}, all bytes right; at most {:.1} GiB of memory",
        peak()
    );
}

/// One after the other: each needs as much memory as two messages.
#[test]
fn messages_beyond_four_gibibytes() {
    over("shared memory", |_| {});
    over("tcp", |options| {
        options.without_links = vec!["shm".to_owned()];
    });
}
