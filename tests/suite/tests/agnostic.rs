//! Communicators cost nothing while nobody calls, and leave nothing behind; those made from others
//! are right, whoever calls them and from whichever thread.

use std::time::{Duration, Instant};

use unisono::{Communicator, Grid, InitOptions, ReduceOp};
use unisono_tests::{
    Collective, Count, CpuShare, Held, Job, Rank, Try, descriptors, threads, watchdog,
};

const LIMIT: Duration = Duration::from_secs(180);
const MADE: Count = Count::new(20, 200);

/// What an idle process may take of a core. One that burns takes all of it.
const PERCENT: f64 = 5.0;
/// Wakes a second: its thread looks once, and the test itself once more.
const WHILE_IDLE: f64 = 10.0;
/// When all is gone nothing is left to look at.
const WHEN_GONE: f64 = 5.0;

fn without_shm(options: &mut InitOptions) {
    options.without_links = vec!["shm".to_owned()];
}

/// Every collective once.
fn check(world: &Communicator, salt: u64) {
    let collectives = [
        Collective::AllReduce,
        Collective::ReduceScatter,
        Collective::AllGather,
        Collective::Broadcast(world.size() - 1),
    ];
    for collective in collectives {
        let attempt = Try {
            collective,
            count: 1000 + salt as usize % 7,
            op: ReduceOp::Sum.into(),
            in_place: false,
            salt,
        };
        attempt
            .run::<f32>(world)
            .expect("no error")
            .unwrap_or_else(|wrong| panic!("{}: {wrong}", world.name()));
    }
}

fn idle(rank: &Rank, tcp: bool) {
    let world = rank.init(|options| {
        if tcp {
            without_shm(options);
        }
    });
    let all: Vec<_> = (0..4)
        .map(|_| world.duplicate().expect("duplicate"))
        .collect();
    for (salt, communicator) in (0..).zip(&all) {
        check(communicator, salt);
    }
    world.barrier().expect("barrier");
    // Whoever was waiting goes to sleep first.
    std::thread::sleep(Duration::from_millis(100));
    rank.say(&format!("idle {}", quietest(3)));
    check(&world, 9);
    drop(all);
    world.finalize().expect("finalize");
    std::thread::sleep(Duration::from_millis(100));
    rank.say(&format!("after {}", quietest(2)));
}

/// Per cent of a core and wakes in the quietest of so many seconds: what burns does so in each, while a virtual machine that
/// is held up for a moment has that counted as somebody's time.
fn quietest(seconds: u32) -> String {
    let rests = (0..seconds).map(|_| {
        let share = CpuShare::begin();
        std::thread::sleep(Duration::from_secs(1));
        (share.percent(), share.wakes_a_second())
    });
    let none = (f64::INFINITY, f64::INFINITY);
    let (percent, wakes) = rests.fold(none, |a, b| (a.0.min(b.0), a.1.min(b.1)));
    format!("{percent:.3} {wakes:.1}")
}

fn idle_costs_nothing(test: &str, tcp: bool) {
    let _limit = watchdog(test, LIMIT);
    let ranks = Job::new(test, 3).start(move |rank| idle(&rank, tcp));
    for exit in ranks.succeed() {
        for (key, most) in [("idle", WHILE_IDLE), ("after", WHEN_GONE)] {
            let (percent, wakes) = exit.answer(key).split_once(' ').expect("two numbers");
            let number = |text: &str| text.parse::<f64>().expect("a number");
            let rank = exit.rank;
            assert!(number(percent) < PERCENT, "rank {rank}: {key} {percent} %");
            assert!(
                number(wakes) < most,
                "rank {rank}: {key} {wakes} wakes a second"
            );
        }
    }
}

#[test]
fn an_idle_process_in_shared_memory_takes_no_time() {
    idle_costs_nothing("an_idle_process_in_shared_memory_takes_no_time", false);
}

#[test]
fn an_idle_process_over_tcp_takes_no_time() {
    idle_costs_nothing("an_idle_process_over_tcp_takes_no_time", true);
}

/// Waits for what is closed a little later: a peer's end of a link, a thread that ends.
fn settled(before: &Held) -> Held {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let now = Held::now();
        if now.within(before) || Instant::now() > end {
            return now;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn made_and_dropped(test: &str, tcp: bool) {
    let _limit = watchdog(test, LIMIT);
    let ranks = Job::new(test, 3).limit(LIMIT).start(move |rank| {
        let world = rank.init(|options| {
            if tcp {
                without_shm(options);
            }
        });
        let once = |salt: u64| {
            let copy = world.duplicate().expect("duplicate");
            check(&copy, salt);
            let color = (rank.rank != salt as u32 % 3).then_some(7);
            if let Some(part) = world.split(color, -i64::from(rank.rank)).expect("split") {
                assert_eq!(part.size(), 2);
                check(&part, salt);
            }
            world.barrier().expect("barrier");
        };
        once(0);
        // Whoever sleeps for the first time gets a bell of its own: the caller, and the thread beside it, which sleeps
        // when it has nothing to do.
        for late in 0..9 {
            if rank.rank == late % 3 {
                std::thread::sleep(Duration::from_millis(60));
            }
            world.barrier().expect("barrier");
        }
        let before = settled(&Held {
            fds: 0,
            mappings: 0,
            threads: 1,
        });
        let open = descriptors();
        for salt in 1..=MADE.get() {
            once(salt);
        }
        let after = settled(&before);
        assert!(
            after.within(&before),
            "{before:?} became {after:?} after {MADE} duplicates and splits: {open:?} became {:?}",
            descriptors()
        );
        rank.say(&format!("held {after:?}"));
        world.finalize().expect("finalize");
    });
    let ranks = ranks.succeed();
    println!(
        "soak: {MADE} duplicates and splits made and dropped: {}",
        ranks[0].answer("held")
    );
}

#[test]
fn communicators_in_shared_memory_leave_nothing_behind() {
    made_and_dropped("communicators_in_shared_memory_leave_nothing_behind", false);
}

#[test]
fn communicators_over_tcp_leave_nothing_behind() {
    made_and_dropped("communicators_over_tcp_leave_nothing_behind", true);
}

#[test]
fn a_process_leaves_its_jobs_behind() {
    let _limit = watchdog("a_process_leaves_its_jobs_behind", LIMIT);
    let ranks = Job::new("a_process_leaves_its_jobs_behind", 2).start(|rank| {
        let threads = Held::now().threads;
        let mut baseline = None;
        for job in 0..6 {
            let world = rank.init(|options| {
                options.job.push_str(&format!("-{job}"));
                if job % 2 == 1 {
                    without_shm(options);
                }
            });
            check(&world, job);
            world.finalize().expect("finalize");
            // Plugins stay, and the progress thread: from the first two jobs on.
            if job == 1 {
                baseline = Some(settled(&Held {
                    fds: 0,
                    mappings: 0,
                    threads: 1,
                }));
            }
        }
        let mut before = baseline.expect("two jobs were run");
        // A thread has an eventfd of its own from its first sleep on, which may come late; what
        // leaks with each job would be more.
        before.fds += 1;
        let after = settled(&before);
        assert!(
            after.within(&before),
            "{before:?} became {after:?}: {:?}",
            unisono_tests::descriptors()
        );
        assert_eq!(
            after.threads,
            threads + 1,
            "the progress thread alone stays"
        );
    });
    let _ = ranks.succeed();
}

#[test]
fn a_communicator_of_one_rank_holds_nothing() {
    let _limit = watchdog("a_communicator_of_one_rank_holds_nothing", LIMIT);
    threads(
        2,
        |_| {},
        |world| {
            let alone = world
                .split(Some(world.rank()), 0)
                .expect("split")
                .expect("a color");
            assert_eq!((alone.rank(), alone.size()), (0, 1));
            check(&alone, 3);
            assert!(alone.held_bytes() < 4096, "{}", alone.held_bytes());
            assert!(world.held_bytes() > 4096);
            world.finalize().expect("finalize");
        },
    );
}

/// Each axis of the grid is used from a thread of its own, all at once.
fn grid(tcp: bool) {
    let adjust = move |options: &mut InitOptions| {
        if tcp {
            without_shm(options);
        }
    };
    threads(8, adjust, |world| {
        let grid: Grid = "dp=2,pp=2,tp=2".parse().expect("a grid");
        let lines = world.grid(&grid).expect("three axes");
        let names: Vec<_> = lines.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["dp", "pp", "tp"]);
        for (axis, (name, line)) in lines.iter().enumerate() {
            let (_, place) = grid.line(axis, world.rank());
            assert_eq!(
                (line.rank(), line.size(), line.name()),
                (place, 2, name.as_str())
            );
            // Who is on this line: the ranks that differ along this axis alone.
            let mut members = [0_u32; 2];
            line.all_gather(&[world.rank()], &mut members)
                .expect("all_gather");
            let stride = [4, 2, 1][axis];
            assert_eq!(members[1], members[0] + stride);
            assert_eq!(members[0] & stride, 0);
        }
        std::thread::scope(|scope| {
            for (_, line) in &lines {
                scope.spawn(|| (0..20).for_each(|salt| check(line, salt)));
            }
            (0..20).for_each(|salt| check(&world, salt));
        });
        world.finalize().expect("finalize");
    });
}

#[test]
fn grids_in_shared_memory_from_several_threads() {
    let _limit = watchdog("grids_in_shared_memory_from_several_threads", LIMIT);
    grid(false);
}

#[test]
fn grids_over_tcp_from_several_threads() {
    let _limit = watchdog("grids_over_tcp_from_several_threads", LIMIT);
    grid(true);
}

#[test]
fn splits_order_by_key_then_rank() {
    let _limit = watchdog("splits_order_by_key_then_rank", LIMIT);
    threads(
        5,
        |_| {},
        |world| {
            let rank = world.rank();
            let turned = world
                .split(Some(0), -i64::from(rank))
                .expect("split")
                .expect("a color");
            assert_eq!(turned.rank(), 4 - rank);
            let alike = world.split(Some(1), 5).expect("split").expect("a color");
            assert_eq!(alike.rank(), rank);
            let odd = world.split((rank % 2 == 1).then_some(3), 0).expect("split");
            assert_eq!(odd.is_some(), rank % 2 == 1);
            for communicator in [Some(&turned), Some(&alike), odd.as_ref()]
                .into_iter()
                .flatten()
            {
                check(communicator, 1);
            }
            world.finalize().expect("finalize");
        },
    );
}
