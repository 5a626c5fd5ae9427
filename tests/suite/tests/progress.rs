//! Progress is process-wide, and starting a call is not doing it.

use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use unisono::{Buffer, Communicator, InitOptions, Pending, ReduceOp};
use unisono_tests::{
    Count, Job, Rng, Watchdog, preemptions, quantiles, soaking, threads, watchdog,
};

const LIMIT: Duration = Duration::from_secs(600);
const STARTS: Count = Count::new(30, 500);
const COMPUTES: Count = Count::new(4, 20);
const COMMUNICATORS: Count = Count::new(8, 32);

/// One test at a time: they measure, and share the process's progress.
fn alone(test: &str) -> (MutexGuard<'static, ()>, Watchdog) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (alone, watchdog(test, LIMIT))
}

fn without_shm(options: &mut InitOptions) {
    options.without_links = vec!["shm".to_owned()];
}

fn either(tcp: bool) -> impl Fn(&mut InitOptions) + Send + Sync + 'static {
    move |options| {
        if tcp {
            without_shm(options);
        }
    }
}

/// How long something took each time, and when the system did not interrupt it to run somebody else.
#[derive(Default)]
struct Times {
    all: Vec<Duration>,
    undisturbed: Vec<Duration>,
}

impl Times {
    fn time<T>(&mut self, start: impl FnOnce() -> T) -> T {
        let before = preemptions();
        let since = Instant::now();
        let started = start();
        let time = since.elapsed();
        self.all.push(time);
        if preemptions() == before {
            self.undisturbed.push(time);
        }
        started
    }

    /// Of what was not interrupted; of all, where a busy machine interrupted every one.
    fn quantiles(&mut self) -> [Duration; 3] {
        if self.undisturbed.is_empty() {
            self.undisturbed.clone_from(&self.all);
        }
        quantiles(&mut self.undisturbed)
    }
}

/// Rank 0 starts 64 MiB, and 8 B behind it, while no peer is there; the peer comes later. The second
/// times are those of waking a thread that sleeps, which is what a start must do, in the same rounds.
fn starts(tcp: bool, count: u64) -> (Times, Times) {
    let ranks = threads(2, either(tcp), move |world| {
        let gate = world.duplicate().expect("duplicate");
        let mut large: Buffer<f32> = world.buffer(16 << 20).expect("64 MiB");
        let mut small: Buffer<f32> = world.buffer(2).expect("8 B");
        let (mut starts, mut wakes) = (Times::default(), Times::default());
        let (wake, woken) = mpsc::channel();
        let sleeper = std::thread::spawn(move || woken.into_iter().for_each(|()| {}));
        for _ in 0..count {
            large.fill(1.0);
            small.fill(2.0);
            // Nobody is still in the call before: what is timed is this one.
            gate.barrier().expect("barrier");
            if world.rank() == 1 {
                gate.barrier().expect("barrier");
            } else {
                // The peer sleeps now: it takes no core from the start.
                std::thread::sleep(Duration::from_millis(3));
            }
            let pending = starts
                .time(|| world.start_all_reduce(large, ReduceOp::Sum))
                .expect("start");
            if world.rank() == 0 {
                // The thread has taken it up and stands at the first wait.
                std::thread::sleep(Duration::from_millis(3));
            }
            let second = starts
                .time(|| world.start_all_reduce(small, ReduceOp::Sum))
                .expect("start");
            if world.rank() == 0 {
                assert!(!pending.is_done().expect("no error"), "no peer is there");
                std::thread::sleep(Duration::from_millis(3));
                wakes.time(|| wake.send(())).expect("it sleeps");
                gate.barrier().expect("barrier");
            }
            large = pending.wait().expect("done");
            small = second.wait().expect("done");
            assert!(large.iter().all(|x| *x == 2.0) && small.iter().all(|x| *x == 4.0));
        }
        drop(wake);
        sleeper.join().expect("the sleeper");
        world.finalize().expect("finalize");
        (starts, wakes)
    });
    ranks.into_iter().next().expect("rank 0")
}

/// The test command shares the machine with other work: there the median counts. In a soak it is the
/// 99th percentile of the starts that the system did not interrupt; it is told of all of them. Up to
/// 100 us are allowed, and twice the time that waking a thread takes in the same rounds.
#[test]
fn starting_returns_at_once_with_no_peer_there() {
    let (_alone, _limit) = alone("starting_returns_at_once_with_no_peer_there");
    for tcp in [false, true] {
        let (mut starts, mut wakes) = starts(tcp, STARTS.get());
        let interrupted = starts.all.len() - starts.undisturbed.len();
        let [_, p99_of_all, _] = quantiles(&mut starts.all);
        let [median, p99, most] = starts.quantiles();
        let [wake, wake_p99, _] = wakes.quantiles();
        println!(
            "soak: {STARTS} times 64 MiB and 8 B started over {} with no peer there: median {median:?}, p99 {p99:?}, \
             longest {most:?}; with the {interrupted} that the system interrupted: p99 {p99_of_all:?}; \
             a thread that sleeps is woken in: median {wake:?}, p99 {wake_p99:?}",
            if tcp { "tcp" } else { "shared memory" },
        );
        let (judged, wake) = if soaking() {
            (p99, wake_p99)
        } else {
            (median, wake)
        };
        let allowed = Duration::from_micros(100).max(2 * wake);
        assert!(
            judged < allowed,
            "median {median:?}, p99 {p99:?}, allowed {allowed:?}"
        );
    }
}

/// Seconds that an all_reduce of 16 MiB takes rank 1, while rank 0 does `meanwhile` once it has
/// started its own.
fn finishes(world: &Communicator, meanwhile: impl Fn()) -> Duration {
    let mut data: Buffer<f32> = world.buffer(4 << 20).expect("memory");
    data.fill(1.0);
    world.barrier().expect("barrier");
    let since = Instant::now();
    let pending = world.start_all_reduce(data, ReduceOp::Sum).expect("start");
    if world.rank() == 0 {
        meanwhile();
    }
    let data = pending.wait().expect("done");
    let elapsed = since.elapsed();
    assert!(data.iter().all(|x| *x == world.size() as f32));
    elapsed
}

/// Whether a core is left for rank 0's computation beside the threads that carry the call.
fn has_core_to_spare(ranks: u32) -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() > ranks as usize)
}

/// Computes for `time`, without the library. Where there is no core to spare, what is seen would be
/// how the system shares out its cores: there the program waits, as if for a disk.
fn compute(time: Duration, ranks: u32) {
    let since = Instant::now();
    if !has_core_to_spare(ranks) {
        std::thread::sleep(time);
    }
    let mut x = 1.0_f64;
    while since.elapsed() < time {
        for _ in 0..1000 {
            x = std::hint::black_box(x * 1.000_001);
        }
    }
}

#[test]
fn peers_do_not_wait_for_a_rank_that_computes() {
    let (_alone, _limit) = alone("peers_do_not_wait_for_a_rank_that_computes");
    const RANKS: u32 = 2;
    let time = Duration::from_millis(if soaking() { 2000 } else { 500 });
    let ranks = Job::new("peers_do_not_wait_for_a_rank_that_computes", RANKS).start(move |rank| {
        let world = rank.init(without_shm);
        for _ in 0..3 {
            finishes(&world, || {});
        }
        // In turn, so that what else the machine does meets both alike; the best counts.
        let (mut undisturbed, mut disturbed) = (Duration::MAX, Duration::MAX);
        for _ in 0..COMPUTES.get() {
            for _ in 0..3 {
                undisturbed = undisturbed.min(finishes(&world, || {}));
            }
            disturbed = disturbed.min(finishes(&world, || compute(time, RANKS)));
        }
        rank.say(&format!("undisturbed {}", undisturbed.as_micros()));
        rank.say(&format!("disturbed {}", disturbed.as_micros()));
        world.finalize().expect("finalize");
    });
    let ranks = ranks.succeed();
    let micros = |key| ranks[1].answer(key).parse::<f64>().expect("a number");
    let (undisturbed, disturbed) = (micros("undisturbed"), micros("disturbed"));
    println!(
        "soak: 16 MiB all_reduce over tcp takes the peer {:.1} ms, and {:.1} ms while rank 0 {} {time:?} without calling the library (the best of each)",
        undisturbed / 1e3,
        disturbed / 1e3,
        if has_core_to_spare(RANKS) {
            "computes"
        } else {
            "waits (no core to spare)"
        },
    );
    // A peer that waited would take as long as the computation; how little it costs not to is for a
    // machine that does nothing else.
    let allowed = if soaking() {
        1.2 * undisturbed + 5e3
    } else {
        time.as_secs_f64() * 1e6 / 2.0
    };
    assert!(
        disturbed <= allowed,
        "{disturbed} µs against {undisturbed} µs"
    );
}

fn wait_in(world: &Communicator, value: f32) {
    let mut data = vec![value; 100_000];
    world
        .all_reduce_in_place(&mut data, ReduceOp::Sum)
        .expect("all_reduce");
    assert!(data.iter().all(|x| *x == value * world.size() as f32));
}

fn start_in(world: &Communicator, value: f32) -> Pending<Buffer<f32>> {
    let mut data = world.buffer(100_000).expect("memory");
    data.fill(value);
    world.start_all_reduce(data, ReduceOp::Sum).expect("start")
}

#[test]
fn a_started_call_goes_on_below_a_blocking_one() {
    let (_alone, _limit) = alone("a_started_call_goes_on_below_a_blocking_one");
    for tcp in [false, true] {
        threads(3, either(tcp), |world| {
            let other = world.duplicate().expect("duplicate");
            for _ in 0..20 {
                // On one communicator, and on two.
                for (a, b) in [(&world, &world), (&world, &other), (&other, &world)] {
                    if world.rank() == 0 {
                        let pending = start_in(a, 1.0);
                        wait_in(b, 2.0);
                        let data = pending.wait().expect("done");
                        assert!(data.iter().all(|x| *x == 3.0));
                    } else {
                        wait_in(a, 1.0);
                        wait_in(b, 2.0);
                    }
                }
            }
            world.finalize().expect("finalize");
        });
    }
}

#[test]
fn many_communicators_started_in_random_order_do_not_hang() {
    let (_alone, _limit) = alone("many_communicators_started_in_random_order_do_not_hang");
    let seed = Rng::seed();
    let count = COMMUNICATORS.get();
    for tcp in [false, true] {
        threads(3, either(tcp), move |world| {
            let all: Vec<_> = (0..count)
                .map(|_| world.duplicate().expect("duplicate"))
                .collect();
            // Each rank draws an order of its own.
            let mut rng = Rng::new(seed ^ u64::from(world.rank()) << 32);
            for round in 0..4 {
                let mut order: Vec<usize> = (0..all.len()).collect();
                for at in (1..order.len()).rev() {
                    order.swap(at, rng.below(at as u64 + 1) as usize);
                }
                let value = |at: usize| (at + round) as f32;
                let pending: Vec<_> = order
                    .iter()
                    .map(|at| (*at, start_in(&all[*at], value(*at))))
                    .collect();
                for (at, pending) in pending {
                    let data = pending
                        .wait()
                        .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                    assert!(
                        data.iter().all(|x| *x == 3.0 * value(at)),
                        "seed {seed}: communicator {at}"
                    );
                }
            }
            world.finalize().expect("finalize");
        });
    }
    println!(
        "soak: {COMMUNICATORS} communicators of one device started in random order, seed {seed}: no hang, right results"
    );
}
