//! Streams: commands, counters, words, budgets, partial acceptance, aborts.

use std::ffi::c_void;

use unisono_plugin::Pack;
use unisono_plugin::abi::{
    ABORT_STEP, CMD_STREAMING, CMD_WORDS, CommandCall, CommandCopy, CommandReduce, CommandScale,
    dtype, memory_kind, queue_state, reduction, status,
};

use crate::contract::{Host, Memory, copy, signal, wait};

/// Offsets in a page: a flag line, then the counters of its two sides.
const FLAG: u64 = 0;
const WORDS: u64 = 8;
const SENDER: u64 = 64;
const RECEIVER: u64 = 80;

fn page(host: Host) -> Memory {
    host.alloc(memory_kind::SIGNAL, 4096, 0, 0).unwrap()
}

#[test]
fn signals_and_waits_count_for_themselves() {
    let host = Host::open();
    let memory = page(host);
    let base = memory.base();
    let (mut sender, mut receiver) = (host.stream(), host.stream());
    let mut signals = Pack::new();
    signals.signal(0, signal(base + FLAG, base + SENDER, 0, [0; 3]));
    let mut waits = Pack::new();
    waits.wait(0, wait(base + FLAG, base + RECEIVER, [0; 3]));
    // The same batch again and again: no command holds an absolute number.
    for round in 1..=5 {
        assert_eq!(receiver.submit(&waits), Ok(1));
        let state = receiver.poll().unwrap();
        assert_eq!(
            (state.state, state.moved),
            (queue_state::WAITING, 0),
            "round {round}"
        );
        assert_eq!(
            receiver.poll().unwrap().completed,
            round - 1,
            "a wait begins once"
        );
        assert_eq!(sender.submit(&signals), Ok(1));
        assert_eq!(sender.poll().unwrap().state, queue_state::IDLE);
        let state = receiver.poll().unwrap();
        assert_eq!(
            (state.state, state.completed, state.moved),
            (queue_state::IDLE, round, 1)
        );
        assert_eq!(
            [FLAG, SENDER, RECEIVER].map(|at| memory.load(at)),
            [round; 3]
        );
    }
}

#[test]
fn a_wait_that_was_seen_does_not_read_the_flag() {
    let host = Host::open();
    let memory = page(host);
    let base = memory.base();
    let mut stream = host.stream();
    memory.store(FLAG, 2);
    let mut waits = Pack::new();
    waits.wait(0, wait(base + FLAG, base + RECEIVER, [0; 3]));
    stream.submit(&waits).unwrap();
    assert_eq!(stream.poll().unwrap().state, queue_state::IDLE);
    assert_eq!(
        memory.load(RECEIVER + 8),
        2,
        "`seen` is the flag as last read"
    );
    memory.store(FLAG, 0);
    stream.submit(&waits).unwrap();
    assert_eq!(stream.poll().unwrap().state, queue_state::IDLE);
    stream.submit(&waits).unwrap();
    assert_eq!(stream.poll().unwrap().state, queue_state::WAITING);
}

#[test]
fn counters_wrap() {
    let host = Host::open();
    let memory = page(host);
    let base = memory.base();
    for at in [FLAG, SENDER, RECEIVER, RECEIVER + 8] {
        memory.store(at, u64::MAX);
    }
    let mut stream = host.stream();
    let mut pack = Pack::new();
    pack.signal(0, signal(base + FLAG, base + SENDER, 0, [0; 3]));
    pack.wait(0, wait(base + FLAG, base + RECEIVER, [0; 3]));
    pack.wait(0, wait(base + FLAG, base + RECEIVER, [0; 3]));
    stream.submit(&pack).unwrap();
    let state = stream.poll().unwrap();
    assert_eq!((state.state, state.completed), (queue_state::WAITING, 2));
    assert_eq!(memory.load(FLAG), 0);
}

#[test]
fn other_words_fail_the_stream_and_are_told() {
    let host = Host::open();
    let memory = page(host);
    let base = memory.base();
    let mut stream = host.stream();
    let mut pack = Pack::new();
    pack.signal(CMD_WORDS, signal(base + FLAG, base + SENDER, 0, [1, 2, 3]));
    pack.wait(CMD_WORDS, wait(base + FLAG, base + RECEIVER, [1, 2, 3]));
    pack.signal(0, signal(base + FLAG, base + SENDER, 0, [9, 9, 9]));
    pack.wait(CMD_WORDS, wait(base + FLAG, base + RECEIVER, [1, 2, 4]));
    stream.submit(&pack).unwrap();
    let error = stream.poll().map(|state| state.state).unwrap_err();
    assert_eq!((error.status, error.words), (status::MISMATCH, [1, 2, 3]));
    assert_eq!(stream.control().query().state, queue_state::FAILED);
    assert_eq!(stream.control().query().completed, 3);
    assert_eq!(
        stream.poll().map(|_| ()).unwrap_err().status,
        status::MISMATCH,
        "stays failed"
    );
    assert_eq!(stream.submit(&pack).unwrap_err().status, status::MISMATCH);
}

#[test]
fn an_abort_of_the_flag_ends_waits_and_compares_no_words() {
    let host = Host::open();
    let memory = page(host);
    let base = memory.base();
    let mut stream = host.stream();
    let mut pack = Pack::new();
    for _ in 0..3 {
        pack.wait(CMD_WORDS, wait(base + FLAG, base + RECEIVER, [7; 3]));
    }
    stream.submit(&pack).unwrap();
    assert_eq!(stream.poll().unwrap().state, queue_state::WAITING);
    memory.store(FLAG, memory.load(FLAG).wrapping_add(ABORT_STEP));
    let state = stream.poll().unwrap();
    assert_eq!((state.state, state.completed), (queue_state::IDLE, 3));
}

#[test]
fn an_aborted_stream_drops_its_commands() {
    let host = Host::open();
    let memory = page(host);
    let base = memory.base();
    let mut stream = host.stream();
    let mut pack = Pack::new();
    pack.wait(0, wait(base + FLAG, base + RECEIVER, [0; 3]));
    pack.signal(0, signal(base + WORDS * 32, base + SENDER, 0, [0; 3]));
    stream.submit(&pack).unwrap();
    assert_eq!(stream.poll().unwrap().state, queue_state::WAITING);
    stream.control().abort();
    assert_eq!(stream.control().query().state, queue_state::FAILED);
    memory.store(FLAG, 1);
    assert_eq!(
        stream.poll().map(|_| ()).unwrap_err().status,
        status::ABORTED
    );
    assert_eq!(stream.submit(&pack).unwrap_err().status, status::ABORTED);
    assert_eq!(
        memory.load(SENDER),
        0,
        "the signal behind the wait was dropped"
    );
}

#[test]
fn a_full_stream_takes_a_part() {
    let host = Host::with(&[("queue_bytes", 1024)]);
    let memory = page(host);
    let base = memory.base();
    let mut stream = host.stream();
    let mut pack = Pack::new();
    for _ in 0..40 {
        pack.signal(0, signal(base + FLAG, base + SENDER, 0, [0; 3]));
    }
    let mut left = pack.words();
    let mut count = pack.count();
    let mut parts = Vec::new();
    while count > 0 {
        let taken = stream.submit_raw(left, count).unwrap();
        assert_eq!(
            stream.submit_raw(&left[taken as usize * 7..], count - taken),
            Ok(0),
            "full"
        );
        assert_eq!(stream.poll().unwrap().state, queue_state::IDLE);
        parts.push(taken);
        left = &left[taken as usize * 7..];
        count -= taken;
    }
    assert_eq!(parts, [18, 18, 4]);
    assert_eq!(memory.load(FLAG), 40);
    assert_eq!(stream.control().query().accepted, 40);
}

#[test]
fn a_batch_with_a_bad_command_is_refused_whole() {
    let host = Host::open();
    let memory = page(host);
    let base = memory.base();
    let mut stream = host.stream();
    let good = signal(base + FLAG, base + SENDER, 0, [0; 3]);
    let mut bitwise = CommandReduce::zeroed();
    (bitwise.dst, bitwise.a, bitwise.b) = (base + 1024, base + 1024, base + 2048);
    (bitwise.elements, bitwise.repeat) = (4, 1);
    (bitwise.dtype, bitwise.reduction) = (dtype::F32, reduction::XOR);
    let mut overlapping = bitwise;
    (overlapping.dtype, overlapping.a) = (dtype::I32, base + 1028);
    let bad = |f: &dyn Fn(&mut Pack)| {
        let mut pack = Pack::new();
        f(pack.signal(0, good));
        pack
    };
    let cases = [
        (
            bad(&|pack| {
                pack.reduce(0, bitwise);
            }),
            status::UNSUPPORTED,
        ),
        (
            bad(&|pack| {
                pack.reduce(0, overlapping);
            }),
            status::INVALID,
        ),
        (
            bad(&|pack| {
                pack.copy(0, copy(base, base + 8, 16));
            }),
            status::INVALID,
        ),
    ];
    for (pack, expected) in cases {
        assert_eq!(stream.submit(&pack).unwrap_err().status, expected);
        assert_eq!(stream.poll().unwrap().accepted, 0);
    }
    assert_eq!(memory.load(FLAG), 0);
}

#[test]
fn copies_are_cut_by_the_budget_and_place_strided_pieces() {
    let host = Host::open();
    let (pieces, bytes, stride) = (3_u64, 100_000_u64, 131_072_u64);
    let source = host.alloc(memory_kind::DATA, pieces * bytes, 0, 0).unwrap();
    let target = host
        .alloc(memory_kind::DATA, pieces * stride, 0, 0)
        .unwrap();
    for streaming in [0, CMD_STREAMING] {
        for i in 0..pieces * bytes {
            // SAFETY: within the memory, which no stream uses now.
            unsafe { source.at(i).write((i * 7 + u64::from(streaming)) as u8) };
        }
        let command = CommandCopy {
            repeat: pieces,
            dst_stride: stride,
            src_stride: bytes,
            ..copy(target.base(), source.base(), bytes)
        };
        let mut pack = Pack::new();
        pack.copy(streaming, command);
        let mut stream = host.stream();
        stream.submit(&pack).unwrap();
        let mut polls = 0;
        loop {
            polls += 1;
            let state = stream.poll_for(64 << 10).unwrap();
            assert_eq!(state.moved, 1);
            if state.state == queue_state::IDLE {
                break;
            }
            assert_eq!((state.state, state.completed), (queue_state::READY, 0));
        }
        assert!(
            (4..=7).contains(&polls),
            "{polls} polls for 300 kB at 64 KiB"
        );
        for piece in 0..pieces {
            for i in 0..bytes {
                let expected = ((piece * bytes + i) * 7 + u64::from(streaming)) as u8;
                // SAFETY: as above.
                let found = unsafe { target.at(piece * stride + i).read() };
                assert_eq!(found, expected, "piece {piece} byte {i}");
            }
        }
    }
}

#[test]
fn reductions_run_in_pieces_and_in_place() {
    let host = Host::open();
    let elements = 50_000_u64;
    let memory = host
        .alloc(memory_kind::DATA, 4 * elements * 4, 0, 0)
        .unwrap();
    let floats = memory.at(0).cast::<f32>();
    for i in 0..4 * elements {
        // SAFETY: within the memory, which no stream uses now.
        unsafe { floats.add(i as usize).write(i as f32) };
    }
    let base = memory.base();
    let half = 2 * elements * 4;
    let mut command = CommandReduce::zeroed();
    (command.dst, command.a, command.b) = (base, base, base + half);
    (command.elements, command.repeat) = (elements, 2);
    (command.dst_stride, command.a_stride, command.b_stride) =
        (elements * 4, elements * 4, elements * 4);
    (command.dtype, command.reduction, command.divisor) = (dtype::F32, reduction::SUM, 2);
    let mut pack = Pack::new();
    pack.reduce(0, command);
    let mut stream = host.stream();
    stream.submit(&pack).unwrap();
    for _ in 0..1000 {
        if stream.poll_for(20_000).unwrap().state == queue_state::IDLE {
            break;
        }
    }
    assert_eq!(stream.control().query().completed, 1);
    for i in 0..2 * elements {
        // SAFETY: as above.
        let found = unsafe { floats.add(i as usize).read() };
        assert_eq!(
            found,
            (i as f32 + (i + 2 * elements) as f32) / 2.0,
            "element {i}"
        );
    }
}

#[test]
fn a_factor_multiplies_in_pieces() {
    let host = Host::open();
    let (elements, repeat) = (9_000_u64, 3);
    let memory = host
        .alloc(memory_kind::DATA, 2 * repeat * elements * 2, 0, 0)
        .unwrap();
    let halves = memory.at(0).cast::<u16>();
    for i in 0..repeat * elements {
        let value = half::f16::from_f32((i % 100) as f32);
        // SAFETY: within the memory, which no stream uses now.
        unsafe { halves.add(i as usize).write(value.to_bits()) };
    }
    let mut command = CommandScale::zeroed();
    (command.src, command.dst) = (memory.base(), memory.base() + repeat * elements * 2);
    (command.elements, command.repeat) = (elements, repeat);
    (command.src_stride, command.dst_stride) = (elements * 2, elements * 2);
    command.factor[..2].copy_from_slice(&half::f16::from_f32(0.5).to_bits().to_ne_bytes());
    command.dtype = dtype::F16;
    let mut pack = Pack::new();
    pack.scale(0, command);
    let mut stream = host.stream();
    stream.submit(&pack).unwrap();
    for _ in 0..100 {
        if stream.poll_for(10_000).unwrap().state == queue_state::IDLE {
            break;
        }
    }
    assert_eq!(stream.control().query().completed, 1);
    for i in 0..repeat * elements {
        // SAFETY: as above.
        let found = unsafe { halves.add((repeat * elements + i) as usize).read() };
        let expected = half::f16::from_f32((i % 100) as f32 / 2.0);
        assert_eq!(found, expected.to_bits(), "element {i}");
    }
}

#[test]
fn a_function_of_the_host_is_called_in_order() {
    /// Three bytes an element: what no kernel knows. Counts its calls.
    unsafe extern "C" fn combine(
        context: *mut c_void,
        dst: *mut c_void,
        a: *const c_void,
        b: *const c_void,
        elements: u64,
    ) {
        let [dst, a, b] = [dst, a.cast_mut(), b.cast_mut()].map(|p| p.cast::<u8>());
        for i in 0..elements as usize * 3 {
            // SAFETY: the command gives as many bytes to each; the context is a counter.
            unsafe {
                dst.add(i)
                    .write(a.add(i).read().wrapping_sub(b.add(i).read()))
            };
        }
        // SAFETY: as above.
        unsafe { *context.cast::<u64>() += 1 };
    }
    let host = Host::open();
    let (elements, bytes) = (40_000_u64, 120_000_u64);
    let memory = host.alloc(memory_kind::DATA, 3 * bytes, 0, 0).unwrap();
    for i in 0..2 * bytes {
        // SAFETY: within the memory, which no stream uses now.
        unsafe { memory.at(i).write((i % 251) as u8) };
    }
    let mut calls = 0_u64;
    let base = memory.base();
    let mut command = CommandCall::zeroed();
    command.function = combine as *const () as usize as u64;
    command.context = (&raw mut calls) as usize as u64;
    (command.dst, command.a, command.b) = (base, base, base + bytes);
    (command.elements, command.element_bytes) = (elements, 3);
    let mut pack = Pack::new();
    pack.copy(0, copy(base + 2 * bytes, base, bytes));
    pack.call(0, command);
    let mut stream = host.stream();
    stream.submit(&pack).unwrap();
    for _ in 0..100 {
        if stream.poll_for(50_000).unwrap().state == queue_state::IDLE {
            break;
        }
    }
    assert_eq!(stream.control().query().completed, 2);
    assert!((2..=5).contains(&calls), "{calls} calls");
    for i in 0..bytes {
        // SAFETY: as above.
        let (found, before) = unsafe { (memory.at(i).read(), memory.at(2 * bytes + i).read()) };
        assert_eq!(before, (i % 251) as u8);
        assert_eq!(found, before.wrapping_sub(((i + bytes) % 251) as u8));
    }
}

/// When `query` says that an aborted stream has failed, no poll touches memory any more.
#[test]
fn an_abort_beside_a_poll_ends_it() {
    let host = Host::open();
    let bytes = 1 << 20;
    let memory = host.alloc(memory_kind::DATA, 2 * bytes, 0, 0).unwrap();
    let base = memory.base();
    for offset in 0..bytes {
        // SAFETY: within the memory, which no stream uses now.
        unsafe { memory.at(offset).write(1) };
    }
    for round in 0..50 {
        let mut stream = host.stream();
        let control = stream.control();
        let mut pack = Pack::new();
        for _ in 0..64 {
            pack.copy(0, copy(base + bytes, base, bytes));
        }
        stream.submit(&pack).unwrap();
        std::thread::scope(|scope| {
            // The stream goes on living until the control has been asked for the last time.
            let poller = scope.spawn(move || {
                loop {
                    if let Err(error) = stream.poll_for(64 << 10) {
                        return (error.status, stream);
                    }
                }
            });
            for _ in 0..round * 20 {
                std::hint::spin_loop();
            }
            control.abort();
            let start = std::time::Instant::now();
            while control.query().state != queue_state::FAILED {
                assert!(start.elapsed().as_secs() < 20, "the abort does not end");
            }
            for offset in (bytes..2 * bytes).step_by(64) {
                // SAFETY: within the memory; the stream is done with it: that is the test.
                unsafe { memory.at(offset).write(2) };
            }
            for offset in (bytes..2 * bytes).step_by(64) {
                // SAFETY: as above.
                let found = unsafe { memory.at(offset).read() };
                assert_eq!(found, 2, "touched after the abort");
            }
            let (ended, _stream) = poller.join().unwrap();
            assert_eq!(ended, status::ABORTED);
        });
    }
}
