//! The times of the options, each by what it does.

use std::time::{Duration, Instant};

use unisono::Error;
use unisono_tests::{skip, threads};

const MS: Duration = Duration::from_millis(1);

/// How often this thread has gone to sleep by itself.
fn sleeps() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("a status");
    let count = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.and_then(|c| c.trim().parse().ok()).expect("a count")
}

#[test]
fn leaving_has_a_deadline_of_its_own() {
    threads(
        2,
        |options| {
            options.timeouts.op = 60_000 * MS;
            options.timeouts.finalize = 300 * MS;
        },
        |world| {
            let since = Instant::now();
            if world.rank() == 1 {
                // It stays until the other has given up.
                while world.async_error().is_none() && since.elapsed() < 20_000 * MS {
                    std::thread::sleep(5 * MS);
                }
                return;
            }
            let error = world.finalize().expect_err("the other stays");
            let took = since.elapsed();
            assert!(matches!(error, Error::Timeout(_)), "{error}");
            assert!(error.to_string().contains("300ms"), "{error}");
            // The deadline, and the time that the ranks have to tell what they do.
            assert!(300 * MS <= took && took < 5_000 * MS, "{took:?}");
        },
    );
}

/// How often a wait of 400 ms goes to sleep.
fn sleeps_of_a_wait(spin: Duration, before_sleep: Duration) -> u64 {
    let slept = threads(
        2,
        move |options| (options.spin, options.before_sleep) = (spin, before_sleep),
        |world| {
            world.barrier().expect("barrier");
            if world.rank() == 1 {
                std::thread::sleep(400 * MS);
                world.barrier().expect("barrier");
                return 0;
            }
            let before = sleeps();
            world.barrier().expect("barrier");
            sleeps() - before
        },
    );
    slept[0]
}

#[test]
fn a_wait_spins_and_yields_as_long_as_it_is_told() {
    let long = 10_000 * MS;
    let sleeping = sleeps_of_a_wait(Duration::ZERO, Duration::ZERO);
    assert!(sleeping >= 6, "asleep {sleeping} times, 50 ms at most each");
    let yielding = sleeps_of_a_wait(Duration::ZERO, long);
    assert!(yielding < 5, "asleep {yielding} times");
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        skip(
            "a_wait_spins_and_yields_as_long_as_it_is_told",
            "two ranks on one core never spin",
        );
        return;
    }
    let spinning = sleeps_of_a_wait(long, Duration::ZERO);
    assert!(spinning < 5, "asleep {spinning} times");
}
