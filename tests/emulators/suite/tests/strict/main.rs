//! The emulators are strict: what a real runtime refuses, breaks or blocks, they refuse, break or block. Each
//! by its own C symbols, without a plugin between.
#![allow(
    unsafe_code,
    reason = "calls runtimes; touches what it must not, in a child"
)]

mod captures;
mod raw;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use raw::{Runtime, Vendor, call, page};
use unisono_emulated_tests::{Emulated, all_done};

/// Tells the process what machine it is on.
const MACHINE: &str = "TEST_MACHINE";
/// What is blocked stays so for this long at least.
const LONG: Duration = Duration::from_millis(150);

/// Runs a body on a machine of each vendor, in a process of its own, which says that it is done.
fn on_each(test: &str, adjust: impl Fn(String) -> String, body: impl Fn(Runtime) + Copy) {
    for vendor in [Vendor::Cuda, Vendor::Hip, Vendor::Acl] {
        on(test, vendor, &adjust, body);
    }
}

fn on(test: &str, vendor: Vendor, adjust: impl Fn(String) -> String, body: impl FnOnce(Runtime)) {
    let Some(machine) = Emulated::new(test, vendor.machine(), adjust) else {
        return;
    };
    let job = machine.job(test, 1).env(MACHINE, vendor.machine());
    let ranks = job.start(|rank| {
        let vendor = Vendor::of(&std::env::var(MACHINE).expect("a machine"));
        body(Runtime::start(vendor));
        rank.say("done");
    });
    all_done(&ranks.finish());
}

/// Waits until something holds, or says that it does not.
fn comes(what: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while !what() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

#[test]
fn wrong_flags_are_refused() {
    on_each(
        "wrong_flags_are_refused",
        |text| text,
        |runtime| {
            let wrong = runtime.vendor.codes().invalid_value;
            let mut made = 0_u64;
            let to = &raw mut made;
            let (own, data) = (page(), runtime.alloc(4096));
            let stream = runtime.stream();
            let codes = match runtime.vendor {
                Vendor::Cuda => vec![
                    call!(runtime, "cuInit", (1): u32),
                    call!(runtime, "cuStreamCreate", (to): *mut u64, (2): u32),
                    call!(runtime, "cuMemHostRegister_v2", (own): *mut _, (4096): usize, (0x10): u32),
                    call!(runtime, "cuStreamWriteValue64_v2", (stream): u64, (data): u64, (1): u64, (2): u32),
                    // A number that does not lie on its own multiple.
                    call!(runtime, "cuStreamWaitValue64_v2", (stream): u64, (data + 4): u64, (1): u64, (0): u32),
                ],
                Vendor::Hip => vec![
                    call!(runtime, "hipStreamCreateWithFlags", (to): *mut u64, (2): u32),
                    call!(runtime, "hipExtMallocWithFlags", (to): *mut u64, (64): usize, (9): u32),
                    call!(runtime, "hipHostRegister", (own): *mut _, (4096): usize, (0x10): u32),
                    // Only signal memory is waited for, and signals are of 8 bytes.
                    call!(
                        runtime, "hipStreamWaitValue64", (stream): u64, (data): u64, (1): u64, (0): u32,
                        (u64::MAX): u64,
                    ),
                    call!(runtime, "hipExtMallocWithFlags", (to): *mut u64, (64): usize, (2): u32),
                ],
                Vendor::Acl => vec![
                    call!(
                        runtime, "aclrtCreateStreamWithConfig", (to): *mut u64, (8): u32, (0): u32,
                    ),
                    call!(
                        runtime, "aclrtCreateStreamWithConfig", (to): *mut u64, (0): u32, (4): u32,
                    ),
                    call!(runtime, "aclrtMalloc", (to): *mut u64, (64): usize, (9): i32),
                    // A device's memory is none of the host's.
                    runtime.copy_as(stream, data + 64, data, 64, 1),
                    runtime.copy_as(stream, data + 64, data, 64, 2),
                ],
            };
            assert_eq!(codes, [wrong; 5], "{:?}", runtime.vendor);
            assert_eq!(runtime.free(data), 0);
        },
    );
}

/// A thread that was given no device has none; with HIP it has the first, whatever the others have.
#[test]
fn another_thread_has_no_context() {
    on_each(
        "another_thread_has_no_context",
        |text| text,
        |runtime| {
            let vendor = runtime.vendor;
            if vendor == Vendor::Hip {
                assert_eq!(call!(runtime, "hipSetDevice", (3): i32), 0);
            }
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let found = runtime.try_alloc(64);
                    if vendor != Vendor::Hip {
                        assert_eq!(found, Err(vendor.codes().no_context));
                        runtime.enter();
                        assert!(runtime.try_alloc(64).is_ok());
                        return;
                    }
                    let mut device = -1;
                    let code = call!(runtime, "hipGetDevice", (&raw mut device): *mut i32);
                    assert_eq!((code, device), (0, 0));
                });
            });
        },
    );
}

#[test]
fn memory_that_was_freed_is_gone() {
    on_each(
        "memory_that_was_freed_is_gone",
        |text| text,
        |runtime| {
            let wrong = runtime.vendor.codes().invalid_value;
            let (stream, kept, freed) =
                (runtime.stream(), runtime.alloc(4096), runtime.alloc(4096));
            assert_eq!(runtime.copy(stream, kept, freed, 4096), 0);
            assert_eq!(runtime.free(freed), 0);
            assert_eq!(runtime.copy(stream, kept, freed, 4096), wrong, "a source");
            assert_eq!(runtime.copy(stream, freed, kept, 4096), wrong, "a target");
            assert_eq!(runtime.free(freed), wrong, "twice");
            assert_eq!(runtime.free(kept + 512), wrong, "not where it begins");
            assert_eq!(runtime.synchronise(stream), 0, "nothing of it was done");
            // A copy that runs over its end is taken, and breaks the device.
            assert_eq!(runtime.copy(stream, kept + 64, kept, 4096), 0);
            let broken = runtime.vendor.codes().illegal_address;
            assert_eq!(runtime.synchronise(stream), broken);
            assert_eq!(runtime.try_alloc(64), Err(broken), "from now on");
        },
    );
}

/// What a stream frees is gone for a copy of another stream's that comes to it later.
#[test]
fn memory_that_is_freed_below_a_copy_breaks_the_device() {
    let test = "memory_that_is_freed_below_a_copy_breaks_the_device";
    on(
        test,
        Vendor::Cuda,
        |text| text,
        |runtime| {
            let (held, other) = (runtime.stream(), runtime.stream());
            let (kept, word) = (runtime.alloc(4096), runtime.word());
            let mut pooled = 0_u64;
            let to = &raw mut pooled;
            let alloc = "cuMemAllocAsync";
            assert_eq!(
                call!(runtime, alloc, (to): *mut u64, (4096): usize, (other): u64),
                0
            );
            runtime.hold(held, word);
            assert_eq!(runtime.copy(held, kept, pooled, 4096), 0);
            assert_eq!(
                call!(runtime, "cuMemFreeAsync", (pooled): u64, (other): u64),
                0
            );
            assert_eq!(runtime.synchronise(other), 0);
            word.set(1);
            assert_eq!(runtime.synchronise(held), 700);
        },
    );
}

/// In a child, so that only it ends.
#[test]
fn the_processor_reaches_no_device_memory() {
    on_each(
        "the_processor_reaches_no_device_memory",
        |text| text,
        |runtime| {
            let at = runtime.alloc(1 << 20);
            for (offset, writes) in [(0, false), (0, true), (4096, false), ((1 << 20) - 1, true)] {
                // SAFETY: the child touches one byte, and leaves without a way back.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    // SAFETY: it is there to fault. No handler of this process's runs for it.
                    unsafe {
                        libc::signal(libc::SIGSEGV, libc::SIG_DFL);
                        let byte = (at + offset) as *mut u8;
                        if writes {
                            byte.write_volatile(1);
                        } else {
                            byte.read_volatile();
                        }
                        libc::_exit(0);
                    }
                }
                let mut status = 0;
                // SAFETY: a child of this process; writes a number.
                let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert_eq!(ended, child);
                let faulted = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV;
                assert!(faulted, "{:?} at {offset}: {status:#x}", runtime.vendor);
            }
        },
    );
}

/// One stream writes what another reads, again and again: with events between them all is well, without them
/// the device breaks.
#[test]
fn a_read_that_nothing_orders_breaks_the_device() {
    let test = "a_read_that_nothing_orders_breaks_the_device";
    let late = |text: String| text + "delays: {one_in: 3, longest_us: 300}\n";
    on_each(test, late, |runtime| {
        const BYTES: usize = 1 << 20;
        let at = runtime.alloc(3 * BYTES);
        let place = |number: usize| at + (number * BYTES) as u64;
        let (writer, reader) = (runtime.stream(), runtime.stream());
        let both = |ordered: bool| {
            let first = runtime.copy(writer, place(1), place(0), BYTES);
            if ordered {
                runtime.order(writer, reader);
            }
            let second = runtime.copy(reader, place(2), place(1), BYTES);
            if ordered {
                runtime.order(reader, writer);
            }
            first == 0 && second == 0
        };
        assert!((0..100).all(|_| both(true)));
        assert_eq!(runtime.synchronise(reader), 0);
        // Once the device is broken it takes no more.
        let _ = (0..300).all(|_| both(false));
        let race = runtime.vendor.codes().race;
        assert_eq!(runtime.synchronise(reader), race, "{:?}", runtime.vendor);
    });
}

#[test]
fn a_handle_is_for_other_processes() {
    on_each(
        "a_handle_is_for_other_processes",
        |text| text,
        |runtime| {
            let own = runtime.vendor.codes().own_handle;
            let (at, mut opened) = (runtime.alloc(1 << 20), 0_u64);
            let to = &raw mut opened;
            let mut handle = [0_u64; 8];
            let made = &raw mut handle;
            let code = match runtime.vendor {
                Vendor::Cuda => {
                    assert_eq!(
                        call!(runtime, "cuIpcGetMemHandle", (made): *mut [u64; 8], (at): u64),
                        0
                    );
                    let open = "cuIpcOpenMemHandle_v2";
                    let wrong = call!(runtime, open, (to): *mut u64, (handle): Handle, (0): u32);
                    assert_eq!(wrong, 1, "flags that there are not");
                    call!(runtime, open, (to): *mut u64, (handle): Handle, (1): u32)
                }
                Vendor::Hip => {
                    let make = "hipIpcGetMemHandle";
                    assert_eq!(call!(runtime, make, (made): *mut [u64; 8], (at): u64), 0);
                    call!(runtime, "hipIpcOpenMemHandle", (to): *mut u64, (handle): Handle, (1): u32)
                }
                Vendor::Acl => {
                    let mut key = [0_u8; 65];
                    let text = key.as_mut_ptr();
                    let make = "aclrtIpcMemGetExportKey";
                    let made = call!(
                        runtime, make, (at): u64, (1 << 20): usize, (text): *mut u8, (65): usize, (0): u64,
                    );
                    assert_eq!(made, 0);
                    let wrong = runtime.vendor.codes().invalid_value;
                    assert_eq!(runtime.free(at), wrong, "it has a key");
                    let open = "aclrtIpcMemImportByKey";
                    call!(runtime, open, (to): *mut u64, (text): *const u8, (1): u64)
                }
            };
            assert_eq!(code, own, "{:?}", runtime.vendor);
        },
    );
}

/// 64 bytes by value.
type Handle = [u64; 8];

/// A call that blocks behind all pending work, and its code when it does not block.
type Blocking = fn(&Runtime, u64) -> i32;

fn free(runtime: &Runtime, spare: u64) -> i32 {
    runtime.free(spare)
}

fn register(runtime: &Runtime, _: u64) -> i32 {
    let own = page();
    let mut at = 0_u64;
    match runtime.vendor {
        Vendor::Cuda => {
            call!(runtime, "cuMemHostRegister_v2", (own): *mut _, (4096): usize, (3): u32)
        }
        Vendor::Hip => call!(runtime, "hipHostRegister", (own): *mut _, (4096): usize, (3): u32),
        Vendor::Acl => call!(
            runtime, "aclrtHostRegister", (own as u64): u64, (4096): u64, (0): i32,
            (&raw mut at): *mut u64,
        ),
    }
}

/// An empty module; AscendCL's emulator loads none.
fn load(runtime: &Runtime, _: u64) -> i32 {
    let mut module = 0_u64;
    let to = &raw mut module;
    let text = c".version 6.0\n.target sm_70\n";
    match runtime.vendor {
        Vendor::Cuda => {
            call!(runtime, "cuModuleLoadData", (to): *mut u64, (text.as_ptr()): *const i8)
        }
        // No image: that is said behind the wait.
        Vendor::Hip => {
            let code =
                call!(runtime, "hipModuleLoadData", (to): *mut u64, (text.as_ptr()): *const i8);
            assert_eq!(code, 200);
            0
        }
        Vendor::Acl => panic!("it loads none"),
    }
}

#[test]
fn what_frees_registers_or_loads_blocks_behind_pending_work() {
    let test = "what_frees_registers_or_loads_blocks_behind_pending_work";
    on_each(
        test,
        |text| text,
        |runtime| {
            let mut calls: Vec<(&str, Blocking)> = vec![("free", free), ("register", register)];
            if runtime.vendor != Vendor::Acl {
                calls.push(("load", load));
            }
            let (stream, spare) = (runtime.stream(), runtime.alloc(4096));
            let words: Vec<_> = calls.iter().map(|_| runtime.word()).collect();
            for ((name, blocks), word) in calls.into_iter().zip(words) {
                let name = format!("{name} with {:?}", runtime.vendor);
                runtime.hold(stream, word);
                let ended = AtomicU32::new(0);
                std::thread::scope(|scope| {
                    scope.spawn(|| {
                        runtime.enter();
                        let code = blocks(&runtime, spare);
                        ended.store(1 + code.cast_unsigned(), Ordering::Release);
                    });
                    std::thread::sleep(LONG);
                    let early = ended.load(Ordering::Acquire);
                    word.set(1);
                    assert_eq!(early, 0, "{name} does not block");
                    assert!(comes(|| ended.load(Ordering::Acquire) == 1), "{name}");
                });
                assert_eq!(runtime.synchronise(stream), 0);
            }
        },
    );
}

/// A queue holds so many operations: who hands over one more waits until there is room.
#[test]
fn a_full_queue_blocks_who_submits() {
    let shallow = |text: String| text + "depth: 4\n";
    on_each("a_full_queue_blocks_who_submits", shallow, |runtime| {
        let (stream, at, word) = (runtime.stream(), runtime.alloc(4096), runtime.word());
        runtime.hold(stream, word);
        let submitted = Arc::new(AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                runtime.enter();
                for _ in 0..6 {
                    assert_eq!(runtime.copy(stream, at + 64, at, 64), 0);
                    submitted.fetch_add(1, Ordering::AcqRel);
                }
            });
            assert!(comes(|| submitted.load(Ordering::Acquire) >= 3));
            std::thread::sleep(LONG);
            let before = submitted.load(Ordering::Acquire);
            word.set(1);
            assert_eq!(
                before, 3,
                "{:?}: beside the wait there is room for three",
                runtime.vendor
            );
            assert!(comes(|| submitted.load(Ordering::Acquire) == 6));
        });
        assert_eq!(runtime.synchronise(stream), 0);
    });
}

/// More streams than hardware queues: who shares one with a stream that waits, waits with it.
#[test]
fn a_wait_holds_up_all_of_its_queue() {
    let test = "a_wait_holds_up_all_of_its_queue";
    for vendor in [Vendor::Cuda, Vendor::Hip] {
        on(test, vendor, two_queues, |runtime| {
            let streams = [(); 3].map(|()| runtime.stream());
            let (at, word) = (runtime.alloc(4096), runtime.word());
            runtime.hold(streams[0], word);
            for (stream, place) in streams.into_iter().zip([0, 128, 256]) {
                assert_eq!(runtime.copy(stream, at + place + 64, at + place, 64), 0);
            }
            let vendor = runtime.vendor;
            assert!(
                comes(|| runtime.is_done(streams[1])),
                "{vendor:?}: a queue of its own"
            );
            std::thread::sleep(LONG);
            assert!(!runtime.is_done(streams[0]), "{vendor:?}");
            assert!(
                !runtime.is_done(streams[2]),
                "{vendor:?}: the third shares one"
            );
            word.set(1);
            assert_eq!(streams.map(|stream| runtime.synchronise(stream)), [0; 3]);
        });
    }
}

/// Where copies are begun in the order in which they were handed over, one that waits for its stream holds up what comes
/// behind it on others.
#[test]
fn a_copy_that_waits_holds_up_later_ones() {
    let in_order = |text| text + "copies_queue_up: true\n";
    on_each(
        "a_copy_that_waits_holds_up_later_ones",
        in_order,
        |runtime| {
            let streams = [(); 2].map(|()| runtime.stream());
            let (at, word) = (runtime.alloc(4096), runtime.word());
            runtime.hold(streams[0], word);
            for (stream, place) in streams.into_iter().zip([0, 128]) {
                assert_eq!(runtime.copy(stream, at + place + 64, at + place, 64), 0);
            }
            std::thread::sleep(LONG);
            assert!(!runtime.is_done(streams[1]), "{:?}", runtime.vendor);
            word.set(1);
            assert_eq!(streams.map(|stream| runtime.synchronise(stream)), [0; 2]);
        },
    );
}

/// AscendCL's streams have a queue each: there are no more streams than that.
#[test]
fn streams_end_with_the_queues() {
    on(
        "streams_end_with_the_queues",
        Vendor::Acl,
        two_queues,
        |runtime| {
            let streams = [(); 2].map(|()| runtime.stream());
            assert_eq!(runtime.try_stream(), Err(207_008));
            assert_eq!(call!(runtime, "aclrtDestroyStream", (streams[0]): u64), 0);
            assert!(runtime.try_stream().is_ok());
        },
    );
}

fn two_queues(text: String) -> String {
    let others = text.lines().filter(|line| !line.starts_with("queues:"));
    others.map(|line| format!("{line}\n")).collect::<String>() + "queues: 2\n"
}
