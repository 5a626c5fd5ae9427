//! Ranks on emulated devices of Huawei's: two generations, and a box with a link that is down.
#![allow(
    unsafe_code,
    reason = "calls take addresses of device memory; calls the runtime"
)]

use std::collections::BTreeSet;
use std::time::Duration;

use libloading::Library;
use unisono::hal::{Batch, MemoryKind, MemoryRequest, Queue, State, Status};
use unisono::plan::Op;
use unisono::{DataType, Error, PluginRequest, RawCall, ReduceOp, Sizes};
use unisono_emulated_tests::{
    Emulated, Values, a_few, all_done, all_reduce, answer, attempts, call, conforms,
    every_collective, every_type, fp8_and_scaled, own_device,
};
use unisono_emulator::Place;
use unisono_tests::{Count, threads};

const SECOND: &str = "ascend910bx8";
const FIRST: &str = "ascend910ax8";

#[test]
fn the_second_generation_conforms() {
    let test = "the_second_generation_conforms";
    let Some(machine) = Emulated::new(test, SECOND, |text| text) else {
        return;
    };
    conforms(&machine, "ascend", None, &[]);
}

/// Its streams wait for nothing in memory, and its devices reach no host memory: a thread does it all.
#[test]
fn the_first_generation_conforms() {
    let test = "the_first_generation_conforms";
    let Some(machine) = Emulated::new(test, FIRST, |text| text) else {
        return;
    };
    conforms(&machine, "ascend", None, &[]);
}

#[test]
fn no_driver_is_said_clearly() {
    let test = "no_driver_is_said_clearly";
    let Some(machine) = Emulated::new(test, SECOND, |text| text) else {
        return;
    };
    let environment = machine.environment();
    if std::path::Path::new("/usr/local/Ascend").exists() {
        unisono_tests::skip(
            test,
            "this machine has the vendor's software, and silicon behind it",
        );
        return;
    }
    let said = answer("ascend", &environment, Some("LD_LIBRARY_PATH"));
    assert!(said.contains("no driver: none of libascendcl.so"), "{said}");
    assert!(!said.contains("signal"), "the process lives: {said}");
    // The same library, with no device behind it.
    let said = answer("ascend", &environment, Some(unisono_emulator::BOX));
    assert!(
        said.contains("does not start: aclInit: code 507000"),
        "{said}"
    );
    // And with all of it.
    let said = answer("ascend", &environment, None);
    assert!(said.contains("1 pass"), "{said}");
}

/// Every collective on all eight devices of a box.
fn a_whole_box(test: &str, name: &str) {
    let Some(machine) = Emulated::new(test, name, |text| text) else {
        return;
    };
    let ranks = machine.job(test, 8).start(|rank| {
        let world = rank.init(own_device("ascend"));
        for len in [1, 1000, 20_011] {
            every_collective::<f32>(&world, len, len as u64);
        }
        every_collective::<i64>(&world, 300, 4);
        rank.say("done");
    });
    all_done(&ranks.finish());
}

#[test]
fn every_collective_on_eight_of_the_second_generation() {
    a_whole_box("every_collective_on_eight_of_the_second_generation", SECOND);
}

#[test]
fn every_collective_on_eight_of_the_first_generation() {
    a_whole_box("every_collective_on_eight_of_the_first_generation", FIRST);
}

/// What is chosen for a size, and why, as `unisono explain` prints it.
fn chosen(machine: &Emulated, test: &str, bytes: u64) -> String {
    let job = machine.job(test, 8).env("TEST_BYTES", bytes);
    let ranks = job.start(|rank| {
        let bytes = std::env::var("TEST_BYTES").ok();
        let bytes = bytes.and_then(|text| text.parse().ok()).expect("a size");
        let world = rank.init(own_device("ascend"));
        let explained = world.explain(Op::AllReduce, bytes, DataType::F32);
        let explained = explained.expect("a plan");
        println!("{explained}");
        rank.say(explained.algorithm());
    });
    let exits = ranks.finish();
    assert!(
        exits.iter().all(|exit| exit.lines == exits[0].lines),
        "{exits:?}"
    );
    exits[0].lines.concat()
}

#[test]
fn a_mesh_is_used_as_a_mesh() {
    let test = "a_mesh_is_used_as_a_mesh";
    let Some(machine) = Emulated::new(test, SECOND, |text| text) else {
        return;
    };
    assert_eq!(chosen(&machine, test, 1 << 10), "mesh_one_shot");
    assert_eq!(chosen(&machine, test, 64 << 20), "mesh_two_shot");
}

/// Random collectives of all types and reductions.
#[test]
fn random_collectives_on_both_generations() {
    let test = "random_collectives_on_both_generations";
    let count = Count::new(2, 100);
    for seed in 0..count.get() {
        let name = if seed % 2 == 0 { SECOND } else { FIRST };
        let adjust = |text: String| text + "delays: {one_in: 8, longest_us: 100}\n";
        let Some(machine) = Emulated::new(test, name, adjust) else {
            return;
        };
        let machine = machine.seeded(seed);
        let ranks = machine.job(test, 4).env("TEST_SALT", seed).start(|rank| {
            let salt = std::env::var("TEST_SALT").ok();
            let salt = salt.and_then(|text| text.parse().ok());
            let world = rank.init(own_device("ascend"));
            // What needs a function of the program's own is refused.
            let _ = attempts(&world, 40, salt.unwrap_or(0));
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}

/// Without the allow list, and without trusting in numbers in host memory, all is as before.
#[test]
fn parameters_choose_the_other_ways() {
    let test = "parameters_choose_the_other_ways";
    let Some(machine) = Emulated::new(test, SECOND, |text| text) else {
        return;
    };
    let ranks = machine.job(test, 3).start(|rank| {
        let world = rank.init(|options| {
            own_device("ascend")(options);
            let off = |name: &str| (name.to_owned(), "false".to_owned());
            options.plugins[0].params = vec![off("allow_list"), off("values")];
        });
        a_few(&world, 9);
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// A device has so many streams and no more: who wants another is told, and nothing is lost.
#[test]
fn a_device_runs_out_of_streams() {
    let test = "a_device_runs_out_of_streams";
    let few = |text: String| text.replace("queues: 1984", "queues: 12");
    let Some(machine) = Emulated::new(test, FIRST, few) else {
        return;
    };
    let ranks = machine.job(test, 1).start(|rank| {
        let world = rank.init(own_device("ascend"));
        for _ in 0..3 {
            let mut streams = Vec::new();
            let error = loop {
                match world.device().stream(0) {
                    Ok(stream) => streams.push(stream),
                    Err(error) => break error,
                }
            };
            assert!((1..12).contains(&streams.len()), "{}", streams.len());
            assert_eq!(error.status, Status::OutOfMemory, "{error}");
            assert!(error.message.contains("no streams left"), "{error}");
        }
        world.barrier().expect("a barrier");
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// Programs make streams and end them: what is kept for one goes with its wrap.
#[test]
fn wrapped_streams_leave_nothing_behind() {
    let test = "wrapped_streams_leave_nothing_behind";
    let few = |text: String| text + "notifies: 16\n";
    let Some(machine) = Emulated::new(test, FIRST, few) else {
        return;
    };
    let ranks = machine.job(test, 1).start(|rank| {
        let world = rank.init(own_device("ascend"));
        let device = world.device();
        let memory = device.alloc(&MemoryRequest::new(MemoryKind::Data, 64));
        let at = memory.as_ref().expect("memory").base();
        let runtime = Runtime::open();
        for _ in 0..40 {
            let native = runtime.stream();
            // SAFETY: a stream that lives until its wraps are gone.
            let wrap = || unsafe { device.wrap_stream(native) }.expect("a wrapped stream");
            let (mut stream, other) = (wrap(), wrap());
            // One of two goes while the other is used.
            drop(other);
            // SAFETY: memory that is kept.
            let mut batch = unsafe { Batch::new() };
            batch.copy(at, at + 32, 32);
            stream.submit(&mut batch).expect("a copy");
            while stream.poll(1 << 20).expect("a poll").state != State::Idle {
                std::thread::yield_now();
            }
            drop(stream);
            runtime.destroy(native);
        }
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// The runtime, as a program has it.
struct Runtime(Library);

impl Runtime {
    fn open() -> Self {
        // SAFETY: the plugin has opened it already.
        let this = Self(unsafe { Library::new("libascendcl.so") }.expect("the runtime"));
        // SAFETY: it takes a number and gives a code, by the runtime's manual.
        let code = unsafe { this.get::<unsafe extern "C" fn(i32) -> i32>("aclrtSetDevice")(0) };
        assert_eq!(code, 0);
        this
    }

    /// # Safety
    /// The function is of this type.
    unsafe fn get<T: Copy>(&self, name: &str) -> T {
        // SAFETY: the caller's promise.
        *unsafe { self.0.get::<T>(name.as_bytes()) }.expect("a function")
    }

    fn stream(&self) -> u64 {
        let mut stream = 0;
        // SAFETY: it writes a handle and takes two numbers, by the runtime's manual.
        let code = unsafe {
            let make: unsafe extern "C" fn(*mut u64, u32, u32) -> i32 =
                self.get("aclrtCreateStreamWithConfig");
            make(&raw mut stream, 0, 0)
        };
        assert_eq!(code, 0);
        stream
    }

    fn destroy(&self, stream: u64) {
        // SAFETY: it takes a stream, which nobody uses, by the runtime's manual.
        let code =
            unsafe { self.get::<unsafe extern "C" fn(u64) -> i32>("aclrtDestroyStream")(stream) };
        assert_eq!(code, 0);
    }
}

/// Types that the runtime reduces, and those that the processor does.
#[test]
fn every_type_on_both_generations() {
    let test = "every_type_on_both_generations";
    for name in [SECOND, FIRST] {
        let Some(machine) = Emulated::new(test, name, |text| text) else {
            return;
        };
        let ranks = machine.job(test, 2).start(|rank| {
            let world = rank.init(own_device("ascend"));
            every_type(&world, 500);
            fp8_and_scaled(&world, 500);
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}

/// Its streams compare no words: the CPU does, and before a call is told complete.
#[test]
fn ranks_that_call_different_things_are_told_so() {
    let test = "ranks_that_call_different_things_are_told_so";
    for name in [SECOND, FIRST] {
        // The call that is found wrong ends in the middle of what it had begun.
        let aborts = |text: String| text + "finds_races: false\n";
        let Some(machine) = Emulated::new(test, name, aborts) else {
            return;
        };
        let mut ranks = machine.job(test, 3).start(|rank| {
            let world = rank.init(own_device("ascend"));
            let data = Values::<f32>::new(world.device(), 100);
            let reduction = match rank.rank {
                2 => ReduceOp::Max,
                _ => ReduceOp::Sum,
            };
            let call = |reduction: ReduceOp| {
                let at = data.address();
                // SAFETY: device memory that lives until the call is complete, and nobody else uses.
                unsafe {
                    world.call_raw(RawCall {
                        op: Op::AllReduce,
                        input: at,
                        output: at,
                        sizes: Sizes::Equal(100),
                        dtype: DataType::F32,
                        reduction: Some(reduction.into()),
                    })
                }
            };
            call(ReduceOp::Sum).expect("all call the same");
            // A rank may be through with a call in which another still is: that one would be told there.
            rank.say("first");
            let _ = rank.told().recv();
            let error = call(reduction).expect_err("rank 2 calls another reduction");
            let said = error.to_string();
            assert!(matches!(error, Error::Mismatch(_)), "{said}");
            for called in ["f32, sum)", "f32, max)"] {
                assert!(said.contains(called), "{said}");
            }
            rank.say("done");
        });
        for rank in 0..3 {
            let _ = ranks.wait_for(rank, "first");
        }
        for rank in 0..3 {
            ranks.tell(rank, "go");
        }
        all_done(&ranks.finish());
    }
}

#[test]
fn threads_of_one_process_on_both_generations() {
    let test = "threads_of_one_process_on_both_generations";
    for name in [SECOND, FIRST] {
        let Some(machine) = Emulated::new(test, name, |text| text) else {
            return;
        };
        let ranks = machine.job(test, 1).start(|rank| {
            threads(4, own_device("ascend"), |world| a_few(&world, 5));
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}

/// Bytes go over the links between devices: the host's memory sees what the test itself fills and
/// reads.
#[test]
fn no_byte_passes_the_hosts_memory() {
    const LEN: usize = 1 << 17;
    const RANKS: u32 = 8;
    let test = "no_byte_passes_the_hosts_memory";
    let Some(machine) = Emulated::new(test, SECOND, |text| text) else {
        return;
    };
    let ranks = machine.job(test, RANKS).start(|rank| {
        let world = rank.init(own_device("ascend"));
        all_reduce::<f32>(&world, LEN, ReduceOp::Sum, 1);
        rank.say("done");
    });
    all_done(&ranks.finish());
    let (traffic, bytes) = (machine.traffic(), (LEN * 4) as u64);
    // Beside the values, each has written a few proofs of 64 bytes, and read some.
    let slack = 64 << 10;
    for device in (0..RANKS).map(Place::Device) {
        for moved in [
            traffic.data(Place::Host, device),
            traffic.data(device, Place::Host),
        ] {
            assert!(
                (bytes..bytes + slack).contains(&moved),
                "{moved} bytes by {device:?}"
            );
        }
    }
}

/// Other orders and delays each time.
#[test]
fn three_processes_under_many_seeds() {
    let test = "three_processes_under_many_seeds";
    let count = Count::new(4, 100);
    for seed in 0..count.get() {
        let name = if seed % 2 == 0 { SECOND } else { FIRST };
        let adjust = |text: String| text + "delays: {one_in: 8, longest_us: 100}\n";
        let Some(machine) = Emulated::new(test, name, adjust) else {
            return;
        };
        let machine = machine.seeded(seed);
        let ranks = machine.job(test, 3).start(|rank| {
            let world = rank.init(own_device("ascend"));
            a_few(&world, 3);
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}

/// What receivers read lies in the sender's memory, which its maker alone frees: not before they are done.
#[test]
fn a_sender_that_leaves_is_read_first() {
    const LEN: usize = 3000;
    let test = "a_sender_that_leaves_is_read_first";
    let Some(machine) = Emulated::new(test, SECOND, |text| text) else {
        return;
    };
    let ranks = machine.job(test, 2).start(|rank| {
        let world = rank.init(own_device("ascend"));
        let data = Values::<i32>::new(world.device(), LEN);
        for turn in 0..4 {
            let pair = world.split(Some(0), 0).expect("a pair").expect("of both");
            let expected = [turn; LEN];
            if world.rank() == 0 {
                data.write(&expected);
                call(&pair, Op::Send { to: 1 }, (&data, &data), LEN, None);
                drop(pair);
            } else {
                std::thread::sleep(Duration::from_millis(100));
                call(&pair, Op::Recv { from: 0 }, (&data, &data), LEN, None);
                assert!(data.read() == expected, "turn {turn}");
            }
            world.barrier().expect("a barrier");
        }
        world.finalize().expect("finalize");
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// A device's links to other devices: to which, kind and rate.
fn reported(machine: &Emulated, test: &str, device: u32) -> BTreeSet<String> {
    let ranks = machine.job(test, 1).start(move |rank| {
        let world = rank.init(|options| {
            options.plugins = vec![PluginRequest::named("ascend")];
            options.device = Some(("ascend".to_owned(), device));
        });
        let own = world.device().info().id;
        let links = world.device().instance().link_report().expect("links");
        let others = links
            .iter()
            .filter(|link| link.from == own && link.to != own);
        for link in others {
            let [written, read] =
                [link.bytes_per_second, link.read_bytes_per_second].map(|rate| rate as f64 / 1e9);
            let line = format!("{} {} {written}/{read}", link.to[12], link.kind);
            rank.say(line.trim_end_matches("/0"));
        }
    });
    let exits = ranks.finish();
    exits.into_iter().flat_map(|exit| exit.lines).collect()
}

fn lines(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn each_pair_has_a_link_of_its_own() {
    let test = "each_pair_has_a_link_of_its_own";
    let Some(machine) = Emulated::new(test, SECOND, |text| text) else {
        return;
    };
    let all: Vec<String> = (1..8).map(|to| format!("{to} hccs 19.3/25.7")).collect();
    assert_eq!(reported(&machine, test, 0), all.into_iter().collect());
}

#[test]
fn a_link_that_is_down_is_none() {
    let test = "a_link_that_is_down_is_none";
    let dead = |text: String| text.replace("fabric:\n", "fabric:\n  dead: [[0, 2]]\n");
    let Some(machine) = Emulated::new(test, SECOND, dead) else {
        return;
    };
    let expected = [
        "1 hccs 19.3/25.7",
        "2 hccs 19.3/25.7",
        "3 pcie 24",
        "4 hccs 19.3/25.7",
        "5 hccs 19.3/25.7",
        "6 hccs 19.3/25.7",
        "7 hccs 19.3/25.7",
    ];
    assert_eq!(reported(&machine, test, 0), lines(&expected));
}

#[test]
fn between_groups_of_the_first_generation_is_the_hosts_bus() {
    let test = "between_groups_of_the_first_generation_is_the_hosts_bus";
    let Some(machine) = Emulated::new(test, FIRST, |text| text) else {
        return;
    };
    let expected = [
        "0 hccs 15",
        "1 hccs 15",
        "3 hccs 15",
        "4 pcie 12",
        "5 pcie 12",
        "6 pcie 12",
        "7 pcie 12",
    ];
    assert_eq!(reported(&machine, test, 2), lines(&expected));
}
