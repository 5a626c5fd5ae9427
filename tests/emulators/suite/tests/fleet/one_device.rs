//! Ranks that are threads of one process on one device: it has fewer queues than they have streams, and
//! what pins memory waits for all that any of them has under way.
#![allow(unsafe_code, reason = "registers memory of its own")]

use std::time::Duration;

use unisono::{Communicator, InitOptions, PluginRequest, ReduceOp};
use unisono_emulated_tests::{attempts, own_device};
use unisono_tests::{Count, Rng, threads};

use crate::{DELAYS, machine_of};

/// Vendors' devices have 8, 4 and many queues.
const VENDORS: [&str; 3] = ["cuda", "rocm", "ascend"];

/// All ranks on the first device of a plugin.
fn on_first(plugin: &'static str) -> impl Fn(&mut InitOptions) + Send + Sync + Copy {
    move |options| {
        own_device(plugin)(options);
        options.plugins = vec![PluginRequest::named(plugin)];
        options.device = Some((plugin.to_owned(), 0));
        // Many communicators, whose slots would take most of the time to be zeroed.
        options.memory.slot = Some(128 << 10);
    }
}

/// Runs `body` in one process of a fleet; what it leaves undone after so long has hung.
fn process(test: &str, body: impl Fn()) {
    process_of(test, "", body);
}

/// As [`process`], with devices of which more is said.
fn process_of(test: &str, devices: &str, body: impl Fn()) {
    let Some(machine) = machine_of(test, |text| text + DELAYS + devices) else {
        return;
    };
    let job = machine.job(test, 1).limit(Duration::from_secs(150));
    let ranks = job.start(|rank| {
        body();
        rank.say("done");
    });
    let exits = ranks.finish();
    assert!(exits[0].said("done"), "{exits:?}");
}

#[test]
fn more_ranks_than_queues() {
    process("one_device::more_ranks_than_queues", || {
        for plugin in VENDORS {
            threads(6, on_first(plugin), |world| {
                let _ = attempts(&world, 10, 5);
                world.finalize().expect("finalize");
            });
        }
    });
}

fn sum_of(world: &Communicator, value: i32) {
    let mut data = vec![value; 300];
    let sum = world.all_reduce_in_place(&mut data, ReduceOp::Sum);
    sum.expect("all_reduce");
    assert!(
        data.iter()
            .all(|found| *found == value * world.size() as i32)
    );
}

/// Each rank starts the calls of many communicators in an order of its own.
#[test]
fn more_communicators_than_queues_in_any_order() {
    process(
        "one_device::more_communicators_than_queues_in_any_order",
        || {
            let communicators = 32;
            let rounds = Count::new(1, 5).get();
            for plugin in VENDORS {
                threads(2, on_first(plugin), move |world| {
                    in_any_order(&world, communicators, rounds as usize);
                    world.finalize().expect("finalize");
                });
            }
        },
    );
}

fn in_any_order(world: &Communicator, communicators: usize, rounds: usize) {
    let all: Vec<_> = (0..communicators)
        .map(|_| world.duplicate().expect("duplicate"))
        .collect();
    let mut rng = Rng::new(u64::from(world.rank()) + 17);
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..all.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, rng.below(at as u64 + 1) as usize);
        }
        let mut pending = Vec::new();
        for at in order {
            let mut buffer = all[at].buffer::<i32>(1000).expect("a buffer");
            buffer
                .write(&vec![(at + round) as i32; 1000])
                .expect("written");
            let started = all[at].start_all_reduce(buffer, ReduceOp::Sum);
            pending.push((at, started.expect("started")));
        }
        let mut kept = Vec::new();
        for (at, pending) in pending {
            let buffer = pending.wait().expect("done");
            let mut found = vec![0; 1000];
            buffer.read(&mut found).expect("read");
            let sum = 2 * (at + round) as i32;
            assert!(found.iter().all(|found| *found == sum), "communicator {at}");
            // Freeing waits for what the others have under way, which may need this rank.
            kept.push(buffer);
        }
        world.barrier().expect("a barrier");
        drop(kept);
    }
}

/// A rank that comes late pins memory while the first ones are at their next call already.
#[test]
fn memory_is_registered_while_others_wait() {
    process("one_device::memory_is_registered_while_others_wait", || {
        for plugin in VENDORS {
            threads(3, on_first(plugin), |world| {
                sum_of(&world, 1);
                let late = u64::from(world.rank()) * 100;
                std::thread::sleep(Duration::from_millis(late));
                let mut own = vec![0_u8; 1 << 16];
                // SAFETY: it is mapped until the registration is dropped.
                let registered = unsafe { world.register(own.as_mut_ptr(), 1 << 16) };
                let registered = registered.expect("registered");
                sum_of(&world, 2);
                std::thread::sleep(Duration::from_millis(late));
                registered.end().expect("ended");
                world.finalize().expect("finalize");
            });
        }
    });
}

/// The first rank has a long call before it that waits for the other, and nothing of it is in the way of that one's first copy.
#[test]
fn what_waits_holds_up_no_other_rank() {
    let test = "one_device::what_waits_holds_up_no_other_rank";
    process_of(test, "copies_queue_up: true\n", || {
        for plugin in ["cuda", "rocm"] {
            threads(2, on_first(plugin), move |world| {
                let len = 1 << 19;
                for late in [1, 0] {
                    let values = vec![world.rank() + 1; len];
                    let mut buffer = world.buffer::<u32>(len).expect("a buffer");
                    buffer.write(&values).expect("written");
                    world.barrier().expect("a barrier");
                    if world.rank() == late {
                        std::thread::sleep(Duration::from_millis(200));
                    }
                    let sum = world.start_all_reduce(buffer, ReduceOp::Sum);
                    let sum = sum.expect("started").wait().expect("done");
                    let mut found = values;
                    sum.read(&mut found).expect("read");
                    assert!(found.iter().all(|found| *found == 3), "{plugin}");
                }
                world.finalize().expect("finalize");
            });
        }
    });
}

/// A stream's first call pins memory, too, while others wait.
#[test]
fn a_stream_is_first_used_while_others_wait() {
    process(
        "one_device::a_stream_is_first_used_while_others_wait",
        || {
            for plugin in VENDORS {
                threads(2, on_first(plugin), |world| {
                    sum_of(&world, 1);
                    let mut buffer = world.buffer::<i32>(300).expect("a buffer");
                    buffer.write(&[3; 300]).expect("written");
                    let stream = world.stream().expect("a stream");
                    if world.rank() == 0 {
                        drop(
                            world
                                .start_all_reduce(buffer, ReduceOp::Sum)
                                .expect("started")
                                .wait(),
                        );
                    } else {
                        std::thread::sleep(Duration::from_millis(200));
                        let on = world.on(&stream);
                        let pending = on.all_reduce(buffer, ReduceOp::Sum).expect("started");
                        let mut found = [0; 300];
                        pending
                            .wait()
                            .expect("done")
                            .read(&mut found)
                            .expect("read");
                        assert_eq!(found, [6; 300]);
                    }
                    world.barrier().expect("a barrier");
                    world.finalize().expect("finalize");
                });
            }
        },
    );
}
