//! A rank that waits for long sleeps: on shared memory, on the network, and on both at once.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use unisono::{Buffer, Communicator, InitOptions, Pending, ReduceOp};
use unisono_tests::{Count, CpuShare, Job, Rank, quantiles, soaking, watchdog};

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

/// What a waiting process may take of a core. One that spins takes all of it.
const PERCENT: f64 = 10.0;
/// Its thread looks at aborts and deadlines 20 times a second, and the progress thread at who lives 10 times; twice that.
const WAKES_A_SECOND: f64 = 60.0;

/// Says under `key` what a rank did since `share` began.
fn say(rank: &Rank, key: &str, share: &CpuShare) {
    rank.say(&format!(
        "{key} {:.3} {:.1}",
        share.percent(),
        share.wakes_a_second()
    ));
}

/// What a rank [said](say), in words, if that is hardly anything.
fn hardly_anything(said: &str) -> String {
    let (percent, wakes) = said.split_once(' ').expect("two numbers");
    let number = |text: &str| text.parse::<f64>().expect("a number");
    assert!(number(percent) < PERCENT, "{percent} %");
    assert!(number(wakes) < WAKES_A_SECOND, "{wakes} wakes a second");
    format!("takes {percent} % of a core in {wakes} wakes a second")
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
        for (key, blocked, other) in [
            ("network", &network, &memory),
            ("memory", &memory, &network),
        ] {
            blocked.barrier().expect("barrier");
            other.barrier().expect("barrier");
            if rank.rank == 0 {
                let pending = start(other);
                let share = CpuShare::begin();
                call(blocked);
                say(&rank, key, &share);
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
        memory.finalize().expect("finalize");
        network.finalize().expect("finalize");
    });
    let ranks = ranks.succeed();
    let [network, memory] = ["network", "memory"].map(|key| hardly_anything(ranks[0].answer(key)));
    println!(
        "soak: waiting {late:?} for shared memory and tcp at once, and waking from each: blocked in tcp {network}, in \
         shared memory {memory}"
    );
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
        say(&rank, "rest", &share);
        let wakes: Vec<_> = (0..WAKES.get())
            .map(|_| wake(&world).as_nanos().to_string())
            .collect();
        rank.say(&format!("wakes {}", wakes.join(" ")));
        world.finalize().expect("finalize");
    });
    let ranks = ranks.succeed();
    let rest = hardly_anything(ranks[0].answer("rest"));
    let wakes = ranks[0]
        .answer("wakes")
        .split(' ')
        .map(|nanos| nanos.parse().expect("a number"));
    let mut wakes: Vec<_> = wakes.map(Duration::from_nanos).collect();
    let [median, p99, _] = quantiles(&mut wakes);
    println!(
        "soak: blocked for {late:?} over {} {rest}; {WAKES} wakes: median {median:?}, p99 {p99:?}",
        if tcp { "tcp" } else { "shared memory" }
    );
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
