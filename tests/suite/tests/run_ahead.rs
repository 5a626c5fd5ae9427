//! Rooted calls of few bytes, of which a rank that needs nothing of the others runs ahead: right
//! results whatever comes next, and nobody waits for a rank that has left.

use std::sync::{Arc, Barrier};
use std::thread::sleep;
use std::time::{Duration, Instant};

use unisono::plan::Op;
use unisono::plan::select::{Override, Overrides};
use unisono::{Algorithm, Communicator, Error, InitOptions, ReduceOp, Rules};
use unisono_tests::{
    Job, WITHOUT, do_without, few_broadcasts, over_all_links, resident_bytes, threads, watchdog,
};

const LIMIT: Duration = Duration::from_secs(120);

/// More than there are flags between two ranks.
const CALLS: u32 = 150;

/// Rank 0 calls at once, the others are late, again and again.
fn late(world: &Communicator, round: u32) {
    if world.rank() > 0 && round.is_multiple_of(10) {
        sleep(Duration::from_micros(u64::from(world.rank()) * 300));
    }
}

fn broadcasts(world: &Communicator) {
    for round in 0..CALLS {
        late(world, round);
        let mut data = [if world.rank() == 0 { round } else { u32::MAX }; 2];
        world.broadcast(&mut data, 0).expect("broadcast");
        assert_eq!(data, [round; 2]);
    }
}

fn reduces(world: &Communicator) {
    for round in 0..CALLS {
        late(world, round);
        let mut sum = [0; 3];
        world
            .reduce(&[round + world.rank(); 3], &mut sum, ReduceOp::Sum, 0)
            .expect("reduce");
        if world.rank() == 0 {
            let ranks = (0..world.size()).sum::<u32>();
            assert_eq!(sum, [round * world.size() + ranks; 3]);
        }
    }
}

fn gathers_and_scatters(world: &Communicator) {
    let ranks = world.size() as usize;
    for round in 0..CALLS {
        late(world, round);
        let mut all = vec![0; ranks];
        world
            .gather(&[round ^ world.rank()], &mut all, 0)
            .expect("gather");
        if world.rank() == 0 {
            let expected: Vec<_> = (0..world.size()).map(|rank| round ^ rank).collect();
            assert_eq!(all, expected);
        }
        let mut own = [0];
        world.scatter(&all, &mut own, 0).expect("scatter");
        assert_eq!(own, [round ^ world.rank()]);
    }
}

/// Calls that are started, others behind them, and waited for then.
fn started(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let [next, before] = [(rank + 1) % size, (rank + size - 1) % size];
    let buffer = || world.buffer::<u32>(2).expect("memory");
    let (mut sum, mut sent, mut got) = (buffer(), buffer(), buffer());
    for round in 0..CALLS {
        late(world, round);
        sum.fill(round);
        sent.fill(round + rank);
        let summed = world.start_all_reduce(sum, ReduceOp::Sum).expect("start");
        let sending = world.start_send(sent, next).expect("start");
        let receiving = world.start_recv(got, before).expect("start");
        if round.is_multiple_of(3) {
            let mut data = [if rank == 0 { round } else { u32::MAX }; 2];
            world.broadcast(&mut data, 0).expect("broadcast");
            assert_eq!(data, [round; 2]);
        }
        got = receiving.wait().expect("received");
        sent = sending.wait().expect("sent");
        sum = summed.wait().expect("summed");
        assert_eq!(got[..], [round + before; 2]);
        assert_eq!(sum[..], [round * size; 2]);
    }
}

/// Every order of two of these, with other calls behind.
fn all_in_turn(world: &Communicator) {
    let kinds = [broadcasts, reduces, gathers_and_scatters, started];
    for first in kinds {
        for second in kinds {
            first(world);
            second(world);
        }
        let mut sum = [1_u64; 5];
        world
            .all_reduce_in_place(&mut sum, ReduceOp::Sum)
            .expect("all_reduce");
        assert_eq!(sum, [u64::from(world.size()); 5]);
        // A long message, which the stream carries, behind what is owed.
        first(world);
        let mut long = vec![world.rank() + 7; 1 << 20];
        world.broadcast(&mut long, 0).expect("broadcast");
        assert!(long.iter().all(|element| *element == 7));
        // Messages beside each other.
        first(world);
        messages(world);
        world.barrier().expect("barrier");
    }
    // The last calls: whoever is through leaves.
    broadcasts(world);
}

/// From each rank to the next, and from the next to it, at once.
fn messages(world: &Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let [next, before] = [(rank + 1) % size, (rank + size - 1) % size];
    let (to_next, to_before) = ([rank; 4], [rank + 100; 4]);
    let (mut from_before, mut from_next) = ([0; 4], [0; 4]);
    world
        .group(|group| {
            group.send(&to_next, next)?;
            group.send(&to_before, before)?;
            group.recv(&mut from_before, before)?;
            group.recv(&mut from_next, next)
        })
        .expect("a group");
    let expected = match size {
        // The next is the one before: its two messages come in the order in which it sent them.
        2 => [[next; 4], [next + 100; 4]],
        _ => [[before; 4], [next + 100; 4]],
    };
    assert_eq!([from_before, from_next], expected);
}

fn run(ranks: u32, adjust: impl Fn(&mut InitOptions) + Send + Sync + Clone + 'static) {
    let _limit = watchdog("run_ahead", LIMIT);
    for without in WITHOUT {
        let adjust = adjust.clone();
        let adjust = move |options: &mut InitOptions| {
            do_without(without, options);
            adjust(options);
        };
        threads(ranks, adjust, |world| all_in_turn(&world));
    }
}

#[test]
fn two_ranks() {
    run(2, |_| {});
}

#[test]
fn five_ranks() {
    run(5, |_| {});
}

#[test]
fn two_slots() {
    run(3, |options| options.memory.slots = 2);
}

#[test]
fn many_slots() {
    run(3, |options| options.memory.slots = 33);
}

/// Of no bytes nothing that comes is data, nor is it an answer.
#[test]
fn calls_of_nothing_in_a_row() {
    let _limit = watchdog("calls_of_nothing_in_a_row", LIMIT);
    for without in WITHOUT {
        let adjust = move |options: &mut InitOptions| do_without(without, options);
        threads(3, adjust, |world| {
            for call in 0..60 {
                let (none, mut out) = ([0_u8; 0], [0_u8; 0]);
                match call / 15 {
                    0 => world.broadcast(&mut out, 1),
                    1 => world.scatter(&none, &mut out, 1),
                    2 => world.reduce(&none, &mut out, ReduceOp::Sum, 1),
                    _ => world.gather(&none, &mut out, 1),
                }
                .unwrap_or_else(|error| panic!("call {call}: {error}"));
            }
            world.barrier().expect("barrier");
        });
    }
}

/// Of one element some plans put nothing to some ranks.
#[test]
fn calls_of_one_element_by_every_plan_in_a_row() {
    let _limit = watchdog("calls_of_one_element_by_every_plan_in_a_row", LIMIT);
    let ops = [Op::Broadcast { root: 1 }, Op::Reduce { root: 1 }];
    let plans = (ops.iter())
        .flat_map(|op| Algorithm::ALL.map(|algorithm| (*op, algorithm)))
        .filter(|(op, algorithm)| algorithm.supports(*op, 4, false).is_ok());
    for (op, algorithm) in plans {
        for without in WITHOUT {
            let adjust = move |options: &mut InitOptions| {
                do_without(without, options);
                options.rules = Rules::new(move |_, _| Overrides {
                    rules: vec![Override {
                        op: Some(op.kind()),
                        bytes: 0..=u64::MAX,
                        algorithm: algorithm.into(),
                        windowed: Some(false),
                        put_bytes: None,
                    }],
                });
            };
            threads(4, adjust, move |world| {
                let is_root = world.rank() == 1;
                for round in 0..40 {
                    let mut data = [if is_root { round } else { u32::MAX }];
                    let (result, wanted) = match op {
                        Op::Broadcast { root } => (world.broadcast(&mut data, root), round),
                        _ => {
                            let result = world.reduce(&[round], &mut data, ReduceOp::Sum, 1);
                            (result, if is_root { 4 * round } else { u32::MAX })
                        }
                    };
                    match result {
                        // Over sockets nobody reads another's memory.
                        Err(Error::Unsupported { .. })
                            if algorithm.reads_peers() || algorithm.shows_puts() => {}
                        result => {
                            result.unwrap_or_else(|error| panic!("{op} by {algorithm}: {error}"));
                            assert_eq!(data, [wanted], "{op} by {algorithm}");
                        }
                    }
                }
            });
        }
    }
}

/// The root is through with some broadcasts before anybody else has called one.
#[test]
fn the_root_runs_ahead() {
    let _limit = watchdog("the_root_runs_ahead", LIMIT);
    for without in WITHOUT {
        let ahead = Arc::new(Barrier::new(3));
        threads(
            3,
            move |options| {
                do_without(without, options);
                options.timeouts.op = Duration::from_secs(5);
            },
            move |world| {
                world.barrier().expect("barrier");
                // What begins over a link is told of once, and not before it stands.
                few_broadcasts(&world, 1);
                world.barrier().expect("barrier");
                if world.rank() == 0 {
                    few_broadcasts(&world, 4);
                    ahead.wait();
                } else {
                    ahead.wait();
                    few_broadcasts(&world, 4);
                }
                world.barrier().expect("barrier");
            },
        );
    }
}

/// By many calls of up to 1 KiB, so that ranks that share a core change seldom, and over links by some that are longer.
#[test]
fn the_root_runs_far_ahead() {
    let _limit = watchdog("the_root_runs_far_ahead", LIMIT);
    let [mapped, posted] = WITHOUT;
    let cases = [
        (mapped, 4, 100),
        (mapped, 33, 100),
        (mapped, 1024, 100),
        (posted, 4, 100),
        (posted, 1024, 100),
        (posted, 1025, 28),
        (posted, 4096, 28),
    ];
    for (without, bytes, far) in cases {
        let ahead = Arc::new(Barrier::new(3));
        let adjust = move |options: &mut InitOptions| {
            do_without(without, options);
            options.timeouts.op = Duration::from_secs(5);
        };
        threads(3, adjust, move |world| {
            world.barrier().expect("barrier");
            // What begins over a link is told of once, and not before it stands.
            few_broadcasts(&world, 1);
            world.barrier().expect("barrier");
            if world.rank() != 0 {
                ahead.wait();
            }
            for round in 0..far {
                let sent = round as u8;
                let mut data = vec![if world.rank() == 0 { sent } else { u8::MAX }; bytes];
                world.broadcast(&mut data, 0).expect("broadcast");
                assert_eq!(data, vec![sent; bytes], "{bytes} bytes, round {round}");
            }
            if world.rank() == 0 {
                ahead.wait();
            }
            world.barrier().expect("barrier");
        });
    }
}

/// Sizes of which each has another room: what one leaves is no other's, whoever is late.
#[test]
fn all_sizes_in_turn() {
    const SIZES: [usize; 9] = [4, 1024, 16 << 10, 1025, 70_000, 4096, 120_000, 33, 16385];
    let _limit = watchdog("all_sizes_in_turn", LIMIT);
    for slots in [2, 8, 40] {
        for without in WITHOUT {
            let adjust = move |options: &mut InitOptions| {
                do_without(without, options);
                options.memory.slots = slots;
            };
            threads(3, adjust, |world| {
                let (rank, size) = (world.rank(), world.size());
                for round in 0..240_u32 {
                    late(&world, round);
                    // Sizes change each call at first, then stay for a while.
                    let kind = if round < 60 { round } else { round / 20 };
                    let bytes = SIZES[kind as usize % SIZES.len()];
                    let (root, sent) = (round / 40 % size, round as u8);
                    let mut data = vec![if rank == root { sent } else { !sent }; bytes];
                    world.broadcast(&mut data, root).expect("broadcast");
                    assert!(
                        data.iter().all(|byte| *byte == sent),
                        "{bytes} bytes, round {round}"
                    );
                    let mut sums = vec![0_u8; bytes];
                    world
                        .reduce(&data, &mut sums, ReduceOp::Max, root)
                        .expect("reduce");
                    assert!(rank != root || sums == data, "{bytes} bytes, round {round}");
                    let mut all = vec![0_u8; bytes * size as usize];
                    world.all_gather(&data, &mut all).expect("all_gather");
                    assert!(
                        all.iter().all(|byte| *byte == sent),
                        "{bytes} bytes, round {round}"
                    );
                }
            });
        }
    }
}

/// A message waits for no one before it: not for a long one, which its rank has not looked at.
#[test]
fn a_short_message_behind_a_long_one_to_a_rank_that_computes() {
    const COMPUTES: Duration = Duration::from_secs(3);
    let _limit = watchdog("a_short_message_behind_a_long_one", LIMIT);
    let job = Job::new("a_short_message_behind_a_long_one", 2);
    let ranks = job.start(|rank| {
        over_all_links(&rank, |world| {
            let (mut long, mut short) = (vec![7_u8; 100_000], [8_u8; 8]);
            world.barrier().expect("barrier");
            if world.rank() == 0 {
                let since = Instant::now();
                world.send(&long, 1).expect("sent");
                world.send(&short, 1).expect("sent");
                world.send(&short, 1).expect("sent");
                let took = since.elapsed();
                assert!(took < COMPUTES / 2, "{took:?}");
            } else {
                sleep(COMPUTES);
                world.recv(&mut long, 0).expect("received");
                world.recv(&mut short, 0).expect("received");
                world.recv(&mut short, 0).expect("received");
                assert_eq!(short, [8; 8]);
            }
            world.barrier().expect("barrier");
        });
    });
    let _ = ranks.succeed();
}

/// A communicator's links end with it, though something of it is kept: peers hear at once that this rank has left.
#[test]
fn links_end_with_their_communicator() {
    const KEPT: Duration = Duration::from_secs(4);
    let _limit = watchdog("links_end_with_their_communicator", LIMIT);
    let job = Job::new("links_end_with_their_communicator", 2);
    let ranks = job.start(|rank| {
        let world = rank.init(|options| do_without(WITHOUT[1], options));
        world.barrier().expect("barrier");
        if world.rank() == 0 {
            let sending = world.start_send(world.buffer::<u32>(2).expect("memory"), 1);
            let sending = sending.expect("started");
            while !sending.is_done().expect("sent") {
                sleep(Duration::from_millis(1));
            }
            drop(world);
            sleep(KEPT);
            drop(sending);
        } else {
            let mut got = [0_u32; 2];
            world.recv(&mut got, 0).expect("received");
            let since = Instant::now();
            // There is room for so many.
            let told = (0..50).any(|_| {
                sleep(Duration::from_millis(20));
                world.send(&got, 0).is_err()
            });
            assert!(told && since.elapsed() < KEPT / 2, "it has left");
        }
    });
    let _ = ranks.succeed();
}

/// Signals that were sent leave nothing behind, however many there are. In processes: others' memory does not count.
#[test]
fn many_barriers_take_no_memory() {
    const BARRIERS: usize = 100_000;
    let _limit = watchdog("many_barriers_take_no_memory", LIMIT);
    let job = Job::new("many_barriers_take_no_memory", 2).limit(LIMIT);
    let ranks = job.start(|rank| {
        over_all_links(&rank, |world| {
            let barriers = |count| {
                for _ in 0..count {
                    world.barrier().expect("barrier");
                }
            };
            barriers(BARRIERS / 10);
            let before = resident_bytes();
            barriers(BARRIERS);
            let grown = resident_bytes().saturating_sub(before);
            assert!(grown < 1 << 20, "{grown} bytes");
        });
    });
    let _ = ranks.succeed();
}

/// A receiver that computes between messages has given back what it took, as far as the sender needs it.
#[test]
fn messages_to_a_rank_that_computes() {
    let _limit = watchdog("messages_to_a_rank", LIMIT);
    for without in WITHOUT {
        threads(
            2,
            move |options| {
                do_without(without, options);
                options.timeouts.op = Duration::from_secs(10);
            },
            |world| {
                for round in 0..200_u32 {
                    let long = vec![round; 1 + (round as usize * 37) % 3000];
                    if world.rank() == 0 {
                        world.send(&long, 1).expect("sent");
                        continue;
                    }
                    if round.is_multiple_of(23) {
                        sleep(Duration::from_millis(5));
                    }
                    let mut got = vec![0; long.len()];
                    world.recv(&mut got, 0).expect("received");
                    assert!(got == long, "round {round}");
                }
            },
        );
    }
}

/// Who starts a send like one before need not wait for it: nobody else need come, on this rank or another, also where
/// there are windows that such a send does not reach into.
#[test]
fn a_started_send_is_done_at_once() {
    let _limit = watchdog("a_started_send", LIMIT);
    let sent = Arc::new(Barrier::new(2));
    threads(
        2,
        |_| {},
        move |world| {
            let mut data = world.buffer::<u32>(2).expect("memory");
            let mut windows = Vec::new();
            for round in 0..20 {
                let is_first = round % 10 == 0;
                if round == 10 {
                    windows.push(world.alloc::<u32>(2).expect("alloc"));
                }
                if world.rank() == 0 {
                    data.fill(round);
                    let pending = world.start_send(data, 1).expect("start");
                    let is_done = pending.is_done().expect("no error");
                    assert!(is_done || is_first, "round {round}");
                    sent.wait();
                    data = pending.wait().expect("done");
                } else {
                    sent.wait();
                    let pending = world.start_recv(data, 0).expect("start");
                    data = pending.wait().expect("done");
                    assert_eq!(data[..], [round; 2]);
                }
            }
        },
    );
}

/// What the root heard nothing of yet when another call came is told with both calls' names.
#[test]
fn who_called_something_else_than_the_root_ran_ahead_with_is_named() {
    let _limit = watchdog("who_called_something_else", LIMIT);
    for without in WITHOUT {
        threads(
            2,
            move |options| {
                do_without(without, options);
                options.timeouts.op = Duration::from_secs(5);
            },
            |world| {
                world.barrier().expect("barrier");
                let root = if world.rank() == 0 { 0 } else { 1 };
                let called = world.broadcast(&mut [7_u32; 2], root);
                let error = called
                    .and_then(|()| world.barrier())
                    .expect_err("they differ");
                let said = error.to_string();
                assert!(matches!(error, Error::Mismatch(_)), "{said}");
                for root in ["root 0", "root 1"] {
                    assert!(
                        said.contains(&format!("broadcast(count 2, u32, {root}) as call 1")),
                        "{said}"
                    );
                }
            },
        );
    }
}

/// A rank that never comes is missed in time, whatever the root calls behind what it ran ahead with.
#[test]
fn a_deadline_runs_while_what_is_owed_is_made_up_for() {
    let _limit = watchdog("a_deadline_runs", LIMIT);
    type Behind = fn(&Communicator) -> unisono::Result<()>;
    let behind: [Behind; 2] = [
        |world| {
            let (sent, mut got) = ([1_u8], [0_u8]);
            world.group(|group| {
                group.send(&sent, 1)?;
                group.recv(&mut got, 1)
            })
        },
        |world| {
            let stream = world.stream()?;
            let on = world.on(&stream);
            let pending = on.all_reduce(world.buffer::<i64>(10)?, ReduceOp::Sum)?;
            pending.wait().map(|_| ())
        },
    ];
    for (behind, without) in behind
        .iter()
        .flat_map(|behind| WITHOUT.map(|without| (*behind, without)))
    {
        threads(
            2,
            move |options| {
                do_without(without, options);
                options.timeouts.op = Duration::from_millis(500);
            },
            move |world| {
                world.barrier().expect("barrier");
                if world.rank() == 1 {
                    while world.async_error().is_none() {
                        sleep(Duration::from_millis(5));
                    }
                    return;
                }
                // One in eight is answered.
                for _ in 0..10 {
                    world.broadcast(&mut [5_u8; 4], 0).expect("it runs ahead");
                }
                let since = Instant::now();
                let error = behind(&world).expect_err("rank 1 does not come");
                let said = error.to_string();
                assert!(matches!(error, Error::Timeout(_)), "{said}");
                assert!(said.contains("missing ranks: 1"), "{said}");
                assert!(
                    said.contains("waiting for an earlier call of rank 1"),
                    "{said}"
                );
                assert!(since.elapsed() < Duration::from_secs(10), "{said}");
            },
        );
    }
}

/// Messages of the very group that leaves waits owed find none of them.
#[test]
fn a_group_of_a_rooted_call_and_messages() {
    const LONG: usize = 1 << 22;
    let _limit = watchdog("a_group_of_a_rooted_call_and_messages", LIMIT);
    for without in WITHOUT {
        threads(
            3,
            move |options| do_without(without, options),
            |world| {
                let long: Vec<u32> = (0..LONG as u32).collect();
                let mut got = vec![0; LONG];
                for round in 0..30 {
                    let (mut small, told, mut one) = ([round + world.rank(); 2], [round], [0]);
                    late(&world, round * 10);
                    if world.rank() == 1 {
                        sleep(Duration::from_millis(3));
                    }
                    world
                        .group(|group| {
                            group.broadcast(&mut small, 0)?;
                            match world.rank() {
                                0 => {
                                    group.send(&told, 1)?;
                                    group.recv(&mut got, 2)
                                }
                                1 => group.recv(&mut one, 0),
                                _ => group.send(&long, 0),
                            }
                        })
                        .expect("a group");
                    assert_eq!(small, [round; 2]);
                    if world.rank() == 0 {
                        assert!(got == long, "round {round}");
                        got.fill(0);
                    }
                    if world.rank() == 1 {
                        assert_eq!(one, [round]);
                    }
                }
            },
        );
    }
}

/// What is owed by so many ranks fills more than a batch.
#[test]
fn a_call_on_a_stream_behind_more_than_a_batch_of_what_is_owed() {
    let _limit = watchdog("more_than_a_batch", LIMIT);
    threads(
        18,
        |options| {
            options.rules = Rules::new(|_, _| Overrides {
                rules: vec![Override {
                    op: None,
                    bytes: 0..=4096,
                    algorithm: Algorithm::MeshOneShot.into(),
                    windowed: Some(false),
                    put_bytes: None,
                }],
            });
        },
        |world| {
            for _ in 0..3 {
                for round in 0..13 {
                    let mut data = [round; 2];
                    world.broadcast(&mut data, 0).expect("broadcast");
                }
                let stream = world.stream().expect("a stream");
                let mut data = world.buffer::<i64>(4).expect("a buffer");
                data.fill(1);
                let summed = world.on(&stream).all_reduce(data, ReduceOp::Sum);
                let summed = summed.expect("it starts").wait().expect("it ends");
                assert!(summed.iter().all(|sum| *sum == 18));
            }
        },
    );
}
