//! What is held back for posted links, so that it goes out together: it holds up no other rank.

use std::thread::sleep;
use std::time::{Duration, Instant};

use unisono::{Communicator, InitOptions, PluginRequest, ReduceOp};
use unisono_tests::{Job, WITHOUT, do_without, few_broadcasts, over_all_links, watchdog};

const LIMIT: Duration = Duration::from_secs(120);

/// Puts of a rank that is far ahead go out together, but not later than others need them: when it computes, or waits for
/// something else. In processes of their own: in one, a waiting rank drives the others' links.
#[test]
fn who_is_ahead_and_computes_holds_nobody_up() {
    const CALLS: u32 = 45;
    const COMPUTES: Duration = Duration::from_millis(800);
    let _limit = watchdog("who_is_ahead_and_computes_holds_nobody_up", LIMIT);
    let job = Job::new("who_is_ahead_and_computes_holds_nobody_up", 2);
    let ranks = job.start(|rank| {
        over_all_links(&rank, |world| {
            let is_ahead = world.rank() == 0;
            let mut message = [0_u8; 20];
            let mut kinds: [&mut dyn FnMut(); 2] =
                [&mut || few_broadcasts(world, 1), &mut || match is_ahead {
                    true => world.send(&message, 1).expect("sent"),
                    false => world.recv(&mut message, 0).expect("received"),
                }];
            for call in &mut kinds {
                world.barrier().expect("barrier");
                let since = Instant::now();
                (0..CALLS).for_each(|_| call());
                match is_ahead {
                    true => sleep(COMPUTES),
                    false => assert!(since.elapsed() < COMPUTES / 2, "{:?}", since.elapsed()),
                }
                // And where a call waits behind them.
                (0..CALLS).for_each(|_| call());
                world.barrier().expect("barrier");
            }
        });
    });
    let _ = ranks.succeed();
}

/// What a link could not take at once, of a rank that called quickly and now computes, goes out all the same: the next call
/// would have driven it on.
#[test]
fn what_a_link_could_not_take_goes_out_while_its_rank_computes() {
    const NAME: &str = "what_a_link_could_not_take_goes_out_while_its_rank_computes";
    const LAST: u32 = 6;
    const LATE: Duration = Duration::from_millis(100);
    const COMPUTES: Duration = Duration::from_millis(500);
    let _limit = watchdog(NAME, LIMIT);
    let ranks = Job::new(NAME, 2).start(|rank| {
        let world = rank.init(with_small_buffers);
        let is_ahead = world.rank() == 0;
        let mut message = vec![u8::from(is_ahead); 2 << 10];
        let mut broadcasts = |count| {
            for _ in 0..count {
                world.broadcast(&mut message, 0).expect("broadcast");
            }
            assert!(message.iter().all(|&byte| byte == 1));
        };
        // Of those one in eight is answered, and with some of the numbers the last are not.
        for calls in 25..33 {
            world.barrier().expect("barrier");
            if is_ahead {
                broadcasts(calls);
                sleep(COMPUTES);
            } else {
                broadcasts(calls - LAST);
                sleep(LATE);
                let since = Instant::now();
                broadcasts(LAST);
                let took = since.elapsed();
                assert!(took < COMPUTES / 2, "{calls} calls: {took:?}");
            }
            world.barrier().expect("barrier");
        }
    });
    let _ = ranks.succeed();
}

/// Signals that a rank held back, as the root was ahead of it, are out once it has caught up: the root needs them for
/// another call while that rank computes. In processes of their own: in one, a waiting rank drives the others' links.
#[test]
fn who_has_caught_up_holds_nobody_up() {
    const LATE: Duration = Duration::from_millis(100);
    const COMPUTES: Duration = Duration::from_millis(600);
    let _limit = watchdog("who_has_caught_up_holds_nobody_up", LIMIT);
    let job = Job::new("who_has_caught_up_holds_nobody_up", 3);
    let ranks = job.start(|rank| {
        over_all_links(&rank, |world| {
            // Behind so many of one plan answers are held back: of two numbers of calls in a row one leaves some. Of those
            // before, one call in eight is answered: the last, or one behind which others send nothing.
            for calls in [1, 2, 3, 4, 5, 6, 30, 31] {
                few_broadcasts(world, 1);
                world.barrier().expect("barrier");
                match world.rank() {
                    0 => {
                        few_broadcasts(world, calls);
                        sleep(2 * LATE);
                        let since = Instant::now();
                        world.send(&[1_u8], 2).expect("sent");
                        let mut back = [0_u8];
                        world.recv(&mut back, 2).expect("received");
                        let took = since.elapsed();
                        assert!(took < COMPUTES / 2, "{calls} calls: {took:?}");
                    }
                    1 => {
                        sleep(LATE);
                        few_broadcasts(world, calls);
                        sleep(COMPUTES);
                    }
                    _ => {
                        few_broadcasts(world, calls);
                        let mut there = [0_u8];
                        world.recv(&mut there, 0).expect("received");
                        world.send(&there, 0).expect("sent");
                    }
                }
                world.barrier().expect("barrier");
            }
        });
    });
    let _ = ranks.succeed();
}

/// The same where the rank that receives is the root, and computes.
#[test]
fn a_root_that_computes_holds_nobody_up() {
    others_go_on("a_root_that_computes_holds_nobody_up", 3, (0, 0));
}

/// The same where the root waits for one rank, and holds back what it has to say to others.
#[test]
fn a_root_that_waits_for_one_holds_no_other_up() {
    others_go_on("a_root_that_waits_for_one_holds_no_other_up", 4, (3, 1));
}

/// Ranks 1 and 2 go on behind reduces to rank 0 while another rank `computes`: which, with how many of the reduces left.
fn others_go_on(name: &'static str, ranks: u32, computes: (u32, u32)) {
    const COMPUTES: Duration = Duration::from_millis(600);
    let _limit = watchdog(name, LIMIT);
    let job = Job::new(name, ranks);
    let processes = job.start(|rank| {
        over_all_links(&rank, |world| {
            let compute = |left| {
                if (world.rank(), left) == computes {
                    sleep(COMPUTES);
                }
            };
            for calls in [30, 31, 33] {
                world.barrier().expect("barrier");
                for round in 0..calls {
                    compute(calls - round);
                    let (one, mut sum) = ([round; 2], [0; 2]);
                    let reduced = world.reduce(&one, &mut sum, ReduceOp::Sum, 0);
                    reduced.expect("reduce");
                    assert!(world.rank() > 0 || sum == [ranks * round; 2], "{sum:?}");
                }
                let mut message = [0_u8];
                let since = Instant::now();
                match world.rank() {
                    1 => world.send(&message, 2).expect("sent"),
                    2 => world.recv(&mut message, 1).expect("received"),
                    _ => compute(0),
                }
                if [1, 2].contains(&world.rank()) {
                    let took = since.elapsed();
                    assert!(took < COMPUTES / 2, "{calls} calls: {took:?}");
                }
                world.barrier().expect("barrier");
            }
        });
    });
    let _ = processes.succeed();
}

/// What a thread sends over one communicator does not stay held while it waits for another: two ranks that send over one
/// and receive over the other wait for each other.
#[test]
fn who_waits_for_another_communicator_holds_nobody_up() {
    const EXCHANGES: u32 = 500;
    let _limit = watchdog("who_waits_for_another_communicator_holds_nobody_up", LIMIT);
    let job = Job::new("who_waits_for_another_communicator_holds_nobody_up", 2);
    let ranks = job.start(|rank| {
        let world = rank.init(|options| do_without(WITHOUT[1], options));
        let mut both = [
            world.duplicate().expect("one"),
            world.duplicate().expect("two"),
        ];
        both.rotate_left(world.rank() as usize);
        let [there, back] = &both;
        let peer = 1 - world.rank();
        let two_ways = |there: &Communicator, back: &Communicator| {
            world.barrier().expect("barrier");
            let since = Instant::now();
            for round in 0..EXCHANGES {
                let mut got = u32::MAX;
                there.send(&[round], peer).expect("sent");
                back.recv(std::slice::from_mut(&mut got), peer)
                    .expect("received");
                assert_eq!(got, round);
            }
            let mut took = [since.elapsed().as_nanos() as u64];
            let slowest = world.all_reduce_in_place(&mut took, ReduceOp::Max);
            slowest.expect("all_reduce");
            took[0]
        };
        // Beside each other, as others may be at work on this machine; what was held took 20 times as long.
        let is_alike = (0..10).any(|_| {
            let [apart, together] = [two_ways(there, back), two_ways(&world, &world)];
            apart < 6 * together
        });
        assert!(is_alike, "sends wait for the progress thread");
    });
    let _ = ranks.succeed();
}

/// A rank that has received and now computes has told its sender of the room.
#[test]
fn who_only_receives_gives_back_at_once() {
    const LATE: Duration = Duration::from_millis(200);
    const COMPUTES: Duration = Duration::from_millis(1200);
    let _limit = watchdog("who_only_receives_gives_back_at_once", LIMIT);
    let job = Job::new("who_only_receives_gives_back_at_once", 2);
    let [mapped, posted] = WITHOUT;
    // Bytes of a message, and places for as many: flags, slots, or those that links have.
    let cases = [
        (mapped, 100, 128),
        (mapped, 2000, 8),
        (posted, 100, 128),
        (posted, 2000, 32),
    ];
    let ranks = job.start(move |rank| {
        for (without, bytes, places) in cases {
            let world = rank.init(|options| {
                options.job.push_str(&format!("-{bytes}-{without:?}"));
                do_without(without, options);
                options.memory.slots = 8;
            });
            let mut message = vec![0_u8; bytes];
            let mut pass = |count| {
                for _ in 0..count {
                    match world.rank() {
                        0 => world.send(&message, 1).expect("sent"),
                        _ => world.recv(&mut message, 0).expect("received"),
                    }
                }
            };
            world.barrier().expect("barrier");
            if world.rank() == 0 {
                // With the barrier's signal as many as there are places.
                pass(places - 1);
                sleep(2 * LATE);
                let since = Instant::now();
                // All were given back.
                pass(places);
                let took = since.elapsed();
                assert!(
                    took < COMPUTES / 2,
                    "{bytes} bytes without {without:?}: {took:?}"
                );
            } else {
                sleep(LATE);
                pass(places - 1);
                sleep(COMPUTES);
                pass(places);
            }
            world.barrier().expect("barrier");
        }
    });
    let _ = ranks.succeed();
}

/// TCP alone, of which sockets take little at once.
fn with_small_buffers(options: &mut InitOptions) {
    do_without(WITHOUT[1], options);
    let tcp = |plugin: &&mut PluginRequest| plugin.name == "tcp";
    for plugin in options.plugins.iter_mut().filter(tcp) {
        let small = |key: &str| (key.to_owned(), "4KiB".to_owned());
        plugin
            .params
            .extend(["send_buffer", "receive_buffer"].map(small));
    }
}
