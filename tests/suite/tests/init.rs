//! How jobs come together, and what they say when they cannot.

use std::time::{Duration, Instant};

use unisono::{Communicator, DataType, Error, InitOptions, Op, ReduceOp};
use unisono_tests::{Job, free_address, threads, watchdog};

const LIMIT: Duration = Duration::from_secs(120);

fn sum(world: &Communicator, value: u64) -> u64 {
    let mut data = [value; 5];
    world
        .all_reduce_in_place(&mut data, ReduceOp::Sum)
        .expect("all_reduce");
    assert!(data.iter().all(|x| *x == data[0]));
    data[0]
}

#[test]
fn ranks_as_processes_meet() {
    let _limit = watchdog("ranks_as_processes_meet", LIMIT);
    let ranks = Job::new("ranks_as_processes_meet", 3).start(|rank| {
        let world = rank.init(|_| {});
        rank.say(&format!("sum {}", sum(&world, u64::from(rank.rank) + 1)));
        world.finalize().expect("finalize");
    });
    for exit in ranks.succeed() {
        assert_eq!(exit.answer("sum"), "6");
    }
}

/// Ranks 2 and 5 do not come.
fn some_are_missing(job: Job) {
    let deadline = Duration::from_secs(3);
    let ranks = job.only(&[0, 1, 3, 4]).start(move |rank| {
        let mut options = rank.options();
        options.timeouts.init = deadline;
        let since = Instant::now();
        let error = Communicator::init(options).expect_err("two ranks are missing");
        rank.say(&format!("took {}", since.elapsed().as_millis()));
        rank.say(&format!("error {error}"));
    });
    for exit in ranks.succeed() {
        let took: u64 = exit.answer("took").parse().expect("a number");
        assert!(
            Duration::from_millis(took) < deadline + Duration::from_secs(2),
            "{took} ms"
        );
        let error = exit.answer("error");
        let missing = error.split("missing").nth(1).expect("who is missing");
        let missing: String = missing
            .chars()
            .take_while(|c| c.is_ascii_digit() || " :,".contains(*c))
            .collect();
        assert_eq!(missing.trim_matches([' ', ':']), "2, 5", "{error}");
    }
}

#[test]
fn missing_ranks_are_named_on_every_rank_that_came() {
    let _limit = watchdog("missing_ranks_are_named_on_every_rank_that_came", LIMIT);
    some_are_missing(Job::new(
        "missing_ranks_are_named_on_every_rank_that_came",
        6,
    ));
}

#[test]
fn missing_ranks_are_named_where_they_meet_over_the_network() {
    let _limit = watchdog(
        "missing_ranks_are_named_where_they_meet_over_the_network",
        LIMIT,
    );
    let job = Job::new(
        "missing_ranks_are_named_where_they_meet_over_the_network",
        6,
    );
    some_are_missing(job.root(
        &free_address().to_string(),
        "a secret of thirty-two bytes or more",
    ));
}

#[test]
fn different_options_are_named_on_every_rank() {
    let _limit = watchdog("different_options_are_named_on_every_rank", LIMIT);
    let ranks = Job::new("different_options_are_named_on_every_rank", 3).start(|rank| {
        let mut options = rank.options();
        options.timeouts.init = Duration::from_secs(10);
        options.memory.slots = if rank.rank == 1 { 4 } else { 8 };
        let error = Communicator::init(options).expect_err("the slots differ");
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
        rank.say(&format!("error {error}"));
    });
    for exit in ranks.succeed() {
        let error = exit.answer("error");
        for part in ["rank 1 has 4", "has 8", "same memory options"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}

#[test]
fn two_jobs_at_once_do_not_mix() {
    let _limit = watchdog("two_jobs_at_once_do_not_mix", LIMIT);
    let job = |value: u64| {
        Job::new("two_jobs_at_once_do_not_mix", 3)
            .env("UNISONO_TEST_VALUE", value)
            .start(|rank| {
                let value = std::env::var("UNISONO_TEST_VALUE")
                    .ok()
                    .and_then(|text| text.parse().ok());
                let world = rank.init(|_| {});
                for _ in 0..200 {
                    assert_eq!(
                        sum(&world, value.expect("a value")),
                        value.map_or(0, |v| 3 * v)
                    );
                }
                world.finalize().expect("finalize");
            })
    };
    let jobs = [job(1), job(100), job(10_000)];
    for job in jobs {
        let _ = job.succeed();
    }
}

#[test]
fn two_jobs_at_once_in_one_process_do_not_mix() {
    let _limit = watchdog("two_jobs_at_once_in_one_process_do_not_mix", LIMIT);
    for tcp in [false, true] {
        std::thread::scope(|scope| {
            for value in [1, 100, 10_000] {
                let adjust = move |options: &mut InitOptions| {
                    options.timeouts.op = Duration::from_secs(20);
                    if tcp {
                        options.without_links = vec!["shm".to_owned()];
                    }
                };
                scope.spawn(move || {
                    threads(3, adjust, move |world| {
                        let copy = world.duplicate().expect("duplicate");
                        for _ in 0..50 {
                            assert_eq!(
                                (sum(&world, value), sum(&copy, value)),
                                (3 * value, 3 * value)
                            );
                        }
                        world.finalize().expect("finalize");
                    })
                });
            }
        });
    }
}

#[test]
fn a_forked_child_is_refused_everywhere_and_harms_nothing() {
    let _limit = watchdog(
        "a_forked_child_is_refused_everywhere_and_harms_nothing",
        LIMIT,
    );
    let ranks =
        Job::new("a_forked_child_is_refused_everywhere_and_harms_nothing", 2).start(|rank| {
            let world = rank.init(|_| {});
            let network = rank.init(|options| {
                options.job.push_str("-network");
                options.without_links = vec!["shm".to_owned()];
            });
            assert_eq!((sum(&world, 1), sum(&network, 1)), (2, 2));
            for communicator in [&world, &network] {
                let pending = (rank.rank == 0).then(|| {
                    let mut data = communicator.buffer::<u64>(5).expect("memory");
                    data.fill(1);
                    communicator
                        .start_all_reduce(data, ReduceOp::Sum)
                        .expect("start")
                });
                // A child while a call is under way, and one while none is.
                let refused = |result| matches!(result, Err(Error::ForkedProcess));
                let asks = || {
                    i32::from(
                        !pending
                            .as_ref()
                            .is_none_or(|p| refused(p.is_done().map(drop))),
                    )
                };
                assert_eq!(in_forked_child(asks), 0);
                assert_eq!(in_forked_child(|| try_everything(communicator)), 0);
                match pending {
                    Some(pending) => assert_eq!(pending.wait().expect("done")[0], 2),
                    None => assert_eq!(sum(communicator, 1), 2),
                }
                assert_eq!(in_forked_child(|| try_everything(communicator)), 0);
                assert_eq!(sum(communicator, 1), 2);
            }
            // A child that drops what it has got, as a program does at its end.
            for communicator in [&world, &network] {
                let mut copy = Some(communicator.duplicate().expect("duplicate"));
                assert_eq!(copy.as_ref().map(|copy| sum(copy, 1)), Some(2));
                let child = in_forked_child(|| {
                    drop(copy.take());
                    0
                });
                assert_eq!(child, 0);
                assert_eq!(copy.as_ref().map(|copy| sum(copy, 2)), Some(4));
            }
            assert_eq!((sum(&world, 1), sum(&network, 1)), (2, 2));
            network.finalize().expect("finalize");
            world.finalize().expect("finalize");
        });
    let _ = ranks.succeed();
}

/// The number of the first call that a forked child was not refused; 0 if there is none.
fn try_everything(world: &Communicator) -> i32 {
    let forked = |result: Result<(), Error>| matches!(result, Err(Error::ForkedProcess));
    let mut one = [1_u64];
    let mut two = [1_u64; 2];
    world.abort_handle().abort("from a forked child");
    let refused = [
        forked(world.all_reduce_in_place(&mut one, ReduceOp::Sum)),
        forked(world.broadcast(&mut one, 0)),
        forked(world.all_gather(&[1], &mut two)),
        forked(world.reduce_scatter(&[1_u64, 2], &mut one, ReduceOp::Sum)),
        forked(world.send(&one, 1 - world.rank())),
        forked(world.recv(&mut one, 1 - world.rank())),
        forked(world.barrier()),
        forked(world.duplicate().map(drop)),
        forked(world.split(Some(0), 0).map(drop)),
        forked(world.shrink().map(drop)),
        forked(world.alloc::<u64>(5).map(drop)),
        forked(world.buffer::<u64>(5).map(drop)),
        forked(world.explain(Op::AllReduce, 8, DataType::F32).map(drop)),
        matches!(world.async_error(), Some(Error::ForkedProcess)),
    ];
    refused
        .iter()
        .position(|refused| !refused)
        .map_or(0, |at| at as i32 + 1)
}

/// Runs `body` in a forked child and gives what it returned as its exit code.
#[allow(unsafe_code, reason = "fork has no safe interface")]
fn in_forked_child(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child has this thread alone. It calls the library, which must refuse before it
    // takes a lock that another thread may have held; that is what is tested, and a child that
    // hangs in one is ended by its own alarm. It never returns into the test.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            libc::alarm(10);
            libc::_exit(body())
        }
    }
    assert!(child > 0, "fork failed");
    let mut status = 0;
    // SAFETY: waits for the child made above.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    assert!(
        libc::WIFEXITED(status),
        "the child did not exit by itself: {status:#x}"
    );
    libc::WEXITSTATUS(status)
}
