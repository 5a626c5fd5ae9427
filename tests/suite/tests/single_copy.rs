//! Ranks that read each other's memory: calls are right wherever buffers lie, and end well or badly as others do.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use unisono::plan::select::{Override, Overrides};
use unisono::{
    Algorithm, Communicator, DataType, Error, InitOptions, Op, Order, ReduceOp, Reduction, Rules,
    UserReduction,
};
use unisono_tests::{Job, Rank, threads, watchdog};

const MS: Duration = Duration::from_millis(1);
const LIMIT: Duration = Duration::from_secs(60);
/// Each rank's block in tests that stop a rank in the middle of reading it.
const BLOCK: usize = 256 << 20;

/// What has a plan that reads.
const READ: [Op; 5] = [
    Op::AllGather,
    Op::AllToAll,
    Op::Broadcast { root: 0 },
    Op::ReduceScatter,
    Op::AllReduce,
];

/// It is used, from this size on.
fn read_from(options: &mut InitOptions, bytes: u64) {
    let wanted = move |kind: unisono::plan::OpKind| Override {
        op: Some(kind),
        bytes: bytes..=u64::MAX,
        algorithm: Algorithm::MeshRead.into(),
        windowed: None,
        put_bytes: None,
    };
    options.rules = Rules::new(move |_, _| Overrides {
        rules: READ.map(|op| wanted(op.kind())).into(),
    });
}

/// What `from` gives `to` at a place, in a round.
fn given(from: u32, to: u32, at: usize, round: u64) -> u64 {
    u64::from(from) << 52 | u64::from(to) << 40 | round << 32 | at as u64
}

/// Calls of all kinds, of several lengths, in place and out; in place on some ranks alone too.
fn calls_are_right(world: &Communicator, counts: &[usize]) {
    let (rank, ranks) = (world.rank(), world.size());
    for &count in counts {
        let whole = count * ranks as usize;
        for round in 0..4 {
            let expected = |at: usize, to: u32| given((at / count) as u32, to, at % count, round);
            let own: Vec<u64> = (0..count).map(|at| given(rank, 0, at, round)).collect();
            let mut all = vec![0; whole];
            world.all_gather(&own, &mut all).expect("all_gather");
            assert!((0..whole).all(|at| all[at] == expected(at, 0)));
            let mut all = vec![0; whole];
            all[rank as usize * count..][..count].copy_from_slice(&own);
            world.all_gather_in_place(&mut all).expect("in place");
            assert!((0..whole).all(|at| all[at] == expected(at, 0)));

            let sent = |at: usize| given(rank, (at / count) as u32, at % count, round);
            let mut send: Vec<u64> = (0..whole).map(sent).collect();
            // Whether it is in place is each rank's own business.
            let is_in_place = match round {
                0 => false,
                1 => true,
                _ => (u64::from(rank) + round).is_multiple_of(2),
            };
            if is_in_place {
                world.all_to_all_in_place(&mut send).expect("in place");
                assert!((0..whole).all(|at| send[at] == expected(at, rank)));
            } else {
                let mut got = vec![0; whole];
                world.all_to_all(&send, &mut got).expect("all_to_all");
                assert!((0..whole).all(|at| got[at] == expected(at, rank)));
                assert!((0..whole).all(|at| send[at] == sent(at)), "read alone");
            }

            let root = (round as u32 + 1) % ranks;
            let mut data: Vec<u64> = (0..count).map(|at| given(rank, 7, at, round)).collect();
            world.broadcast(&mut data, root).expect("broadcast");
            assert!((0..count).all(|at| data[at] == given(root, 7, at, round)));
        }
        sums_are_right(world, count);
    }
}

/// What ranks read of each other and add up: of every kind of reduction, in place and out.
fn sums_are_right(world: &Communicator, count: usize) {
    let (rank, ranks) = (world.rank(), world.size());
    let own = rank as usize * count;
    let whole = count * ranks as usize;
    // Exact in f64, and another one for each rank and each place.
    let part = |rank: u32, at: usize| f64::from(rank + 1) * f64::from((at % 4099) as u32 + 1);
    let input: Vec<f64> = (0..whole).map(|at| part(rank, at)).collect();
    let (all, last) = (f64::from(ranks * (ranks + 1) / 2), f64::from(ranks));
    // Subtracts: neither commutes nor associates, so it is the left fold in rank order or wrong.
    let minus = UserReduction::new(Order::Ranks, |a: f64, b: f64| a - b);
    let reductions: [(Reduction, f64); 4] = [
        (ReduceOp::Sum.into(), all),
        (ReduceOp::Max.into(), last),
        (ReduceOp::Avg.into(), all / last),
        (minus.into(), 2.0 - all),
    ];
    for (reduction, factor) in reductions {
        let by = || reduction.clone();
        let expected = |at: usize| factor * part(0, at);
        let is_right = |got: &[f64], first: usize| {
            got.iter().enumerate().all(|(at, got)| {
                let expected = expected(first + at);
                (got - expected).abs() <= expected.abs() * 1e-12
            })
        };
        let mut sums = vec![0.0; whole];
        (world.all_reduce(&input, &mut sums, by())).expect("all_reduce");
        assert!(is_right(&sums, 0), "{reduction:?}");
        let mut sums = input.clone();
        (world.all_reduce_in_place(&mut sums, by())).expect("in place");
        assert!(is_right(&sums, 0), "{reduction:?}");
        let mut share = vec![0.0; count];
        (world.reduce_scatter(&input, &mut share, by())).expect("reduce_scatter");
        assert!(is_right(&share, own), "{reduction:?}");
        let mut share = input.clone();
        (world.reduce_scatter_in_place(&mut share, by())).expect("in place");
        assert!(is_right(&share[own..][..count], own), "{reduction:?}");
    }
}

fn reads(world: &Communicator) {
    for op in READ {
        let plan = world.explain(op, 1 << 20, DataType::U64).expect("a plan");
        assert_eq!(plan.algorithm(), "mesh_read");
    }
}

#[test]
fn threads_that_read_each_other_get_what_was_sent() {
    for (ranks, direct) in [(2, true), (2, false), (3, true), (5, false), (8, true)] {
        threads(
            ranks,
            move |options| {
                read_from(options, 1);
                options.direct = direct;
            },
            |world| {
                reads(&world);
                calls_are_right(&world, &[1, 7, 1000, 70_001]);
                world.finalize().expect("finalize");
            },
        );
    }
}

#[test]
fn processes_that_read_each_other_get_what_was_sent() {
    let test = "processes_that_read_each_other_get_what_was_sent";
    let _limit = watchdog(test, LIMIT);
    for ranks in [2, 3, 4] {
        let job = Job::new(test, ranks).start(|rank| {
            let world = rank.init(|options| read_from(options, 1));
            reads(&world);
            calls_are_right(&world, &[1, 1000, 300_001]);
            // Beside calls that go through slots, and in a group of ranks.
            let half = world.split(Some(world.rank() % 2), 0);
            let half = half.expect("split").expect("a part of it");
            let mut numbers = vec![0; half.size() as usize];
            half.all_gather(&[world.rank()], &mut numbers)
                .expect("all_gather");
            let expected = (0..world.size()).filter(|other| other % 2 == world.rank() % 2);
            assert!(expected.eq(numbers));
            world.finalize().expect("finalize");
        });
        let _exits = job.succeed();
    }
}

#[test]
fn long_calls_are_read_by_themselves_and_not_where_that_is_off() {
    for single_copy in [true, false] {
        threads(
            2,
            move |options| options.memory.single_copy = single_copy,
            move |world| {
                let plan = world.explain(Op::AllToAll, 4 << 20, DataType::F32);
                let plan = plan.expect("a plan");
                // Slots take less than reads between cores far apart.
                let pays = single_copy && !unisono_copy::has_caches_apart();
                assert_eq!(plan.algorithm() == "mesh_read", pays, "{plan}");
                world.finalize().expect("finalize");
            },
        );
    }
}

/// Peers would read it as it is.
#[test]
fn a_scaled_input_is_not_read() {
    const ELEMENTS: usize = 4 << 20;
    threads(
        2,
        |options| read_from(options, 1),
        |world| {
            let (input, mut sums) = (vec![1.0_f32; ELEMENTS], vec![0.0; ELEMENTS]);
            let scaled = Reduction::scaled_sum(3.0_f32);
            let error = world.all_reduce(&input, &mut sums, scaled);
            let error = error.expect_err("it is forced");
            assert!(error.is_harmless(), "{error}");
            assert!(error.to_string().contains("scaled"), "{error}");
            (world.all_reduce(&input, &mut sums, ReduceOp::Sum)).expect("all_reduce");
            assert!(sums.iter().all(|&sum| sum == 2.0));
            world.finalize().expect("finalize");
        },
    );
    threads(
        2,
        |_| {},
        |world| {
            let (input, mut sums) = (vec![1.0_f32; ELEMENTS], vec![0.0; ELEMENTS]);
            let scaled = Reduction::scaled_sum(3.0_f32);
            (world.all_reduce(&input, &mut sums, scaled)).expect("all_reduce");
            assert!(sums.iter().all(|&sum| sum == 6.0));
            world.finalize().expect("finalize");
        },
    );
}

/// Input that is put aside goes to the same memory in each call: fresh memory is cleared by the system, page by page.
#[test]
fn input_that_is_put_aside_takes_no_fresh_memory() {
    const CALLS: usize = 16;
    let test = "input_that_is_put_aside_takes_no_fresh_memory";
    let _limit = watchdog(test, LIMIT);
    let job = Job::new(test, 2).start(|rank| {
        let world = rank.init(|options| read_from(options, 4 << 20));
        let mut data = vec![rank.rank; 1 << 20];
        let mut call = || world.all_to_all_in_place(&mut data).expect("in place");
        let held = world.held_bytes();
        call();
        assert!(world.held_bytes() >= held + (4 << 20), "it is told");
        let before = page_faults();
        (0..CALLS).for_each(|_| call());
        let each = (page_faults() - before) / CALLS;
        // Its 4 MiB are a thousand pages.
        assert!(each < 250, "{each} faults a call");
        world.finalize().expect("finalize");
    });
    let _exits = job.succeed();
}

/// Page faults of this process so far that needed no disk.
fn page_faults() -> usize {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("this process");
    let after_name = stat.rsplit(')').next().expect("a name");
    let count = after_name.split_whitespace().nth(7).expect("faults");
    count.parse().expect("a number")
}

#[test]
fn one_rank_that_is_not_to_be_read_is_enough() {
    threads(
        3,
        |options| {
            read_from(options, 1 << 20);
            options.memory.single_copy = options.rank != 1;
        },
        |world| {
            let error = world.explain(Op::AllGather, 1 << 20, DataType::F32);
            let error = error.expect_err("it is forced").to_string();
            assert!(
                error.contains("mesh_read is forced") && error.contains("memory.single_copy"),
                "{error}"
            );
            let mut all = vec![0; 3];
            world
                .all_gather(&[world.rank()], &mut all)
                .expect("short ones go on");
            assert_eq!(all, [0, 1, 2]);
            world.finalize().expect("finalize");
        },
    );
}

/// Rank 1 is stopped while it reads rank 0's memory, and rank 0 then aborts; rank 1 goes on half a second later. Says how
/// long rank 0's call took to fail, or nothing if rank 1 had read all before it was stopped; rank 1, whether its own failed.
fn abort_while_the_peer_reads(rank: &Rank) {
    let world = rank.init(|options| {
        read_from(options, BLOCK as u64);
        options.timeouts.abort_drain = 20_000 * MS;
    });
    let mut pids = [0_u32; 2];
    world
        .all_gather(&[std::process::id()], &mut pids)
        .expect("all_gather");
    let mut data = vec![7_u8; BLOCK];
    world.barrier().expect("barrier");
    let mut aborted = || match world.broadcast(&mut data, 0) {
        Ok(()) => false,
        Err(Error::Aborted { .. }) => true,
        Err(other) => panic!("{other}"),
    };
    if rank.rank == 1 {
        if aborted() {
            rank.say("aborted");
        }
        return;
    }
    let peer = Pid::from_raw(pids[1] as i32).expect("a process");
    let abort = world.abort_handle();
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let aborted = aborted();
            (aborted, Instant::now())
        });
        // It takes tens of milliseconds to read so much.
        std::thread::sleep(10 * MS);
        kill_process(peer, Signal::STOP).expect("a signal");
        std::thread::sleep(50 * MS);
        let since = Instant::now();
        abort.abort("enough");
        std::thread::sleep(500 * MS);
        kill_process(peer, Signal::CONT).expect("a signal");
        let (aborted, end) = caller.join().expect("no panic");
        if aborted {
            rank.say(&format!("took {}", (end - since).as_millis()));
        }
    });
}

/// Its memory is the caller's again when the call has failed: nobody takes what is written there then for data.
#[test]
fn a_failed_call_waits_for_peers_that_still_read() {
    let test = "a_failed_call_waits_for_peers_that_still_read";
    let _limit = watchdog(test, LIMIT);
    // On a busy machine the signal may come when all has been read, and then nothing failed.
    for _ in 0..10 {
        let ranks = Job::new(test, 2).start(|rank| abort_while_the_peer_reads(&rank));
        let exits = ranks.succeed();
        let (Some(took), true) = (exits[0].answered("took"), exits[1].said("aborted")) else {
            continue;
        };
        let took: u64 = took.parse().expect("a number");
        assert!((490..5_000).contains(&took), "{took} ms");
        return;
    }
    panic!("rank 1 was never stopped while it read");
}

/// Whoever reads of a process that ends gets an error that names the rank, and neither hangs nor takes what it got.
#[test]
fn a_rank_that_dies_while_it_is_read_is_named() {
    let test = "a_rank_that_dies_while_it_is_read_is_named";
    let _limit = watchdog(test, LIMIT);
    let mut ranks = Job::new(test, 3).start(|rank| {
        let world = rank.init(|options| read_from(options, BLOCK as u64));
        let mut data = vec![7_u8; BLOCK];
        world.barrier().expect("barrier");
        if rank.rank == 0 {
            rank.say("in it");
        }
        let error = world.broadcast(&mut data, 0).expect_err("its root is dead");
        rank.say(&format!("error {error}"));
    });
    ranks.wait_for(0, "in it").expect("it comes so far");
    std::thread::sleep(10 * MS);
    ranks.kill(0);
    for exit in &ranks.finish()[1..] {
        let error = exit.answer("error");
        assert!(error.contains("rank 0"), "{error}");
    }
}
