//! Ranks are killed at random moments, half of them with a sleeping forked child that keeps their
//! sockets open. Every survivor gets an error that names the dead rank, forms a smaller
//! communicator in the same process and finishes a right all_reduce in it; nothing is left behind
//! and nothing grows.

use std::time::{Duration, Instant};

use unisono::{Communicator, Error, ReduceOp};
use unisono_tests::{Count, Held, Job, Rank, Rng};

const KILLS: Count = Count::new(8, 100);
/// Ranks at the start of a job, and when it ends.
const FIRST: u32 = 6;
const LAST: u32 = 2;
/// A survivor must know within this.
const DEADLINE: Duration = Duration::from_secs(10);

fn kills(test: &str, tcp: bool, total: u64) {
    let per_job = u64::from(FIRST - LAST);
    let before = shared_memory();
    for job in 0..total.div_ceil(per_job) {
        let seed = Rng::seed() ^ job << 32;
        let mut running = Job::new(test, FIRST)
            .limit(Duration::from_secs(120))
            .env("UNISONO_TEST_DEATH_SEED", seed)
            .start(|rank| survive(&rank, tcp));
        let mut rng = Rng::new(seed);
        let mut alive: Vec<u32> = (0..FIRST).collect();
        for round in 0..per_job {
            for rank in &alive {
                let ready = running.wait_for(*rank, &format!("round {round}"));
                assert!(
                    ready.is_some(),
                    "seed {seed}: rank {rank} is not in round {round}"
                );
            }
            let victim = alive.remove(victim(&mut rng, &alive));
            std::thread::sleep(Duration::from_micros(rng.below(30_000)));
            running.kill(victim);
        }
        for exit in running.finish() {
            let survived = alive.contains(&exit.rank);
            assert_eq!(exit.status.success(), survived, "seed {seed}: {exit:?}");
            assert!(!exit.late, "seed {seed}: {exit:?}");
        }
    }
    assert_eq!(shared_memory(), before, "shared memory is left over");
    println!("soak: {test}: {total} ranks killed, every survivor named the dead and went on");
}

/// Drawn alike by the test and by every rank.
fn victim(rng: &mut Rng, alive: &[u32]) -> usize {
    rng.below(alive.len() as u64) as usize
}

/// One rank: calls all_reduce until somebody dies, again and again.
fn survive(rank: &Rank, tcp: bool) {
    let seed = std::env::var("UNISONO_TEST_DEATH_SEED").expect("the seed");
    let mut rng = Rng::new(seed.parse().expect("a number"));
    let mut world = rank.init(|options| {
        options.timeouts.op = DEADLINE;
        options.timeouts.init = DEADLINE;
        if tcp {
            options.without_links = vec!["shm".to_owned()];
        }
    });
    let mut alive: Vec<u32> = (0..rank.size).collect();
    let mut held: Vec<Held> = Vec::new();
    for round in 0..FIRST - LAST {
        let position = victim(&mut rng, &alive);
        let doomed = alive.remove(position);
        let _ = rng.below(30_000);
        if doomed == rank.rank && round % 2 == 1 {
            sleeping_child();
        }
        rank.say(&format!("round {round}"));
        let (error, since) = until_error(&world);
        assert!(since.elapsed() < DEADLINE, "{error}");
        match &error {
            Error::RankDied { rank: dead, .. } => assert_eq!(*dead as usize, position, "{error}"),
            other => panic!("rank {} in round {round}: not a death: {other}", rank.rank),
        }
        let smaller = world
            .shrink()
            .unwrap_or_else(|e| panic!("rank {}: {e}", rank.rank));
        drop(world);
        world = smaller;
        assert_eq!(world.size() as usize, alive.len());
        check(&world, 10_000);
        held.push(Held::now());
    }
    let (first, last) = (&held[0], &held[held.len() - 1]);
    assert!(last.within(first), "grown: {first:?} to {last:?}");
    world.finalize().expect("finalize");
}

/// Calls all_reduce of changing sizes until it fails; when the last one began.
fn until_error(world: &Communicator) -> (Error, Instant) {
    let sizes = [1, 1000, 100_000, 7];
    for size in sizes.iter().cycle() {
        let since = Instant::now();
        let mut data = vec![1.0_f32; *size];
        if let Err(error) = world.all_reduce_in_place(&mut data, ReduceOp::Sum) {
            return (error, since);
        }
        assert!(data.iter().all(|x| *x == world.size() as f32));
    }
    unreachable!("a cycle does not end")
}

fn check(world: &Communicator, size: usize) {
    let mut data = vec![f64::from(world.rank()); size];
    world
        .all_reduce_in_place(&mut data, ReduceOp::Sum)
        .expect("the survivors' all_reduce");
    let expected = f64::from(world.size() * (world.size() - 1) / 2);
    assert!(data.iter().all(|x| *x == expected));
}

#[allow(unsafe_code, reason = "fork has no safe interface")]
fn sleeping_child() {
    // SAFETY: the child calls nothing but sleep and _exit, which are safe after a fork.
    unsafe {
        if libc::fork() == 0 {
            libc::sleep(5);
            libc::_exit(0);
        }
    }
}

/// Files of ours in the system's shared memory.
fn shared_memory() -> usize {
    let entries = std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter(|e| e.file_name().to_string_lossy().contains("unisono"))
        .count()
}

#[test]
fn survivors_in_shared_memory_go_on() {
    kills("survivors_in_shared_memory_go_on", false, KILLS.get());
}

#[test]
fn survivors_over_tcp_go_on() {
    kills("survivors_over_tcp_go_on", true, KILLS.get() / 2);
}
