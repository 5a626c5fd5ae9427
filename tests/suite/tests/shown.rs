//! Ranks that show each other what they put: calls are right, however a rank runs them and whatever comes between.

use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use unisono::plan::select::{Override, Overrides};
use unisono::{Algorithm, Communicator, DataType, Error, InitOptions, Op, ReduceOp, Rules};
use unisono_tests::{Job, threads, watchdog};

const LIMIT: Duration = Duration::from_secs(60);
const OPS: [Op; 6] = [
    Op::AllGather,
    Op::AllReduce,
    Op::ReduceScatter,
    Op::AllToAll,
    Op::Broadcast { root: 0 },
    Op::Barrier,
];

/// What can be shown is, from this size on; all_reduces as said.
fn show_from(options: &mut InitOptions, bytes: u64, all_reduce: Algorithm) {
    let wanted = move |op: Op| Override {
        op: Some(op.kind()),
        bytes: bytes..=u64::MAX,
        algorithm: match op {
            Op::AllReduce => all_reduce.into(),
            _ => Algorithm::MeshShared.into(),
        },
        windowed: None,
        put_bytes: None,
    };
    options.rules = Rules::new(move |_, _| Overrides {
        rules: OPS.map(wanted).into(),
    });
}

fn is_shown(world: &Communicator) {
    for op in OPS {
        let bytes = if op == Op::Barrier { 0 } else { 1 << 20 };
        let plan = world.explain(op, bytes, DataType::U64).expect("a plan");
        let shown = ["mesh_shared", "mesh_shared_one_shot", "ring_shared"];
        assert!(shown.contains(&plan.algorithm()), "{op}: {plan}");
    }
}

/// What a rank gives at a place, in a round.
fn given(rank: u32, at: usize, round: usize) -> u64 {
    u64::from(rank + 1) << 48 | (round as u64) << 32 | at as u64
}

/// Calls of all kinds, of several lengths, more of them in a row than a rank has slots to show in.
fn calls_are_right(world: &Communicator, counts: &[usize], rounds: usize) {
    let (rank, ranks) = (world.rank(), world.size());
    for &count in counts {
        for round in 0..rounds {
            let own: Vec<u64> = (0..count).map(|at| given(rank, at, round)).collect();
            let mut all = vec![0; count * ranks as usize];
            world.all_gather(&own, &mut all).expect("all_gather");
            let expected = (0..ranks).flat_map(|from| (0..count).map(move |at| (from, at)));
            assert!(
                expected
                    .zip(&all)
                    .all(|((from, at), got)| *got == given(from, at, round))
            );

            let mut sum = own.clone();
            world
                .all_reduce_in_place(&mut sum, ReduceOp::Sum)
                .expect("all_reduce");
            let expected = |at| (0..ranks).map(|from| given(from, at, round)).sum::<u64>();
            assert!((0..count).all(|at| sum[at] == expected(at)));

            let mut data: Vec<u64> = (0..count * ranks as usize)
                .map(|at| given(rank, at, round))
                .collect();
            let mut part = vec![0; count];
            let begin = rank as usize * count;
            world
                .reduce_scatter(&data, &mut part, ReduceOp::Sum)
                .expect("reduce_scatter");
            assert!((0..count).all(|at| part[at] == expected(begin + at)));
            let mut summed = data.clone();
            world
                .reduce_scatter_in_place(&mut summed, ReduceOp::Sum)
                .expect("reduce_scatter in place");
            assert!((0..count).all(|at| summed[begin + at] == expected(begin + at)));

            let mut got = vec![0; data.len()];
            world.all_to_all(&data, &mut got).expect("all_to_all");
            world
                .all_to_all_in_place(&mut data)
                .expect("all_to_all in place");
            let from = |from: u32, at| given(from, begin + at, round);
            let expected = (0..ranks).flat_map(|rank| (0..count).map(move |at| from(rank, at)));
            assert!(expected.eq(got.iter().copied()));
            assert_eq!(got, data);

            if round % 3 == 0 {
                world.barrier().expect("barrier");
            }

            let root = round as u32 % ranks;
            let mut data = own.clone();
            world.broadcast(&mut data, root).expect("broadcast");
            assert!((0..count).all(|at| data[at] == given(root, at, round)));

            // What is not shown goes over the same channels.
            let mut least = own;
            least.truncate(5);
            world
                .reduce_in_place(&mut least, ReduceOp::Min, root)
                .expect("reduce");
            let expected = |at| given(0, at, round);
            assert!(rank != root || (0..least.len()).all(|at| least[at] == expected(at)));
        }
    }
}

#[test]
fn threads_that_show_get_what_was_put() {
    let _limit = watchdog("threads_that_show_get_what_was_put", LIMIT);
    use Algorithm::{MeshShared, MeshSharedOneShot, RingShared};
    for (ranks, direct, slots, all_reduce) in [
        (2, true, 8, MeshShared),
        (2, false, 2, MeshSharedOneShot),
        (3, true, 3, MeshSharedOneShot),
        (3, false, 3, MeshShared),
        (5, false, 8, MeshSharedOneShot),
        (8, true, 8, MeshShared),
        (8, true, 8, MeshSharedOneShot),
        (2, false, 2, RingShared),
        (3, true, 3, RingShared),
        (5, false, 8, RingShared),
        (8, true, 8, RingShared),
    ] {
        threads(
            ranks,
            move |options| {
                show_from(options, 0, all_reduce);
                options.direct = direct;
                options.memory.slots = slots;
            },
            |world| {
                is_shown(&world);
                calls_are_right(&world, &[1, 4, 7, 128, 129, 70_001], 12);
                world.finalize().expect("finalize");
            },
        );
    }
}

/// What is shown is given back whatever number of puts one credit stands for, more often than there are flags.
#[test]
fn what_is_shown_is_given_back_with_slots_of_any_number() {
    let _limit = watchdog(
        "what_is_shown_is_given_back_with_slots_of_any_number",
        LIMIT,
    );
    for slots in [2, 5, 6, 12, 24] {
        threads(
            3,
            move |options| {
                show_from(options, 0, Algorithm::MeshSharedOneShot);
                options.memory.slots = slots;
                options.memory.swap_slots = Some(false);
            },
            |world| {
                is_shown(&world);
                calls_are_right(&world, &[2, 100], 300);
                world.finalize().expect("finalize");
            },
        );
    }
}

/// Runs something on a thread that has one core, as those have that it starts.
fn on_one_core(run: impl FnOnce() + Send + 'static) {
    let bound = std::thread::spawn(|| {
        let all = sched_getaffinity(None).expect("this thread's cores");
        let mut one = CpuSet::new();
        let first = (0..CpuSet::MAX_CPU).find(|core| all.is_set(*core));
        one.set(first.expect("a core"));
        sched_setaffinity(None, &one).expect("one of them");
        run();
    });
    bound.join().expect("no panic");
}

/// Where slots change hands, and ranks share cores, what is shown is told of twice.
#[test]
fn ranks_of_one_core_get_what_is_shown() {
    let _limit = watchdog("ranks_of_one_core_get_what_is_shown", LIMIT);
    on_one_core(|| {
        for ranks in [3, 5] {
            threads(
                ranks,
                |options| {
                    show_from(options, 0, Algorithm::MeshSharedOneShot);
                    options.memory.swap_slots = Some(true);
                },
                |world| {
                    is_shown(&world);
                    calls_are_right(&world, &[1, 4, 5, 128, 129, 3000], 60);
                    // More of them than there are places.
                    calls_are_right(&world, &[2, 32], 300);
                    world.finalize().expect("finalize");
                },
            );
        }
    });
}

#[test]
fn processes_that_show_get_what_was_put() {
    let test = "processes_that_show_get_what_was_put";
    let _limit = watchdog(test, LIMIT);
    for ranks in [2, 4] {
        let job = Job::new(test, ranks).start(|rank| {
            let world = rank.init(|options| show_from(options, 0, Algorithm::MeshSharedOneShot));
            is_shown(&world);
            calls_are_right(&world, &[1, 100, 1000, 300_001], 12);
            let half = world.split(Some(world.rank() % 2), 0);
            let half = half.expect("split").expect("a part of it");
            calls_are_right(&half, &[3, 10_000], 12);
            world.finalize().expect("finalize");
        });
        let _exits = job.succeed();
    }
}

/// Of the same call some ranks' threads run it by themselves and others' streams do, who do not know of each other.
#[test]
fn threads_and_streams_show_each_other_alike() {
    for (count, all_reduce) in [
        (2, Algorithm::MeshSharedOneShot),
        (100, Algorithm::MeshSharedOneShot),
        (3000, Algorithm::MeshShared),
        (2, Algorithm::RingShared),
        (3000, Algorithm::RingShared),
    ] {
        threads_and_streams(count, all_reduce, None);
    }
    // What streams show is not told of twice: threads that look in vain for that then look where all do.
    on_one_core(|| {
        for count in [2, 100] {
            threads_and_streams(count, Algorithm::MeshSharedOneShot, Some(true));
        }
    });
}

fn threads_and_streams(count: usize, all_reduce: Algorithm, swap_slots: Option<bool>) {
    let _limit = watchdog("threads_and_streams_show_each_other_alike", LIMIT);
    threads(
        3,
        move |options| {
            show_from(options, 0, all_reduce);
            options.memory.swap_slots = swap_slots;
        },
        move |world| {
            let (rank, stream) = (world.rank(), world.stream().expect("a stream"));
            let on = world.on(&stream);
            for round in 0..30 {
                let is_streams = (round / 3 + rank as usize).is_multiple_of(2);
                let own = |at| given(rank, at, round);
                let expected = |at: usize| given((at / count) as u32, at % count, round);
                let sum = |at| (0..3).map(|from| given(from, at, round)).sum::<u64>();
                let begin = rank as usize * count;
                let of_all = |at: usize| given((at / count) as u32, begin + at % count, round);
                if is_streams {
                    let buffer = |len| world.buffer::<u64>(len).expect("a buffer");
                    let (mut send, mut data) = (buffer(count), buffer(count));
                    (0..count).for_each(|at| (send[at], data[at]) = (own(at), own(at)));
                    let gathered = on.all_gather(send, buffer(3 * count)).expect("it starts");
                    let summed = on.all_reduce(data, ReduceOp::Sum).expect("it starts");
                    let mut send = buffer(3 * count);
                    (0..3 * count).for_each(|at| send[at] = own(at));
                    let exchanged = on.all_to_all(send, buffer(3 * count)).expect("it starts");
                    let (_, exchanged) = exchanged.wait().expect("all_to_all");
                    assert!((0..3 * count).all(|at| exchanged[at] == of_all(at)));
                    let (_, all) = gathered.wait().expect("all_gather");
                    assert!((0..3 * count).all(|at| all[at] == expected(at)));
                    let data = summed.wait().expect("all_reduce");
                    assert!((0..count).all(|at| data[at] == sum(at)));
                } else {
                    let mut data: Vec<u64> = (0..count).map(own).collect();
                    let mut all = vec![0; 3 * count];
                    world.all_gather(&data, &mut all).expect("all_gather");
                    assert!((0..3 * count).all(|at| all[at] == expected(at)));
                    world
                        .all_reduce_in_place(&mut data, ReduceOp::Sum)
                        .expect("all_reduce");
                    assert!((0..count).all(|at| data[at] == sum(at)));
                    let send: Vec<u64> = (0..3 * count).map(own).collect();
                    world.all_to_all(&send, &mut all).expect("all_to_all");
                    assert!((0..3 * count).all(|at| all[at] == of_all(at)));
                }
            }
            world.finalize().expect("finalize");
        },
    );
}

#[test]
fn blocks_of_different_sizes_are_shown_too() {
    threads(
        4,
        |options| show_from(options, 1, Algorithm::MeshShared),
        |world| {
            let counts = [0, 3, 40_000, 1];
            for round in 0..12 {
                let own: Vec<u64> = (0..counts[world.rank() as usize])
                    .map(|at| given(world.rank(), at, round))
                    .collect();
                let mut all = vec![0; counts.iter().sum()];
                world
                    .all_gather_v(&own, &mut all, &counts)
                    .expect("all_gather_v");
                let expected = (0..4).flat_map(|from| (0..counts[from]).map(move |at| (from, at)));
                let is_right = |((from, at), got): ((usize, usize), &u64)| {
                    *got == given(from as u32, at, round)
                };
                assert!(expected.zip(&all).all(is_right));
                let whole: Vec<u64> = (0..all.len())
                    .map(|at| given(world.rank(), at, round))
                    .collect();
                let mut sums = vec![0; own.len()];
                world
                    .reduce_scatter_v(&whole, &mut sums, &counts, ReduceOp::Sum)
                    .expect("reduce_scatter_v");
                let begin: usize = counts[..world.rank() as usize].iter().sum();
                let sum = |at| (0..4).map(|from| given(from, at, round)).sum::<u64>();
                assert!((0..sums.len()).all(|at| sums[at] == sum(begin + at)));
            }
            world.finalize().expect("finalize");
        },
    );
}

/// While a call waits for long it is looked whether peers have called something else. Nobody has, though counts of an
/// all_to_all_v are of a pair each, and what stands for it while owed signals are made up for does not know them.
#[test]
fn who_is_late_has_called_the_same() {
    let _limit = watchdog("who_is_late_has_called_the_same", LIMIT);
    threads(
        3,
        |_| {},
        |world| {
            let rank = world.rank();
            for late in 0..3 {
                let mut data = [u64::from(rank); 4];
                for _ in 0..5 {
                    world.broadcast(&mut data, 0).expect("broadcast");
                    assert_eq!(data, [0; 4]);
                }
                if rank == late {
                    std::thread::sleep(Duration::from_millis(450));
                }
                let counts = |to: u32| (rank + to + 1) as usize;
                let counts = [counts(0), counts(1), counts(2)];
                let sent = vec![rank; counts.iter().sum()];
                let mut got = vec![9; sent.len()];
                let calls =
                    world.group(|calls| calls.all_to_all_v(&sent, &counts, &mut got, &counts));
                calls.expect("all_to_all_v");
                let expected = (0..3).flat_map(|from| vec![from; counts[from as usize]]);
                assert!(expected.eq(got.iter().copied()), "{got:?}");
                let mut sum = [1_u32];
                world
                    .all_reduce_in_place(&mut sum, ReduceOp::Sum)
                    .expect("all_reduce");
                assert_eq!(sum, [3]);
            }
            world.finalize().expect("finalize");
        },
    );
}

#[test]
fn ranks_that_share_no_memory_are_told_so() {
    threads(
        2,
        |options| {
            show_from(options, 1 << 20, Algorithm::MeshShared);
            options.without_links = vec!["shm".to_owned()];
        },
        |world| {
            let error = world.explain(Op::AllGather, 1 << 20, DataType::F32);
            let error = error.expect_err("it is forced").to_string();
            let is_told =
                error.contains("mesh_shared is forced") && error.contains("do not share memory");
            assert!(is_told, "{error}");
            let mut all = vec![0; 1 << 20];
            let refused = world.all_gather(&vec![world.rank(); 1 << 19], &mut all);
            assert!(
                matches!(refused, Err(Error::Unsupported { .. })),
                "{refused:?}"
            );
            world.finalize().expect("finalize");
        },
    );
}
