//! The example plugin in C: what it answers, its streams, its events, its links.
#![allow(unsafe_code, reason = "the tests stand where a host stands")]

mod loaded;

use std::ptr::null;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use loaded::{Lines, error, instance, load, message, no_error, ok, open, stream, until, waker};
use unisono_abi::{self as abi, dtype, layout, queue_state, reduction, sleep, status};
use unisono_plugin::Pack;

/// spin, queue_depth
const PARAMS: [i64; 2] = [20_000, 64];

fn example() -> &'static abi::Plugin {
    struct Loaded(&'static abi::Plugin);
    // SAFETY: static data.
    unsafe impl Send for Loaded {}
    // SAFETY: as above.
    unsafe impl Sync for Loaded {}
    static PLUGIN: OnceLock<Loaded> = OnceLock::new();
    PLUGIN
        .get_or_init(|| Loaded(load(&unisono_abi_tests::example())))
        .0
}

fn submit(plugin: &abi::Plugin, stream: abi::Stream, pack: &Pack) -> Result<u32, (i32, String)> {
    let (mut accepted, mut e) = (77, error());
    let at = pack.words().as_ptr().cast();
    let bytes = pack.words().len() as u64 * 8;
    // SAFETY: the stream is alive.
    let status = unsafe {
        (*plugin.stream).submit.unwrap()(
            stream,
            at,
            bytes,
            pack.count(),
            &raw mut accepted,
            &raw mut e,
        )
    };
    if status == status::OK {
        Ok(accepted)
    } else {
        Err((status, message(&e)))
    }
}

fn poll(plugin: &abi::Plugin, stream: abi::Stream) -> (i32, abi::QueueState, abi::Error) {
    let (mut state, mut e) = (abi::QueueState::zeroed(), error());
    state.struct_size = size_of::<abi::QueueState>() as u32;
    // SAFETY: the stream is alive.
    let status =
        unsafe { (*plugin.stream).poll.unwrap()(stream, 1 << 20, &raw mut state, &raw mut e) };
    (status, state, e)
}

fn drain(plugin: &abi::Plugin, stream: abi::Stream) {
    until("the stream", || {
        let (status, state, e) = poll(plugin, stream);
        ok(status, &e);
        state.state == queue_state::IDLE
    });
}

fn copy(dst: u64, src: u64, bytes: u64) -> abi::CommandCopy {
    let mut c = abi::CommandCopy::zeroed();
    (c.dst, c.src, c.bytes, c.repeat) = (dst, src, bytes, 1);
    c
}

fn wait(flag: u64, counter: u64, words: [u64; 3]) -> abi::CommandWait {
    abi::CommandWait {
        flag,
        counter,
        words,
        ..abi::CommandWait::zeroed()
    }
}

fn signal(flag: u64, counter: u64, words: [u64; 3]) -> abi::CommandSignal {
    abi::CommandSignal {
        flag,
        counter,
        words,
        ..abi::CommandSignal::zeroed()
    }
}

#[test]
fn it_says_what_it_is() {
    let plugin = example();
    assert_eq!(
        (plugin.magic, plugin.abi_major),
        (abi::MAGIC, abi::ABI_MAJOR)
    );
    assert_eq!(plugin.struct_size as usize, size_of::<abi::Plugin>());
    assert_eq!(plugin.layout_count as usize, layout::COUNT);
    // SAFETY: the table has as many entries as it says, names end with NUL.
    unsafe {
        for (i, ours) in layout::ENTRIES.iter().enumerate() {
            let theirs = &*plugin.layout.add(i);
            let name = |p| std::ffi::CStr::from_ptr(p);
            assert_eq!(name(theirs.struct_name), name(ours.struct_name));
            assert_eq!(name(theirs.field), name(ours.field));
            assert_eq!((theirs.offset, theirs.size), (ours.offset, ours.size));
        }
    }
}

#[test]
fn a_stream_runs_by_itself_and_wakes_the_host() {
    static WAKES: AtomicU32 = AtomicU32::new(0);
    let plugin = example();
    let instance = instance(plugin, &PARAMS);
    let device = open(plugin, instance);
    let stream = stream(plugin, device);
    let lines = Lines::new();
    let (src, mut dst) = ([1u64, 2, 3, 4], [0u64; 4]);
    let mut pack = Pack::new();
    pack.wait(abi::CMD_WORDS, wait(lines.at(0), lines.at(1), [7, 8, 9]))
        .copy(0, copy(dst.as_mut_ptr() as u64, src.as_ptr() as u64, 32))
        .signal(abi::CMD_WORDS, signal(lines.at(2), lines.at(3), [4, 5, 6]));
    assert_eq!(submit(plugin, stream, &pack), Ok(3));
    let (status, state, _) = poll(plugin, stream);
    assert_eq!(
        (status, state.state, state.completed),
        (status::OK, queue_state::WAITING, 0)
    );

    let waker = waker(&WAKES);
    let mut sleep = abi::Sleep::zeroed();
    // SAFETY: living handles, good pointers.
    unsafe {
        let arm = (*plugin.stream).arm.unwrap();
        assert_eq!(
            arm(stream, sleep::FD, null(), &raw mut sleep, no_error()),
            status::UNSUPPORTED
        );
        let e = no_error();
        assert_eq!(
            arm(stream, sleep::WAKER, &raw const waker, &raw mut sleep, e),
            status::OK
        );
        assert_eq!(sleep.how, sleep::WAKER);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(WAKES.load(Ordering::SeqCst), 0, "nothing happened yet");
        // Signal it as a peer would.
        (lines.at(0) as *mut u64)
            .add(1)
            .copy_from_nonoverlapping([7u64, 8, 9].as_ptr(), 3);
        lines.value(0).store(1, Ordering::Release);
        until("the wake", || WAKES.load(Ordering::SeqCst) > 0);
        drain(plugin, stream);
        assert_eq!(dst, src);
        assert_eq!(lines.value(2).load(Ordering::Acquire), 1);
        assert_eq!(*(lines.at(2) as *const [u64; 4]), [1, 4, 5, 6]);
        assert_eq!(
            lines.value(1).load(Ordering::Acquire),
            1,
            "the counter advanced"
        );
        (*plugin.stream).disarm.unwrap()(stream);

        // An abort of the waiting side releases the wait, and no words are compared.
        pack.clear();
        pack.wait(abi::CMD_WORDS, wait(lines.at(0), lines.at(1), [0; 3]));
        assert_eq!(submit(plugin, stream, &pack), Ok(1));
        lines.value(0).fetch_add(abi::ABORT_STEP, Ordering::Release);
        drain(plugin, stream);

        // Other words: the stream fails, says which, and takes no more.
        pack.clear();
        pack.wait(abi::CMD_WORDS, wait(lines.at(2), lines.at(4), [4, 5, 0]));
        assert_eq!(submit(plugin, stream, &pack), Ok(1));
        until("the mismatch", || poll(plugin, stream).0 != status::OK);
        let (status, state, e) = poll(plugin, stream);
        assert_eq!(
            (status, state.state),
            (status::MISMATCH, queue_state::FAILED)
        );
        assert_eq!((e.status, e.words), (status::MISMATCH, [4, 5, 6]));
        assert_eq!(
            submit(plugin, stream, &pack).unwrap_err().0,
            status::MISMATCH
        );
        (*plugin.stream).destroy.unwrap()(stream);
        (*plugin.device).close.unwrap()(device);
        (*plugin.instance).destroy.unwrap()(instance);
    }
}

#[test]
fn events_have_four_sides_and_abort_ends_waits() {
    let plugin = example();
    let instance = instance(plugin, &PARAMS);
    let device = open(plugin, instance);
    let stream = stream(plugin, device);
    let mut events = [abi::Event::NULL; 2];
    // SAFETY: living handles, good pointers.
    unsafe {
        let t = &*plugin.event;
        for event in &mut events {
            assert_eq!(t.create.unwrap()(device, event, no_error()), status::OK);
        }
        let [gate, done] = events;
        let query = |event| t.host_query.unwrap()(event, no_error());
        let named = |event| abi::CommandEvent {
            event,
            ..abi::CommandEvent::zeroed()
        };
        let mut pack = Pack::new();
        pack.wait_event(0, named(gate)).record(0, named(done));
        assert_eq!(submit(plugin, stream, &pack), Ok(2));
        std::thread::sleep(Duration::from_millis(3));
        assert_eq!(query(done), status::AGAIN);
        assert_eq!(t.host_signal.unwrap()(gate, no_error()), status::OK);
        until("the event", || query(done) == status::OK);

        // Recorded again it is not complete; an abort ends the wait before it.
        let lines = Lines::new();
        pack.clear();
        pack.wait(0, wait(lines.at(0), lines.at(1), [0; 3]))
            .record(0, named(done));
        assert_eq!(submit(plugin, stream, &pack), Ok(2));
        assert_eq!(query(done), status::AGAIN);
        (*plugin.stream).abort.unwrap()(stream);
        assert_eq!(poll(plugin, stream).0, status::ABORTED);
        // Its worker is in the wait still, and says so until it has left it.
        until("the end of the wait", || {
            let (status, state, _) = poll(plugin, stream);
            assert_eq!(status, status::ABORTED);
            state.state == queue_state::FAILED
        });
        let start = Instant::now();
        (*plugin.stream).destroy.unwrap()(stream);
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "the worker left its wait"
        );
        assert_eq!(query(done), status::AGAIN);
        for event in events {
            t.destroy.unwrap()(event);
        }
        (*plugin.device).close.unwrap()(device);
        (*plugin.instance).destroy.unwrap()(instance);
    }
}

#[test]
fn a_bad_batch_is_refused_whole_and_a_long_one_in_part() {
    let plugin = example();
    let instance = instance(plugin, &PARAMS);
    let device = open(plugin, instance);
    let stream = stream(plugin, device);
    let (mut pack, lines) = (Pack::new(), Lines::new());
    pack.copy(0, copy(lines.at(0), lines.at(1), 8))
        .put(0, abi::CommandPut::zeroed());
    assert_eq!(
        submit(plugin, stream, &pack).unwrap_err().0,
        status::UNSUPPORTED
    );
    pack.clear();
    pack.copy(0, copy(lines.at(0), lines.at(1), 8))
        .copy(8, copy(lines.at(0), lines.at(1), 8));
    assert_eq!(
        submit(plugin, stream, &pack).unwrap_err().0,
        status::UNSUPPORTED
    );
    pack.clear();
    pack.copy(
        0,
        abi::CommandCopy {
            repeat: 0,
            ..copy(lines.at(0), lines.at(1), 8)
        },
    );
    assert_eq!(
        submit(plugin, stream, &pack).unwrap_err().0,
        status::INVALID
    );
    assert_eq!(
        poll(plugin, stream).1.accepted,
        0,
        "nothing of them was taken"
    );
    pack.clear();
    pack.wait(0, wait(lines.at(0), lines.at(1), [0; 3]));
    for _ in 0..99 {
        pack.copy(0, copy(lines.at(2), lines.at(3), 8));
    }
    assert_eq!(
        submit(plugin, stream, &pack),
        Ok(64),
        "as deep as the parameter says"
    );
    lines.value(0).store(1, Ordering::Release);
    drain(plugin, stream);
    // SAFETY: handles given back once.
    unsafe {
        (*plugin.stream).destroy.unwrap()(stream);
        (*plugin.device).close.unwrap()(device);
        (*plugin.instance).destroy.unwrap()(instance);
    }
}

/// Reduces one element of a type, given and answered as bits.
struct Reducer {
    device: abi::Device,
    stream: abi::Stream,
}

impl Reducer {
    fn one(&self, dtype: u16, op: u16, a: u64, b: u64, divisor: u32) -> u64 {
        let plugin = example();
        let (a, b, mut r) = ([a], [b], [0u64]);
        let mut c = abi::CommandReduce::zeroed();
        (c.dst, c.a, c.b) = (r.as_mut_ptr() as u64, a.as_ptr() as u64, b.as_ptr() as u64);
        (c.elements, c.repeat, c.dtype, c.reduction, c.divisor) = (1, 1, dtype, op, divisor);
        let mut pack = Pack::new();
        pack.reduce(0, c);
        assert_eq!(submit(plugin, self.stream, &pack), Ok(1));
        drain(plugin, self.stream);
        // SAFETY: the stream has written it and is idle.
        unsafe { r.as_ptr().read_volatile() }
    }
}

#[test]
fn reductions_are_the_contracts() {
    let plugin = example();
    let instance = instance(plugin, &PARAMS);
    let device = open(plugin, instance);
    let r = Reducer {
        device,
        stream: stream(plugin, device),
    };
    use reduction::{AND, MAX, MIN, OR, PROD, SUM, XOR};
    assert_eq!(r.one(dtype::U8, SUM, 200, 100, 0), 44, "integers wrap");
    assert_eq!(r.one(dtype::I8, SUM, 0x80, 0x80, 0), 0);
    assert_eq!(
        r.one(dtype::I16, SUM, 0xfff9, 0, 2),
        0xfffd,
        "-7 / 2 rounds toward zero"
    );
    assert_eq!(r.one(dtype::U16, PROD, 0xffff, 0xffff, 0), 1);
    assert_eq!(r.one(dtype::I32, MIN, 0xffff_ffff, 1, 0), 0xffff_ffff);
    assert_eq!(r.one(dtype::U32, MIN, 0xffff_ffff, 1, 0), 1);
    assert_eq!(r.one(dtype::I64, MAX, u64::MAX, 1, 0), 1);
    assert_eq!(r.one(dtype::U64, AND, 12, 10, 0), 8);
    assert_eq!(r.one(dtype::U64, OR, 12, 10, 0), 14);
    assert_eq!(r.one(dtype::U64, XOR, 12, 10, 0), 6);
    let f = |x: f32| u64::from(x.to_bits());
    assert_eq!(r.one(dtype::F32, SUM, f(1.5), f(2.0), 4), f(0.875));
    for op in [MIN, MAX] {
        for (a, b) in [(f32::NAN, 1.0), (1.0, f32::NAN)] {
            assert!(f32::from_bits(r.one(dtype::F32, op, f(a), f(b), 0) as u32).is_nan());
        }
    }
    let d = r.one(dtype::F64, PROD, 3.0f64.to_bits(), 0.1f64.to_bits(), 0);
    assert_eq!(f64::from_bits(d).to_bits(), (3.0f64 * 0.1).to_bits());
    // bf16: 1 + 2^-8 is a tie and goes to even; 1 + 3 * 2^-8 goes up.
    assert_eq!(r.one(dtype::BF16, SUM, 0x3f80, 0x3b80, 0), 0x3f80);
    assert_eq!(r.one(dtype::BF16, SUM, 0x3f81, 0x3b80, 0), 0x3f82);
    assert!(
        r.one(dtype::BF16, MAX, 0x7f81, 0x3f80, 0) & 0x7fff > 0x7f80,
        "NaN stays NaN"
    );
    // f16: every finite value plus zero is itself; overflow is infinity; ties to even.
    for bits in (0..0x7c00).step_by(7).chain([1, 0x3ff, 0x400, 0x7bff]) {
        assert_eq!(r.one(dtype::F16, SUM, bits, 0, 0), bits, "{bits:#x}");
    }
    assert_eq!(
        r.one(dtype::F16, SUM, 0x7bff, 0x4c00, 0),
        0x7c00,
        "65504 + 16 is a tie: infinity"
    );
    assert_eq!(
        r.one(dtype::F16, SUM, 0x7bff, 0x4b80, 0),
        0x7bff,
        "65504 + 15 is not"
    );
    assert_eq!(
        r.one(dtype::F16, SUM, 0x3c00, 0x1000, 0),
        0x3c00,
        "1 + 2^-11 goes to even"
    );
    assert_eq!(
        r.one(dtype::F16, SUM, 1, 0, 2),
        0,
        "half the least subnormal goes to even"
    );
    assert_eq!(r.one(dtype::F16, SUM, 3, 0, 2), 2);
    let mut query = abi::SupportQuery::zeroed();
    query.struct_size = size_of::<abi::SupportQuery>() as u32;
    query.command = abi::command_kind::REDUCE.into();
    for (t, op, expected) in [
        (dtype::F16, SUM, status::OK),
        (dtype::F8E5M2, MAX, status::UNSUPPORTED),
        (dtype::F32, XOR, status::UNSUPPORTED),
    ] {
        (query.dtype, query.reduction) = (t.into(), op.into());
        // SAFETY: the device is alive.
        let found = unsafe { (*plugin.device).supports.unwrap()(r.device, &raw const query) };
        assert_eq!(found, expected);
    }
    // SAFETY: handles given back once.
    unsafe {
        (*plugin.stream).destroy.unwrap()(r.stream);
        (*plugin.device).close.unwrap()(device);
        (*plugin.instance).destroy.unwrap()(instance);
    }
}

#[test]
fn memory_is_found_by_its_address() {
    let plugin = example();
    let instance = instance(plugin, &PARAMS);
    let device = open(plugin, instance);
    let request = abi::MemoryRequest {
        struct_size: 40,
        kind: 1,
        bytes: 10_000,
        align: 64,
        flags: 0,
    };
    let (mut memory, mut view, mut found) = (
        abi::Memory::NULL,
        abi::MemoryView::zeroed(),
        abi::MemoryView::zeroed(),
    );
    // SAFETY: living handles, good pointers.
    unsafe {
        let t = &*plugin.memory;
        let e = no_error();
        let status = t.alloc.unwrap()(
            device,
            &raw const request,
            &raw mut memory,
            &raw mut view,
            e,
        );
        assert_eq!(
            (status, view.bytes, view.base % 64),
            (status::OK, 10_000, 0)
        );
        assert!(
            std::slice::from_raw_parts(view.host as *const u8, 10_000)
                .iter()
                .all(|b| *b == 0)
        );
        let query = t.query.unwrap();
        assert_eq!(
            query(device, view.base + 9_999, &raw mut found, e),
            status::OK
        );
        assert_eq!((found.base, found.generation), (view.base, view.generation));
        assert_eq!(
            query(device, view.base + 10_000, &raw mut found, e),
            status::AGAIN
        );
        let mut other = abi::Memory::NULL;
        for (bytes, align, kind) in [(0, 0, 1), (64, 1 << 20, 1), (64, 0, 3)] {
            let request = abi::MemoryRequest {
                struct_size: 40,
                kind,
                bytes,
                align,
                flags: 0,
            };
            let status = t.alloc.unwrap()(
                device,
                &raw const request,
                &raw mut other,
                &raw mut found,
                e,
            );
            assert!(status < 0 && other == abi::Memory::NULL);
        }
        t.free.unwrap()(memory);
        assert_eq!(query(device, view.base, &raw mut found, e), status::AGAIN);
        assert!(
            t.wrap.is_none() && t.export_memory.is_none(),
            "NULL is unsupported"
        );
        (*plugin.device).close.unwrap()(device);
        (*plugin.instance).destroy.unwrap()(instance);
    }
}
