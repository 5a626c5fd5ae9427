//! The safe handles over a small C plugin: what they pass on, what they check, and in which order
//! they end.
#![allow(unsafe_code, reason = "batches hold plain addresses")]

mod common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use common::{Workshop, loader, root};
use log::LevelFilter;
use unisono_hal::{
    Batch, Channel, Error, ExportKind, Instance, Link, LinkRequest, LinkType, LogSink, MemoryKind,
    MemoryRequest, Place, Plugin, PluginRecord, Queue, Received, Scope, Side, Sleep, SleepWays,
    State, Status, SupportQuery, Waker,
};

/// Ways in which the plugin misbehaves: its `mode`.
const TOO_MANY: u32 = 1;
const BAD_STATE: u32 = 2;
const BAD_SLEEP: u32 = 3;
const FAIL: u32 = 4;
const SMALL_MEMORY: u32 = 5;
const NO_HANDLE: u32 = 6;
const ODD_STATUS: u32 = 7;
const MANY: u32 = 8;

fn plugin() -> Plugin {
    static PLUGIN: OnceLock<Plugin> = OnceLock::new();
    PLUGIN.get_or_init(|| compiled("small", &[])).clone()
}

fn compiled(name: &str, more: &[String]) -> Plugin {
    let shop = Workshop::new();
    let source = root().join("hal/tests/plugins/small.c");
    loader()
        .load_path(shop.compile(&source, name, more))
        .unwrap()
}

#[derive(Default)]
struct Said(Mutex<Vec<String>>);

impl Said {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl LogSink for Said {
    fn level(&self) -> LevelFilter {
        LevelFilter::Trace
    }
    fn log(&self, record: &PluginRecord<'_>) {
        self.0.lock().unwrap().push(record.message.to_owned());
    }
}

fn instance(mode: u32) -> (Instance, Arc<Said>) {
    let said = Arc::new(Said::default());
    let params = [("mode".to_owned(), mode.to_string())];
    let instance = plugin().instantiate_with_log(&params, Arc::clone(&said) as _);
    (instance.unwrap(), said)
}

fn batch() -> Batch {
    // SAFETY: the tests keep the memory of their commands alive.
    unsafe { Batch::new() }
}

/// What a plugin says that it cannot tell apart, as all did before 1.5, is never the same.
#[test]
fn streams_tell_which_recording_they_take_part_in() {
    let (instance, _said) = instance(0);
    let device = instance.open(0).unwrap();
    let recording = |priority| device.stream(priority).unwrap().capturing();
    assert!(recording(0).is_none());
    let [old, seven, eight] = [-1, -7, -8].map(|number| recording(number).unwrap());
    assert!(!old.is_known() && !old.is_same(recording(-1).unwrap()));
    assert!(seven.is_known() && seven.is_same(recording(-7).unwrap()));
    assert!(!seven.is_same(eight) && !seven.is_same(old));
}

#[test]
fn handles_keep_alive_what_they_were_made_from() {
    let (instance, said) = instance(0);
    let device = instance.open(0).unwrap();
    let memory = device
        .alloc(&MemoryRequest::new(MemoryKind::Data, 64))
        .unwrap();
    let stream = device.stream(0).unwrap();
    let event = device.event().unwrap();
    drop(instance);
    drop(device);
    assert_eq!(said.take(), [""; 0]);
    let other = event.clone();
    drop(event);
    drop(memory);
    drop(stream);
    assert_eq!(said.take(), ["memory", "stream"]);
    drop(other);
    assert_eq!(said.take(), ["event", "device", "instance"]);
}

#[test]
fn a_queue_that_is_not_idle_is_aborted_before_it_ends_and_an_aborter_keeps_it() {
    let (instance, said) = instance(0);
    let device = instance.open(0).unwrap();
    drop(device.stream(1).unwrap());
    assert_eq!(said.take(), ["abort stream", "stream"]);
    let stream = device.stream(0).unwrap();
    let aborter = stream.aborter();
    drop((stream, device, instance));
    assert_eq!(said.take(), [""; 0]);
    let other = aborter.clone();
    std::thread::spawn(move || other.abort()).join().unwrap();
    assert_eq!(said.take(), ["abort stream"]);
    drop(aborter);
    assert_eq!(
        said.take(),
        ["abort stream", "stream", "device", "instance"]
    );
}

#[test]
fn a_batch_goes_over_in_parts() {
    let (instance, _) = instance(0);
    let device = instance.open(0).unwrap();
    let mut stream = device.stream(0).unwrap();
    let from: [u64; 5] = [1, 2, 3, 4, 5];
    let mut to = [0u64; 5];
    let at = (&raw mut to) as u64;
    let event = device.event().unwrap();
    let mut batch = batch();
    for i in 0..5 {
        batch.copy(at + i * 8, (&raw const from) as u64 + i * 8, 8);
    }
    batch.record(&event);
    let mut accepted = Vec::new();
    while !batch.is_empty() {
        assert!(!event.is_complete().unwrap());
        accepted.push(stream.submit(&mut batch).unwrap());
    }
    assert_eq!(accepted, [2, 2, 2]);
    assert_eq!(stream.submit(&mut batch).unwrap(), 0);
    assert!(event.is_complete().unwrap());
    let state = stream.poll(1 << 20).unwrap();
    assert_eq!(
        (state.state, state.accepted, state.completed),
        (State::Idle, 6, 6)
    );
    // SAFETY: nothing else writes to it now.
    assert_eq!(unsafe { (&raw const to).read_volatile() }, from);
    batch.clear();
    batch.wait(at, at, None);
    let error = stream.submit(&mut batch).unwrap_err();
    assert_eq!(error.status, Status::Unsupported);
    assert_eq!(batch.len(), 1);
}

#[test]
fn memory_is_passed_on_and_checked() {
    let (i, _) = instance(0);
    let device = i.open(0).unwrap();
    let request = MemoryRequest::new(MemoryKind::Signal, 100).exportable();
    let memory = device.alloc(&request).unwrap();
    assert_eq!((memory.len(), memory.view().generation), (100, 3));
    assert_eq!(memory.view().place, Place::Host);
    assert_eq!(memory.host_ptr().unwrap() as u64, memory.base());
    let text = memory.export(ExportKind::Process).unwrap();
    assert_eq!(device.import(&text).unwrap().base(), memory.base());
    let unsupported = memory.export(ExportKind::DmaBuf).unwrap_err();
    assert_eq!(unsupported.status, Status::Unsupported);
    assert_eq!(
        device.import(b"no").unwrap_err().message,
        "not a description"
    );
    assert_eq!(device.query(8).unwrap(), None);
    assert_eq!(device.query(4096).unwrap().unwrap().bytes, 10);
    let too_much = device.alloc(&MemoryRequest::new(MemoryKind::Data, 1 << 20));
    assert_eq!(
        too_much.unwrap_err().to_string(),
        "plugin small: memory.alloc: out of memory (vendor code 42): pool is full"
    );
    let crooked = device.alloc(&MemoryRequest::new(MemoryKind::Data, 8).align(3));
    assert_eq!(crooked.unwrap_err().status, Status::Invalid);
    // What the plugin does not have.
    // SAFETY: nothing is done with the address.
    let missing = unsafe { device.wrap(4096, 8) }.unwrap_err();
    assert_eq!(
        (missing.status, missing.call),
        (Status::Unsupported, "memory.wrap")
    );
    assert_eq!(
        device.flush_remote_writes().unwrap_err().status,
        Status::Unsupported
    );

    let refused = |mode| {
        let (i, said) = instance(mode);
        let request = MemoryRequest::new(MemoryKind::Data, 100);
        let error = i.open(0).unwrap().alloc(&request).unwrap_err();
        (error.message, said.take())
    };
    let (message, said) = refused(SMALL_MEMORY);
    assert_eq!(message, "the plugin gave 50 bytes, 100 were asked for");
    assert_eq!(said, ["memory", "device"], "what cannot be used is freed");
    let (message, _) = refused(NO_HANDLE);
    assert_eq!(message, "the plugin answered OK and gave no handle");
}

#[test]
fn answers_that_break_the_contract_are_errors() {
    let poll = |mode| {
        let (i, _) = instance(mode);
        let mut stream = i.open(0).unwrap().stream(0).unwrap();
        stream.poll(1).unwrap_err()
    };
    assert_eq!(
        poll(BAD_STATE).message,
        "the plugin answered the state 77, which is none"
    );
    assert_eq!(poll(ODD_STATUS).status, Status::Invalid);
    let failed = poll(FAIL);
    assert_eq!((failed.status, failed.words), (Status::Mismatch, [0, 7, 0]));
    assert_eq!(failed.vendor_code, 42);

    let (i, _) = instance(TOO_MANY);
    let mut stream = i.open(0).unwrap().stream(0).unwrap();
    let (from, mut to) = (1u64, 0u64);
    let mut batch = batch();
    batch.copy((&raw mut to) as u64, (&raw const from) as u64, 8);
    let error = stream.submit(&mut batch).unwrap_err();
    assert_eq!(error.message, "the plugin took 2 of 1 commands");
    assert!(i.address().unwrap_err().message.contains("1048576 bytes"));

    let (i, _) = instance(BAD_STATE);
    let error = i.link_report().unwrap_err();
    assert_eq!(
        error.message,
        "link 0 of the report has the scope 55, which is none"
    );
}

#[test]
fn a_failed_call_leaves_no_trace_in_the_next() {
    let (i, _) = instance(FAIL);
    let mut stream = i.open(0).unwrap().stream(0).unwrap();
    let (from, mut to) = (1u64, 0u64);
    let mut batch = batch();
    batch.copy((&raw mut to) as u64, (&raw const from) as u64, 8);
    assert_eq!(
        stream.submit(&mut batch).unwrap_err().message,
        "the device is gone"
    );
    assert_eq!(stream.poll(1).unwrap_err().message, "other words");
    assert_eq!(batch.len(), 1, "nothing was taken");
}

#[test]
fn sleeping() {
    let (i, said) = instance(0);
    let mut stream = i.open(0).unwrap().stream(0).unwrap();
    let woken = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&woken);
    let waker = Waker::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let mut arm = |ways| stream.arm(ways, &waker).unwrap();
    assert_eq!(arm(SleepWays::ALL), Sleep::Fd { fd: 0, events: 1 });
    assert_eq!(arm(SleepWays::FUTEX | SleepWays::WAKER), Sleep::Waker);
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    let futex = Sleep::Futex {
        addr: 4096,
        value: 9,
    };
    assert_eq!(arm(SleepWays::FUTEX), futex);
    assert_eq!(said.take(), [""; 0]);
    stream.disarm();
    stream.disarm();
    assert_eq!(said.take(), ["disarm"]);
    assert_eq!(stream.arm(SleepWays::NONE, &waker).unwrap(), Sleep::Ready);
    // Another waker: what was armed with the first ends.
    stream.arm(SleepWays::WAKER, &waker).unwrap();
    said.take();
    stream.arm(SleepWays::WAKER, &Waker::new(|| ())).unwrap();
    assert_eq!(said.take(), ["disarm"]);
    drop(stream);

    let (i, _) = instance(BAD_SLEEP);
    let mut stream = i.open(0).unwrap().stream(0).unwrap();
    let error = stream.arm(SleepWays::FUTEX, &waker).unwrap_err();
    assert!(error.message.contains("was not allowed"), "{error}");
}

#[test]
fn devices_events_and_interfaces() {
    let (i, _) = instance(MANY);
    let devices = i.devices().unwrap();
    assert_eq!(devices.len(), 100);
    assert_eq!((devices[99].id[0], devices[99].index), (100, 99));
    let device = i.open(7).unwrap();
    let info = device.info();
    assert_eq!((&*info.name, info.id[0], info.numa), ("small", 8, None));
    assert_eq!(info.events.host_signal, Side::Emulated);
    assert_eq!(info.events.host_query, Side::Native);
    assert_eq!(info.events.device_wait, Side::Absent);
    assert!(info.streams_can(unisono_abi::stream_can::POLLED));
    let missing = i.open(100).unwrap_err();
    assert_eq!(
        missing.message,
        "there is no device 100: the plugin has 100"
    );
    let query = |command| SupportQuery {
        command,
        dtype: 0,
        reduction: 0,
        source: Place::Host,
        destination: Place::Imported,
    };
    assert!(device.supports(&query(unisono_abi::command_kind::COPY)));
    assert!(!device.supports(&query(unisono_abi::command_kind::REDUCE)));
    let event = device.event().unwrap();
    assert!(!event.is_complete().unwrap());
    event.signal().unwrap();
    assert!(event.is_complete().unwrap());
    assert_eq!(event.native(), 0);
    assert!(i.interface("own").is_some());
    assert_eq!(i.interface("other"), None);
}

#[test]
fn parameters_reach_the_plugin() {
    let given = |name: &str, text: &str| {
        let params = [(name.to_owned(), text.to_owned())];
        plugin().instantiate(&params).map(drop)
    };
    given("text", "xy").unwrap();
    let status = |r: Result<(), Error>| r.unwrap_err().status;
    assert_eq!(status(given("text", "xyz")), Status::Invalid);
    assert_eq!(status(given("mode", "99")), Status::NoDriver);
    assert_eq!(
        given("mode", "100").unwrap_err().to_string(),
        "plugin small: parameters: invalid: mode: `100` is out of bounds, \
         it must be between 0 and 99"
    );
    assert!(
        given("mod", "1")
            .unwrap_err()
            .message
            .contains("did you mean `mode`?")
    );
}

#[derive(Default)]
struct Control(Mutex<Vec<Vec<u8>>>);

impl Channel for Control {
    fn rank(&self) -> u32 {
        0
    }
    fn size(&self) -> u32 {
        2
    }
    fn id(&self) -> u64 {
        5
    }
    fn prove(&self, transcript: &[u8]) -> Result<[u8; 64], Status> {
        if transcript == b"here" {
            return Ok([1; 64]);
        }
        Err(Status::Auth)
    }
    fn verify(&self, _: u32, _: &[u8], _: &[u8; 64]) -> Result<(), Status> {
        Ok(())
    }
    fn send(&self, rank: u32, tag: u64, data: &[u8]) -> Result<(), Status> {
        assert_eq!((rank, tag), (1, 1));
        self.0.lock().unwrap().push(data.to_owned());
        Ok(())
    }
    fn recv(&self, _: u32, _: u64, _: &mut [u8]) -> Result<Received, Status> {
        Ok(Received::Nothing)
    }
}

fn connect(instance: &Instance, address: &[u8], control: &Arc<Control>) -> Result<Link, Error> {
    instance.connect(LinkRequest {
        peer: 1,
        device: [0; 16],
        channel: Arc::clone(control) as _,
        peer_address: address,
    })
}

/// A later minor's plugin writes all of its struct, which is longer than this host's.
#[test]
fn statistics_that_have_grown() {
    let plugin = compiled("grown", &["-DGROWN_STATISTICS=512".to_owned()]);
    let instance = plugin.instantiate(&[]).unwrap();
    let address = instance.address().unwrap().unwrap();
    let mut link = connect(&instance, &address, &Arc::default()).unwrap();
    let statistics = link.statistics().unwrap();
    assert_eq!((statistics.bytes_sent, statistics.refused), (12, 0));
}

#[test]
fn links() {
    let (instance, said) = instance(0);
    let report = instance.link_report().unwrap();
    assert_eq!(report.len(), 1);
    let link = &report[0];
    assert_eq!(
        (link.link_type, link.scope),
        (LinkType::Posted, Scope::Network)
    );
    assert_eq!((&*link.kind, link.rail), ("small", 2));

    let control = Arc::new(Control::default());
    let address = instance.address().unwrap().unwrap();
    let stranger = connect(&instance, b"them", &control).unwrap_err();
    assert_eq!(stranger.status, Status::Auth);
    let mut link = connect(&instance, &address, &control).unwrap();
    // SAFETY: the plugin never writes to it.
    let token = unsafe { link.export_window(3, 4096, 64) }.unwrap();
    link.import_window(3, &token).unwrap();
    assert_eq!(
        link.import_window(4, &token).unwrap_err().status,
        Status::Link
    );
    assert_eq!(
        link.close_window(3).unwrap_err().status,
        Status::Unsupported
    );
    assert_eq!(link.statistics().unwrap().bytes_sent, 12);
    assert_eq!(link.poll(1).unwrap().state, State::Idle);
    assert_eq!(link.state().unwrap().state, State::Idle);
    drop(instance);
    assert_eq!(Arc::strong_count(&control), 2, "the link keeps the channel");
    drop(link);
    assert_eq!(said.take(), ["link", "instance"]);
    assert_eq!(*control.0.lock().unwrap(), [b"bye"]);
    assert_eq!(Arc::strong_count(&control), 1);
}
