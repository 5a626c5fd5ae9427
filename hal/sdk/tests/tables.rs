//! The tables as a host sees them: sizes, NULL, errors, panics.
#![allow(unsafe_code, reason = "the tests stand where a host stands")]

mod fake;

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use fake::{Fake, Queue};
use unisono_plugin::abi::{self, status};
use unisono_plugin::{Pack, query};

fn record() -> &'static abi::Plugin {
    // SAFETY: the query answers static data.
    unsafe { query::<Fake>(1, 0).as_ref() }.expect("serves hosts of major 1")
}

fn error() -> abi::Error {
    let mut error = abi::Error::zeroed();
    error.struct_size = size_of::<abi::Error>() as u32;
    error
}

fn message(error: &abi::Error) -> &str {
    // SAFETY: the SDK ends messages with NUL.
    unsafe { CStr::from_ptr(error.message.as_ptr()) }
        .to_str()
        .expect("UTF-8")
}

fn text(text: &str) -> abi::Str {
    abi::Str {
        ptr: text.as_ptr().cast(),
        len: text.len() as u64,
    }
}

fn value(name: &str, value_type: u32, number: i64, string: &str) -> abi::ParamValue {
    let mut value = abi::ParamValue::zeroed();
    value.name = text(name);
    value.value_type = value_type;
    value.number = number;
    value.text = text(string);
    value
}

static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "C" fn log_level(_: *mut c_void) -> u32 {
    abi::level::INFO
}

unsafe extern "C" fn log(_: *mut c_void, record: *const abi::LogRecord) {
    // SAFETY: the plugin's record and its strings live through the call.
    let message = unsafe {
        std::slice::from_raw_parts(
            (*record).message.ptr.cast::<u8>(),
            (*record).message.len as usize,
        )
    };
    LOG.lock()
        .unwrap()
        .push(String::from_utf8(message.to_vec()).unwrap());
}

/// Creates an instance; `Err` with its status.
fn create(panic: bool, error: &mut abi::Error) -> Result<abi::Instance, abi::Status> {
    let mut host = abi::Host::zeroed();
    host.struct_size = size_of::<abi::Host>() as u32;
    host.log_level = Some(log_level);
    host.log = Some(log);
    use abi::param_type::{BOOL, BYTES, DURATION_NS, INT, STRING};
    let params = [
        value("panic_in_create", BOOL, panic.into(), ""),
        value("rings", INT, 3, ""),
        value("slot", BYTES, 4096, ""),
        value("wait", DURATION_NS, 1_500_000_000, ""),
        value("interface", STRING, 0, "eth0"),
    ];
    let info = abi::InstanceInfo {
        struct_size: size_of::<abi::InstanceInfo>() as u32,
        param_count: params.len() as u32,
        params: params.as_ptr(),
        host: &raw const host,
    };
    let mut out = abi::Instance::NULL;
    // SAFETY: all pointers are good for the call.
    unsafe {
        let call = (*record().instance).create.unwrap();
        match call(&raw const info, &raw mut out, error) {
            status::OK => Ok(out),
            status => Err(status),
        }
    }
}

fn open(instance: abi::Instance) -> abi::Device {
    let mut device = abi::Device::NULL;
    // SAFETY: the instance is alive.
    let status =
        unsafe { (*record().device).open.unwrap()(instance, 0, &raw mut device, null_mut()) };
    assert_eq!(status, status::OK);
    device
}

fn stream(device: abi::Device, priority: i64) -> abi::Stream {
    let request = abi::StreamRequest {
        struct_size: 16,
        reserved: 0,
        priority,
    };
    let mut stream = abi::Stream::NULL;
    // SAFETY: the device is alive.
    let status = unsafe {
        (*record().stream).create.unwrap()(device, &raw const request, &raw mut stream, null_mut())
    };
    assert_eq!(status, status::OK);
    stream
}

#[test]
fn the_record_says_who_it_is() {
    let record = record();
    assert_eq!(record.magic, abi::MAGIC);
    assert_eq!(
        (record.abi_major, record.abi_minor),
        (abi::ABI_MAJOR, abi::ABI_MINOR)
    );
    assert_eq!(record.param_count, 5);
    assert_eq!(record.layout_count as usize, abi::layout::COUNT);
    assert!(!record.memory.is_null() && !record.event.is_null());
    assert!(query::<Fake>(2, 0).is_null(), "another major is not served");
    assert_eq!(query::<Fake>(1, 99), query::<Fake>(1, 0), "static data");
    // SAFETY: the link table is static; it holds the report only.
    let link = unsafe { &*record.link };
    assert!(link.report.is_some() && link.create.is_none() && link.submit.is_none());
    // SAFETY: the layout table is static and its names end with NUL.
    let last = unsafe { &*record.layout.add(record.layout_count as usize - 1) };
    // SAFETY: as above.
    let names = unsafe { (CStr::from_ptr(last.struct_name), CStr::from_ptr(last.field)) };
    assert_eq!(names, (c"unisono_plugin", c"reserved"));
}

#[test]
fn parameters_arrive_typed_and_the_log_gets_them() {
    let instance = create(false, &mut error()).unwrap();
    let log = LOG.lock().unwrap().clone();
    assert!(
        log.iter()
            .any(|l| l == "rings 3 slot 4096 wait 1.5s on eth0"),
        "{log:?}"
    );
    // SAFETY: the instance is alive.
    unsafe { (*record().instance).destroy.unwrap()(instance) };
}

#[test]
fn a_panic_in_create_is_an_error() {
    let mut error = error();
    assert_eq!(create(true, &mut error), Err(status::INTERNAL));
    assert_eq!(message(&error), "the plugin panicked: told to");
}

#[test]
fn a_panic_poisons_the_instance_and_all_that_it_made() {
    let instance = create(false, &mut error()).unwrap();
    let device = open(instance);
    let (bad, good) = (stream(device, Queue::PANICS), stream(device, 0));
    let (table, mut state, mut e) = (record().stream, abi::QueueState::zeroed(), error());
    // SAFETY: the handles are alive until destroyed, one thread.
    unsafe {
        let poll = (*table).poll.unwrap();
        assert_eq!(poll(good, 1, &raw mut state, &raw mut e), status::OK);
        assert_eq!(poll(bad, 1, &raw mut state, &raw mut e), status::INTERNAL);
        assert_eq!(message(&e), "the plugin panicked: told to");
        assert_eq!(poll(good, 1, &raw mut state, &raw mut e), status::POISONED);
        assert_eq!(
            (*table).query.unwrap()(good, &raw mut state),
            status::POISONED
        );
        assert_eq!((*table).native.unwrap()(good), 0);
        let mut count = 0;
        let devices = (*record().instance).devices.unwrap();
        assert_eq!(
            devices(instance, null_mut(), 0, &raw mut count, null_mut()),
            status::POISONED
        );
        // What lets go still runs.
        (*table).abort.unwrap()(good);
        (*table).disarm.unwrap()(good);
        (*table).destroy.unwrap()(good);
        (*table).destroy.unwrap()(bad);
        (*record().device).close.unwrap()(device);
        (*record().instance).destroy.unwrap()(instance);
    }
    let other = create(false, &mut error()).expect("another instance is not poisoned");
    let device = open(other);
    // SAFETY: as above.
    unsafe {
        let mut none = abi::Device::NULL;
        let open = (*record().device).open.unwrap();
        assert_eq!(open(other, 7, &raw mut none, null_mut()), status::INTERNAL);
        assert_eq!(none, abi::Device::NULL);
        assert_eq!(open(other, 0, &raw mut none, null_mut()), status::POISONED);
        (*record().device).close.unwrap()(device);
        (*record().instance).destroy.unwrap()(other);
    }
}

#[test]
fn null_is_refused_everywhere() {
    let mut e = error();
    let (record, mut n) = (record(), 0u32);
    let nothing = null_mut::<c_void>();
    // SAFETY: NULL is what is tested.
    unsafe {
        let (i, d) = (abi::Instance::NULL, abi::Device::NULL);
        let t = &*record.instance;
        assert_eq!(
            t.create.unwrap()(null(), null_mut(), &raw mut e),
            status::INVALID
        );
        assert_eq!(message(&e), "instance.create: out is NULL");
        let mut out = i;
        assert_eq!(
            t.create.unwrap()(null(), &raw mut out, &raw mut e),
            status::INVALID
        );
        assert_eq!(message(&e), "instance.create: info is NULL");
        t.destroy.unwrap()(i);
        assert_eq!(
            t.devices.unwrap()(i, null_mut(), 0, &raw mut n, &raw mut e),
            status::INVALID
        );
        assert_eq!(message(&e), "instance.devices: instance is NULL");
        assert!(t.get_interface.unwrap()(i, text("x")).is_null());
        let t = &*record.device;
        assert_eq!(
            t.open.unwrap()(i, 0, null_mut(), null_mut()),
            status::INVALID
        );
        t.close.unwrap()(d);
        assert_eq!(t.supports.unwrap()(d, null()), status::INVALID);
        let t = &*record.memory;
        let (v, m) = (null_mut(), abi::Memory::NULL);
        assert_eq!(
            t.alloc.unwrap()(d, null(), null_mut(), v, null_mut()),
            status::INVALID
        );
        t.free.unwrap()(m);
        assert_eq!(t.query.unwrap()(d, 0, v, null_mut()), status::INVALID);
        let bytes = t.export_memory.unwrap()(m, 1, nothing, 0, null_mut(), null_mut());
        assert_eq!(bytes, status::INVALID);
        assert_eq!(
            t.flush_remote_writes.unwrap()(d, null_mut()),
            status::INVALID
        );
        let (t, s) = (&*record.stream, abi::Stream::NULL);
        t.destroy.unwrap()(s);
        t.abort.unwrap()(s);
        t.disarm.unwrap()(s);
        assert_eq!(
            t.poll.unwrap()(s, 0, null_mut(), null_mut()),
            status::INVALID
        );
        assert_eq!(t.query.unwrap()(s, null_mut()), status::INVALID);
        assert_eq!(
            t.arm.unwrap()(s, 4, null(), null_mut(), null_mut()),
            status::INVALID
        );
        let (t, e) = (&*record.event, abi::Event::NULL);
        t.destroy.unwrap()(e);
        assert_eq!(t.native.unwrap()(e), 0);
        assert_eq!(t.host_signal.unwrap()(e, null_mut()), status::INVALID);
        assert_eq!(t.host_query.unwrap()(e, null_mut()), status::INVALID);
    }
}

#[test]
fn arrays_follow_the_hosts_stride_and_capacity() {
    let instance = create(false, &mut error()).unwrap();
    // SAFETY: the buffers are as large as said.
    unsafe {
        let devices = (*record().instance).devices.unwrap();
        let short = 40u32; // as if entries ended inside `name`
        let mut count = 0;
        let mut packed = vec![0xEEu8; 160];
        packed[..4].copy_from_slice(&short.to_ne_bytes());
        let at = packed.as_mut_ptr().cast();
        assert_eq!(
            devices(instance, at, 2, &raw mut count, null_mut()),
            status::OK
        );
        assert_eq!(count, 3);
        assert_eq!(packed[8..24], [0; 16]);
        assert_eq!(packed[40 + 8..40 + 24], [1; 16]);
        assert!(
            packed[80..].iter().all(|b| *b == 0xEE),
            "nothing beyond two entries of 40"
        );

        let mut infos = [abi::DeviceInfo::zeroed(); 3];
        infos[0].struct_size = size_of::<abi::DeviceInfo>() as u32;
        assert_eq!(
            devices(instance, infos.as_mut_ptr(), 3, &raw mut count, null_mut()),
            status::OK
        );
        let name = CStr::from_ptr(infos[2].name.as_ptr()).to_str().unwrap();
        assert_eq!(name, "é".repeat(31), "cut at a character, NUL-terminated");
        assert_eq!((infos[2].numa, infos[2].event_sides), (-1, 1 << 4));

        let mut link = abi::LinkInfo::zeroed();
        link.struct_size = 80; // a host of 1.0: no rail
        let report = (*record().link).report.unwrap();
        assert_eq!(
            report(instance, &raw mut link, 1, &raw mut count, null_mut()),
            status::OK
        );
        assert_eq!((link.struct_size, link.latency_ns, link.rail), (80, 20, 0));
        (*record().instance).destroy.unwrap()(instance);
    }
}

#[test]
fn errors_are_cut_to_the_callers_struct() {
    let instance = create(false, &mut error()).unwrap();
    let device = open(instance);
    let request = abi::MemoryRequest {
        struct_size: 40,
        kind: 1,
        bytes: 1 << 41,
        align: 0,
        flags: 0,
    };
    let (mut memory, mut e) = (abi::Memory::NULL, error());
    // SAFETY: good pointers, living handles.
    unsafe {
        let alloc = (*record().memory).alloc.unwrap();
        let view = null_mut();
        let call = |r: &abi::MemoryRequest, e: &mut abi::Error, m: &mut abi::Memory| {
            alloc(device, &raw const *r, &raw mut *m, view, &raw mut *e)
        };
        assert_eq!(call(&request, &mut e, &mut memory), status::OUT_OF_MEMORY);
        assert_eq!((e.status, message(&e).len()), (status::OUT_OF_MEMORY, 231));
        let mut short = abi::Error::zeroed();
        short.struct_size = 8;
        assert_eq!(
            call(&request, &mut short, &mut memory),
            status::OUT_OF_MEMORY
        );
        assert_eq!((short.status, short.message[0]), (status::OUT_OF_MEMORY, 0));
        for (kind, align, flags, expected) in [
            (9, 0, 0, status::UNSUPPORTED),
            (1, 3, 0, status::INVALID),
            (1, 0, 8, status::UNSUPPORTED),
            (1, 0, 0, status::OK),
        ] {
            let request = abi::MemoryRequest {
                struct_size: 40,
                kind,
                bytes: 64,
                align,
                flags,
            };
            assert_eq!(call(&request, &mut e, &mut memory), expected);
        }
        (*record().memory).free.unwrap()(memory);
        let open = (*record().device).open.unwrap();
        let mut none = abi::Device::NULL;
        assert_eq!(
            open(instance, 5, &raw mut none, &raw mut e),
            status::INVALID
        );
        assert_eq!((e.vendor_code, message(&e)), (42, "no such device"));
        (*record().device).close.unwrap()(device);
        (*record().instance).destroy.unwrap()(instance);
    }
}

static WAKES: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn wake(_: *mut c_void) {
    WAKES.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_stream_takes_batches_signals_events_and_sleeps() {
    let instance = create(false, &mut error()).unwrap();
    let device = open(instance);
    let (s, failing, wrong) = (
        stream(device, 0),
        stream(device, Queue::FAILS),
        stream(device, Queue::SLEEPS_WRONGLY),
    );
    let t = record().stream;
    // SAFETY: good pointers, living handles, one thread.
    unsafe {
        let mut event = abi::Event::NULL;
        let events = &*record().event;
        assert_eq!(
            events.create.unwrap()(device, &raw mut event, null_mut()),
            status::OK
        );
        assert_eq!(events.host_query.unwrap()(event, null_mut()), status::AGAIN);
        let mut pack = Pack::new();
        let mut record = abi::CommandEvent::zeroed();
        record.event = event;
        pack.record(0, record);
        let (mut accepted, mut e) = (9, error());
        let submit = |stream, count, bytes, accepted: &mut u32, e: &mut abi::Error| {
            let at = pack.words().as_ptr().cast();
            (*t).submit.unwrap()(stream, at, bytes, count, &raw mut *accepted, &raw mut *e)
        };
        let capturing = (*t).capturing.unwrap();
        let records = stream(device, Queue::RECORDS);
        assert_eq!(
            [s, records, abi::Stream::NULL].map(|s| capturing(s)),
            [0, 7, 0]
        );
        (*t).destroy.unwrap()(records);
        assert_eq!(submit(s, 2, 16, &mut accepted, &mut e), status::INVALID);
        assert_eq!(accepted, 0);
        assert_eq!(submit(s, 1, 12, &mut accepted, &mut e), status::INVALID);
        assert_eq!(submit(s, 1, 16, &mut accepted, &mut e), status::OK);
        assert_eq!(accepted, 1);

        let waker = abi::Waker {
            wake: Some(wake),
            context: null_mut(),
        };
        let mut sleep = abi::Sleep::zeroed();
        let arm = (*t).arm.unwrap();
        assert_eq!(
            arm(s, 7, &raw const waker, &raw mut sleep, null_mut()),
            status::OK
        );
        assert_eq!(sleep.how, abi::sleep::WAKER);
        assert_eq!(
            arm(wrong, 4, &raw const waker, &raw mut sleep, &raw mut e),
            status::INTERNAL
        );
        assert_eq!(arm(s, 4, null(), &raw mut sleep, null_mut()), status::OK);
        assert_eq!(sleep.how, abi::sleep::READY, "no waker, no such sleep");
        arm(s, 4, &raw const waker, &raw mut sleep, null_mut());

        let mut state = abi::QueueState::zeroed();
        assert_eq!(
            (*t).poll.unwrap()(s, 1, &raw mut state, null_mut()),
            status::OK
        );
        assert_eq!(
            (
                state.accepted,
                state.completed,
                WAKES.load(Ordering::SeqCst)
            ),
            (1, 1, 1)
        );
        assert_eq!(events.host_query.unwrap()(event, null_mut()), status::OK);
        assert_eq!(
            (*t).poll.unwrap()(failing, 1, &raw mut state, &raw mut e),
            status::MISMATCH
        );
        assert_eq!(
            (state.state, e.words),
            (abi::queue_state::FAILED, [1, 2, 3])
        );
        (*t).abort.unwrap()(s);
        assert_eq!((*t).query.unwrap()(s, &raw mut state), status::OK);
        assert_eq!(state.state, abi::queue_state::FAILED);
        let mut query = abi::SupportQuery::zeroed();
        query.struct_size = size_of::<abi::SupportQuery>() as u32;
        (query.command, query.source) = (1, abi::place::HOST);
        let supports = (*self::record().device).supports.unwrap();
        assert_eq!(supports(device, &raw const query), status::OK);
        query.dtype = 1 << 20;
        assert_eq!(supports(device, &raw const query), status::UNSUPPORTED);
        events.destroy.unwrap()(event);
        for stream in [s, failing, wrong] {
            (*t).destroy.unwrap()(stream);
        }
        (*self::record().device).close.unwrap()(device);
        (*self::record().instance).destroy.unwrap()(instance);
    }
}
