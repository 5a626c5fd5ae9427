//! A rank that waits for long sleeps: on shared memory, on the network, and on both at once.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use unisono::{Buffer, Communicator, InitOptions, Pending, ReduceOp};
use unisono_tests::{Count, CpuShare, Job, quantiles, soaking, watchdog};

const LIMIT: Duration = Duration::from_secs(120);
const WAKES: Count = Count::new(5, 100);

fn without_shm(options: &mut InitOptions) {
    options.without_links = vec!["shm".to_owned()];
}

fn call(world: &Communicator) {
    let mut data = [1.0_f32; 1000];
    world
        .all_reduce_in_place(&mut data, ReduceOp::Sum)
        .expect("all_reduce");
    assert!(data.iter().all(|x| *x == world.size() as f32));
}

fn start(world: &Communicator) -> Pending<Buffer<f32>> {
    let mut data = world.buffer(1000).expect("memory");
    data.fill(1.0);
    world.start_all_reduce(data, ReduceOp::Sum).expect("start")
}

/// The system's monotonic clock, which all processes share.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Rank 0 waits in shared memory and over TCP at once; rank 1 comes late, first to the one that
/// rank 0's thread is not blocked in, then to the other.
#[test]
fn a_rank_that_waits_for_memory_and_network_at_once_sleeps() {
    let _limit = watchdog(
        "a_rank_that_waits_for_memory_and_network_at_once_sleeps",
        LIMIT,
    );
    let late = Duration::from_secs(if soaking() { 5 } else { 2 });
    let job = Job::new("a_rank_that_waits_for_memory_and_network_at_once_sleeps", 2);
    let ranks = job.start(|rank| {
        let memory = rank.init(|_| {});
        let network = rank.init(|options| {
            options.job.push_str("-network");
            without_shm(options);
        });
        let mut most = 0.0_f64;
        for (blocked, other) in [(&network, &memory), (&memory, &network)] {
            blocked.barrier().expect("barrier");
            other.barrier().expect("barrier");
            if rank.rank == 0 {
                let pending = start(other);
                let share = CpuShare::begin();
                call(blocked);
                most = most.max(share.percent());
                pending.wait().expect("done");
            } else {
                std::thread::sleep(late);
                let since = Instant::now();
                // Rank 0 is woken by this although its thread is blocked in another call.
                call(other);
                let woke = since.elapsed();
                assert!(woke < Duration::from_secs(1), "{woke:?}");
                call(blocked);
            }
        }
        rank.say(&format!("percent {most:.3}"));
        memory.finalize().expect("finalize");
        network.finalize().expect("finalize");
    });
    let ranks = ranks.succeed();
    let percent: f64 = ranks[0].answer("percent").parse().expect("a number");
    println!(
        "soak: waiting {late:?} for shared memory and tcp at once takes {percent:.2} % of a core, and wakes from each"
    );
    assert!(percent < 1.0, "{percent} %");
}

/// Rank 0 is blocked and rank 1 comes late: what that costs, and how soon rank 0 goes on.
fn peer_comes_late(test: &str, tcp: bool) {
    let _limit = watchdog(test, LIMIT);
    let late = Duration::from_secs(if soaking() { 3 } else { 1 });
    let ranks = Job::new(test, 2).start(move |rank| {
        let world = rank.init(|options| {
            if tcp {
                without_shm(options);
            }
        });
        world.barrier().expect("barrier");
        let share = CpuShare::begin();
        if rank.rank == 1 {
            std::thread::sleep(late);
        }
        call(&world);
        rank.say(&format!("percent {:.3}", share.percent()));
        let wakes: Vec<_> = (0..WAKES.get())
            .map(|_| wake(&world).as_nanos().to_string())
            .collect();
        rank.say(&format!("wakes {}", wakes.join(" ")));
        world.finalize().expect("finalize");
    });
    let ranks = ranks.succeed();
    let percent: f64 = ranks[0].answer("percent").parse().expect("a number");
    let wakes = ranks[0]
        .answer("wakes")
        .split(' ')
        .map(|nanos| nanos.parse().expect("a number"));
    let mut wakes: Vec<_> = wakes.map(Duration::from_nanos).collect();
    let [median, p99, _] = quantiles(&mut wakes);
    println!(
        "soak: blocked for {late:?} over {} takes {percent:.2} % of a core; {WAKES} wakes: median {median:?}, p99 {p99:?}",
        if tcp { "tcp" } else { "shared memory" }
    );
    assert!(percent < 3.0, "{percent} %");
    assert!(
        median < Duration::from_millis(15),
        "nobody but a timer woke it: {median:?}"
    );
}

/// Rank 0: how long after rank 1 sent it is back from a call that it has slept in.
fn wake(world: &Communicator) -> Duration {
    let mut sent = [0_u64];
    if world.rank() == 1 {
        std::thread::sleep(Duration::from_millis(53));
        world.send(&[now().as_nanos() as u64], 0).expect("send");
    } else {
        world.recv(&mut sent, 1).expect("recv");
    }
    now().saturating_sub(Duration::from_nanos(sent[0]))
}

#[test]
fn a_rank_blocked_in_shared_memory_sleeps_and_wakes() {
    peer_comes_late("a_rank_blocked_in_shared_memory_sleeps_and_wakes", false);
}

#[test]
fn a_rank_blocked_over_tcp_sleeps_and_wakes() {
    peer_comes_late("a_rank_blocked_over_tcp_sleeps_and_wakes", true);
}
