//! What breaks: a rank, a device, a link, the memory, a fork. An error everywhere, and no hang.
#![allow(unsafe_code, reason = "calls take addresses of device memory; forks")]

use std::time::{Duration, Instant};

use unisono::hal::{MemoryKind, MemoryRequest, Status};
use unisono::plan::Op;
use unisono::{Communicator, Error, InitOptions, PluginRequest, RawCall, ReduceOp, Sizes};
use unisono_emulated_tests::{Emulated, Values};
use unisono_tests::{Exit, Rank};

const LEN: usize = 50_000;
/// How often ranks fail at once.
const AT_ONCE: usize = 100;

/// A vendor's machine, and what its runtime says of a lost device and of too much memory.
struct Vendor {
    plugin: &'static str,
    machine: &'static str,
    memory: &'static str,
    lost: &'static str,
    no_memory: &'static str,
}

const VENDORS: [Vendor; 4] = [
    Vendor {
        plugin: "cuda",
        machine: "h100x8",
        memory: "85899345920",
        lost: "CUDA_ERROR_DEVICE_UNAVAILABLE",
        no_memory: "CUDA_ERROR_OUT_OF_MEMORY",
    },
    Vendor {
        plugin: "rocm",
        machine: "mi300x8",
        memory: "206158430208",
        lost: "hipErrorLaunchFailure",
        no_memory: "hipErrorOutOfMemory",
    },
    Vendor {
        plugin: "ascend",
        machine: "ascend910bx8",
        memory: "68719476736",
        lost: "code 507018",
        no_memory: "out of memory",
    },
    // Its streams wait by the host's help.
    Vendor {
        plugin: "ascend",
        machine: "ascend910ax8",
        memory: "34359738368",
        lost: "code 507018",
        no_memory: "out of memory",
    },
];

/// Tells a rank's process whose devices it has.
const PLUGIN: &str = "TEST_PLUGIN";

fn own_device(options: &mut InitOptions) {
    let plugin = std::env::var(PLUGIN).expect("a plugin");
    options.plugins = vec![PluginRequest::named(&plugin)];
    options.device = Some((plugin, options.rank));
    options.timeouts.op = Duration::from_secs(5);
}

fn all_reduce(world: &Communicator, data: &Values<f32>) -> Result<(), Error> {
    let at = data.address();
    let call = RawCall {
        op: Op::AllReduce,
        input: at,
        output: at,
        sizes: Sizes::Equal(LEN as u64),
        dtype: unisono::DataType::F32,
        reduction: Some(ReduceOp::Sum.into()),
    };
    // SAFETY: device memory that lives until the call is complete, and nobody else uses.
    unsafe { world.call_raw(call) }
}

/// Calls until something breaks, and says how long the last call took to say so.
fn until_it_breaks(rank: &Rank, world: &Communicator) {
    let data = Values::<f32>::new(world.device(), LEN);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(20) {
        let start = Instant::now();
        if let Err(error) = all_reduce(world, &data) {
            assert!(
                start.elapsed() < Duration::from_secs(15),
                "{:?}",
                start.elapsed()
            );
            rank.say(&format!("error: {error}"));
            return;
        }
    }
    rank.say("nothing broke");
}

fn all_say_an_error(exits: &[Exit], but: Option<u32>) {
    for exit in exits.iter().filter(|exit| Some(exit.rank) != but) {
        let told = exit.lines.iter().any(|line| line.starts_with("error: "));
        assert!(told && !exit.late, "{exit:?}");
    }
}

/// What an abort released may touch the same bytes in any order.
fn aborts(text: String) -> String {
    text + "finds_races: false\n"
}

#[test]
fn a_killed_rank_is_an_error_on_the_others() {
    let test = "a_killed_rank_is_an_error_on_the_others";
    for vendor in &VENDORS {
        let Some(machine) = Emulated::new(test, vendor.machine, aborts) else {
            return;
        };
        let job = machine.job(test, 3).env(PLUGIN, vendor.plugin);
        let ranks = job.start(|rank| {
            let world = rank.init(own_device);
            if rank.rank == 2 {
                std::thread::spawn(|| {
                    std::thread::sleep(Duration::from_secs(1));
                    std::process::abort();
                });
            }
            until_it_breaks(&rank, &world);
        });
        all_say_an_error(&ranks.finish(), Some(2));
    }
}

#[test]
fn a_lost_device_is_an_error_on_all() {
    let test = "a_lost_device_is_an_error_on_all";
    let lost = |text: String| aborts(text) + "faults: [{kind: lost, device: 1, after: 400}]\n";
    for vendor in &VENDORS {
        let Some(machine) = Emulated::new(test, vendor.machine, lost) else {
            return;
        };
        let job = machine.job(test, 3).env(PLUGIN, vendor.plugin);
        let ranks = job.start(|rank| until_it_breaks(&rank, &rank.init(own_device)));
        let exits = ranks.finish();
        all_say_an_error(&exits, None);
        let told = exits[1].lines.concat();
        assert!(told.contains(vendor.lost), "{told}");
    }
}

#[test]
fn a_link_that_fails_is_an_error_on_all() {
    let test = "a_link_that_fails_is_an_error_on_all";
    let fails = |text: String| {
        aborts(text) + "faults: [{kind: link, device: 0, peer: 1, after: 3000000}]\n"
    };
    for vendor in &VENDORS {
        let Some(machine) = Emulated::new(test, vendor.machine, fails) else {
            return;
        };
        let job = machine.job(test, 2).env(PLUGIN, vendor.plugin);
        let ranks = job.start(|rank| until_it_breaks(&rank, &rank.init(own_device)));
        all_say_an_error(&ranks.finish(), None);
    }
}

#[test]
fn what_a_device_has_not_is_an_error() {
    let test = "what_a_device_has_not_is_an_error";
    for vendor in &VENDORS {
        let small = |text: String| aborts(text.replace(vendor.memory, "268435456"));
        let Some(machine) = Emulated::new(test, vendor.machine, small) else {
            return;
        };
        let job = machine
            .job(test, 1)
            .env(PLUGIN, vendor.plugin)
            .env("TEST_SAYS", vendor.no_memory);
        let ranks = job.start(|rank| {
            let says = std::env::var("TEST_SAYS").expect("a text");
            let world = rank.init(own_device);
            for exportable in [false, true] {
                let mut request = MemoryRequest::new(MemoryKind::Data, 300 << 20);
                request.exportable = exportable;
                let error = world.device().alloc(&request).expect_err("too much");
                assert_eq!(error.status, Status::OutOfMemory, "{error}");
                assert!(error.message.contains(&says), "{error}");
            }
            rank.say("done");
        });
        let exits = ranks.finish();
        assert!(exits[0].said("done"), "{exits:?}");
    }
}

/// Two ranks fail at once, each of its own: what a call says is what every later call says.
#[test]
fn what_a_call_says_is_kept() {
    let test = "what_a_call_says_is_kept";
    let vendor = &VENDORS[0];
    let small = |text: String| aborts(text.replace(vendor.memory, "268435456"));
    let Some(machine) = Emulated::new(test, vendor.machine, small) else {
        return;
    };
    let job = machine.job(test, 2).env(PLUGIN, vendor.plugin);
    let ranks = job.start(|rank| {
        let world = rank.init(own_device);
        let mut too_much = vec![0_f32; (300 << 20) / size_of::<f32>()];
        for turn in 0..AT_ONCE {
            let one = world.duplicate().expect("a communicator");
            world.barrier().expect("nothing has failed there");
            let told = one
                .all_reduce_in_place(&mut too_much, ReduceOp::Sum)
                .expect_err("too much");
            let again = one.barrier().expect_err("it is broken");
            assert_eq!(again.to_string(), told.to_string(), "{turn}");
        }
        rank.say("done");
    });
    let exits = ranks.finish();
    assert!(exits.iter().all(|exit| exit.said("done")), "{exits:?}");
}

/// A child that a program forks drops what it got of its parent: the driver hears nothing of it (the
/// emulators end who calls them there), and the parent's devices work on.
#[test]
fn a_forked_child_leaves_devices_alone() {
    let test = "a_forked_child_leaves_devices_alone";
    for vendor in &VENDORS {
        let Some(machine) = Emulated::new(test, vendor.machine, aborts) else {
            return;
        };
        let job = machine.job(test, 2).env(PLUGIN, vendor.plugin);
        let ranks = job.start(|rank| {
            let world = rank.init(own_device);
            let data = Values::<f32>::new(world.device(), LEN);
            all_reduce(&world, &data).expect("before the fork");
            // SAFETY: the child calls what a program may call there, and leaves without a way back.
            let child = unsafe { libc::fork() };
            if child == 0 {
                drop(data);
                drop(world);
                // SAFETY: ends the child at once.
                unsafe { libc::_exit(7) };
            }
            assert!(child > 0, "{}", std::io::Error::last_os_error());
            let mut status = 0;
            let end = Instant::now() + Duration::from_secs(10);
            // SAFETY: a child of this process; writes a number.
            while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
                if Instant::now() > end {
                    // SAFETY: as above: nobody has waited for it yet.
                    unsafe { libc::kill(child, libc::SIGKILL) };
                    panic!("the child hangs");
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(
                libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7,
                "{status:#x}"
            );
            all_reduce(&world, &data).expect("behind the fork");
            rank.say("done");
        });
        let exits = ranks.finish();
        assert!(exits.iter().all(|exit| exit.said("done")), "{exits:?}");
    }
}
