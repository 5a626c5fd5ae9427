//! Bugs that a review of the engine found; each test failed before its fix.

use std::time::{Duration, Instant};

use unisono::plan::select::{Override, Overrides};
use unisono::{Algorithm, Error, InitOptions, ReduceOp, Rules};
use unisono_tests::{CpuShare, Job, resident_bytes, threads};

fn only(algorithm: Algorithm) -> Rules {
    Rules::new(move |_, _| Overrides {
        rules: vec![Override {
            op: Some(unisono::plan::OpKind::AllReduce),
            bytes: 0..=u64::MAX,
            algorithm: algorithm.into(),
            windowed: Some(false),
            put_bytes: None,
        }],
    })
}

/// The next larger op replaced the scratch that the one before still used.
#[test]
fn growing_folds_in_flight_keep_their_scratch() {
    let staged = |options: &mut InitOptions| {
        options.rules = only(Algorithm::MeshOneShot);
        options.memory.slot = Some(1 << 20);
    };
    threads(3, staged, |world| {
        for round in 0..5 {
            let mut small = world.buffer::<u64>(8).expect("a buffer");
            let mut large = world.buffer::<u64>(60_000 + round).expect("a buffer");
            small.fill(1);
            large.fill(1);
            if world.rank() == 0 {
                std::thread::sleep(Duration::from_millis(50));
            }
            let small = world.start_all_reduce(small, ReduceOp::Sum).expect("start");
            let large = world.start_all_reduce(large, ReduceOp::Sum).expect("start");
            assert!(small.wait().expect("done").iter().all(|x| *x == 3));
            assert!(large.wait().expect("done").iter().all(|x| *x == 3));
        }
    });
}

/// Releasing the flags of a communicator that has none wrote to address 0.
#[test]
fn one_rank_alone_can_be_aborted() {
    threads(
        1,
        |_| {},
        |world| {
            world.abort_handle().abort("enough");
            assert!(matches!(world.barrier(), Err(Error::Aborted { .. })));
        },
    );
}

/// Two windows at one offset passed for one.
#[test]
fn another_window_is_a_mismatch() {
    let quick = |options: &mut InitOptions| options.timeouts.op = Duration::from_secs(5);
    threads(2, quick, |world| {
        let mut one = world.alloc::<u32>(1 << 20).expect("alloc");
        let mut two = world.alloc::<u32>(1 << 20).expect("alloc");
        let plan = world.explain_windows(unisono::Op::AllReduce, 4 << 20, unisono::DataType::U32);
        let windowed = plan.expect("a plan").is_windowed();
        let data = if world.rank() == 0 {
            &mut one
        } else {
            &mut two
        };
        let done = world.all_reduce_in_place(&mut data[..], ReduceOp::Sum);
        assert_eq!(
            matches!(done, Err(Error::Mismatch(_))),
            windowed,
            "{done:?}"
        );
    });
}

/// The block of a rank lies at another offset on each, which is right.
#[test]
fn calls_in_place_work_on_windows() {
    threads(
        3,
        |_| {},
        |world| {
            for block in [1_usize, 1000, 50_000] {
                let mut window = world.alloc::<u64>(3 * block).expect("alloc");
                for round in 0..3 {
                    let own = world.rank() as usize * block;
                    window[own..own + block].fill(u64::from(world.rank()) + round);
                    world.all_gather_in_place(&mut window).expect("all_gather");
                    for rank in 0..3 {
                        let there = &window[rank * block..(rank + 1) * block];
                        assert!(there.iter().all(|x| *x == rank as u64 + round));
                    }
                    world.barrier().expect("barrier");
                    window.fill(1);
                    world
                        .reduce_scatter_in_place(&mut window, ReduceOp::Sum)
                        .expect("reduce_scatter");
                    assert!(window[own..own + block].iter().all(|x| *x == 3));
                    world.barrier().expect("barrier");
                }
            }
        },
    );
}

/// The bytes of a length wrapped, and a slice was longer than its memory.
#[test]
fn lengths_beyond_memory_are_refused() {
    threads(
        1,
        |_| {},
        |world| {
            let length = (1 << 61) + 1;
            assert!(matches!(
                world.buffer::<u64>(length),
                Err(Error::Invalid { .. })
            ));
            assert!(matches!(
                world.alloc::<u64>(length),
                Err(Error::Invalid { .. })
            ));
            assert!(world.buffer::<u64>(usize::MAX).is_err());
        },
    );
}

/// Commands that were taken stayed in their batch for ever.
#[test]
fn many_calls_hold_no_more_than_few() {
    for tcp in [false, true] {
        let links = move |options: &mut InitOptions| {
            options.without_links = if tcp {
                vec!["shm".to_owned()]
            } else {
                Vec::new()
            };
        };
        threads(2, links, |world| {
            let many = |n: u32| (0..n).for_each(|_| world.barrier().expect("barrier"));
            many(5_000);
            let before = resident_bytes();
            many(20_000);
            let grown = resident_bytes().saturating_sub(before);
            assert!(grown < 4 << 20, "{grown} bytes more after 20,000 barriers");
        });
    }
}

/// The wrong rank was named when several peers' signals came in one poll.
#[test]
fn the_rank_that_differs_is_named() {
    let mesh = |options: &mut InitOptions| {
        options.rules = only(Algorithm::MeshOneShot);
        options.timeouts.op = Duration::from_secs(5);
    };
    threads(3, mesh, |world| {
        let length = if world.rank() == 2 { 33 } else { 32 };
        if world.rank() == 0 {
            std::thread::sleep(Duration::from_millis(100));
        }
        let error = world.all_reduce_in_place(&mut vec![0_u32; length], ReduceOp::Sum);
        let Err(Error::Mismatch(mismatch)) = error else {
            panic!("{error:?}");
        };
        let named = [mismatch.rank, mismatch.peer];
        assert!(named.contains(&2), "{mismatch}");
        assert_ne!(mismatch.ours.count, mismatch.theirs.count, "{mismatch}");
    });
}

/// One slot deadlocked until the deadline.
#[test]
fn fewer_than_two_slots_are_refused() {
    let id = unisono::bootstrap::RootSpec::Node;
    for slots in [0, 1] {
        let error = unisono::Communicator::init_all(2, |rank| {
            let mut options = unisono_tests::options(rank, 2, id.clone());
            options.memory.slots = slots;
            options
        });
        let text = error.expect_err("too few").to_string();
        assert!(text.contains("at least 2 slots"), "{text}");
    }
}

/// A thread asleep in one communicator left another thread's started calls undone.
#[test]
fn a_sleeper_drives_what_others_start() {
    threads(
        2,
        |_| {},
        |world| {
            let other = world.duplicate().expect("duplicate");
            let pace = world.duplicate().expect("duplicate");
            std::thread::scope(|scope| {
                if world.rank() == 0 {
                    scope.spawn(|| world.barrier().expect("barrier"));
                }
                for _ in 0..50 {
                    pace.barrier().expect("barrier");
                    std::thread::sleep(Duration::from_millis(5));
                    let since = Instant::now();
                    let started = other.buffer::<u32>(4).expect("a buffer");
                    let started = other
                        .start_all_reduce(started, ReduceOp::Sum)
                        .expect("start");
                    while !started.is_done().expect("no error") {
                        assert!(since.elapsed() < Duration::from_secs(5), "nobody drives it");
                        std::thread::sleep(Duration::from_micros(100));
                    }
                }
                if world.rank() == 1 {
                    world.barrier().expect("barrier");
                }
            });
        },
    );
}

/// A communicator dropped with a call under way, or aborted with full links, kept a core busy.
#[test]
fn what_is_abandoned_costs_nothing() {
    let ranks = Job::new("what_is_abandoned_costs_nothing", 2)
        .start(|rank| {
            let world = rank.init(|options| options.without_links = vec!["shm".to_owned()]);
            if rank.rank == 1 {
                std::thread::sleep(Duration::from_secs(5));
                return;
            }
            let data = world.buffer::<u64>(1 << 20).expect("a buffer");
            drop(world.start_all_reduce(data, ReduceOp::Sum).expect("start"));
            drop(world);
            std::thread::sleep(Duration::from_millis(500));
            let share = CpuShare::begin();
            std::thread::sleep(Duration::from_secs(1));
            rank.say(&format!("cpu {:.1}", share.percent()));
        })
        .finish();
    let percent: f64 = ranks[0].answer("cpu").parse().expect("a number");
    assert!(percent < 5.0, "{percent} % of a core for nothing");
}
