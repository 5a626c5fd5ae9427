//! Puts out of and into the memory of devices, over the stand-in for libibverbs.
//!
//! A device's memory is a file here, at addresses that nobody may touch: whoever takes one for the host's
//! ends the process.
#![allow(unsafe_code, reason = "memory by address")]

mod common;

use std::ffi::c_void;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use common::*;
use unisono_plugin::abi::{CMD_WORDS, CommandPut, DMABUF_INTERFACE, Status, status};
use unisono_plugin::{
    Dmabuf, DmabufInstance, Error, Flush, HostRange, Instance, Link, QueuePhase, Status as Kind,
};

/// The number of the window in a device's memory.
const DEVICE: u32 = 9;
const BYTES: usize = 1 << 20;
/// Where the memory begins in its dma-buf.
const OFFSET: u64 = 3 << 12;
const FLAG: usize = 5;

/// A device's memory.
struct Device {
    file: File,
    at: *mut c_void,
    flushed: Box<Flushed>,
}

/// What was found when the memory was flushed.
#[derive(Default)]
struct Flushed {
    calls: AtomicU64,
    fails: AtomicBool,
    /// The flag that is raised afterwards, and what it was.
    flag: AtomicPtr<u64>,
    seen: AtomicU64,
    /// What is to have landed by then at the memory's beginning, and whether it had.
    wanted: Mutex<Vec<u8>>,
    landed: AtomicBool,
    file: Option<File>,
}

impl Device {
    fn new() -> Self {
        // SAFETY: a new file; addresses where the kernel finds room, which nobody may touch.
        let (file, at) = unsafe {
            let file = libc::memfd_create(c"device".as_ptr(), libc::MFD_CLOEXEC);
            assert!(file >= 0);
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let none = std::ptr::null_mut();
            let at = libc::mmap(none, BYTES, libc::PROT_NONE, flags, -1, 0);
            assert!(at != libc::MAP_FAILED);
            (File::from_raw_fd(file), at)
        };
        file.set_len(OFFSET + BYTES as u64).unwrap();
        let flushed = Box::new(Flushed {
            file: Some(file.try_clone().unwrap()),
            ..Flushed::default()
        });
        Self { file, at, flushed }
    }

    fn address(&self) -> u64 {
        self.at as u64
    }

    fn range(&self) -> HostRange {
        HostRange {
            address: self.address(),
            bytes: BYTES as u64,
        }
    }

    fn add(&self, end: &End) -> Result<(), Error> {
        let context = (&raw const *self.flushed).cast_mut().cast();
        end.instance.add_dmabuf(Dmabuf {
            fd: self.file.as_fd(),
            offset: OFFSET,
            range: self.range(),
            // SAFETY: the device outlives the ends of the tests.
            flush: Some(unsafe { Flush::from_raw(flush, context) }),
        })
    }

    fn write(&self, offset: usize, bytes: &[u8]) {
        self.file
            .write_all_at(bytes, OFFSET + offset as u64)
            .unwrap();
    }

    fn read(&self, offset: usize, bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes];
        let at = OFFSET + offset as u64;
        self.file.read_exact_at(&mut out, at).unwrap();
        out
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's alone.
        unsafe { libc::munmap(self.at, BYTES) };
    }
}

unsafe extern "C" fn flush(context: *mut c_void) -> Status {
    // SAFETY: the test's own.
    let flushed = unsafe { &*context.cast::<Flushed>() };
    flushed.calls.fetch_add(1, Ordering::Relaxed);
    let flag = flushed.flag.load(Ordering::Relaxed);
    if !flag.is_null() {
        // SAFETY: a flag of the test's.
        let seen = unsafe { AtomicU64::from_ptr(flag) }.load(Ordering::Acquire);
        flushed.seen.store(seen, Ordering::Relaxed);
    }
    let wanted = flushed.wanted.lock().unwrap();
    let mut there = vec![0; wanted.len()];
    let file = flushed.file.as_ref().unwrap();
    file.read_exact_at(&mut there, OFFSET).unwrap();
    flushed.landed.store(there == *wanted, Ordering::Relaxed);
    match flushed.fails.load(Ordering::Relaxed) {
        true => status::DEVICE,
        false => status::OK,
    }
}

/// Two ends, each with a window in a device's memory.
fn with_devices(devices: &[Device; 2], set: &[(&str, Value)]) -> [End; 2] {
    let mut ends = pair(set, BYTES);
    let mut tokens = Vec::new();
    for (end, device) in ends.iter_mut().zip(devices) {
        device.add(end).unwrap();
        tokens.push(end.link.export_window(DEVICE, device.range()).unwrap());
    }
    for (end, token) in ends.iter_mut().zip(tokens.iter().rev()) {
        end.link.import_window(DEVICE, token).unwrap();
    }
    for (end, device) in ends.iter().zip(devices) {
        let flag = end.flags.flag(FLAG).as_ptr();
        device.flushed.flag.store(flag, Ordering::Relaxed);
    }
    ends
}

fn to_device(put: CommandPut) -> CommandPut {
    CommandPut {
        dst_window: DEVICE,
        ..put
    }
}

/// Puts that raise the flag, and waits until it is up and the source is free.
fn deliver(ends: &mut [End; 2], from: usize, put: CommandPut) {
    let to = 1 - from;
    let before = ends[to].raised(FLAG);
    ends[from].submit(&Commands::default().put(put));
    drive(ends, |ends| ends[to].raised(FLAG) > before);
    assert_eq!(ends[to].raised(FLAG), before + 1, "a signal came twice");
    drive(ends, |ends| ends[from].phase() == QueuePhase::Idle);
}

#[test]
fn memory_of_devices() {
    let devices = Devices::ethernet(2);
    for set in [
        vec![("devices", "fake0".into()), ("queue_pairs", 1.into())],
        vec![("stripe", 4096.into())],
        vec![
            ("inline", 1024.into()),
            ("message", 4096.into()),
            ("credits", 8.into()),
        ],
    ] {
        from_device_to_device(&set);
    }
    between_a_device_and_the_host();
    a_device_that_cannot_flush();
    a_rail_dies_under_them(&devices);
    what_is_refused(&devices);
}

fn from_device_to_device(set: &[(&str, Value)]) {
    let memory = [Device::new(), Device::new()];
    let mut ends = with_devices(&memory, set);
    let mut random = Random::seeded();
    let sizes = [
        1, 7, 64, 200, 220, 1024, 4096, 65_536, 100_001, 131_072, BYTES,
    ];
    for (turn, size) in sizes.into_iter().cycle().take(3 * sizes.len()).enumerate() {
        let (from, to) = (turn % 2, 1 - turn % 2);
        let content = random.bytes(size);
        memory[from].write(0, &content);
        let flushed = &memory[to].flushed;
        flushed.wanted.lock().unwrap().clone_from(&content);
        flushed.landed.store(false, Ordering::Relaxed);
        let (calls, before) = (flushed.calls.load(Ordering::Relaxed), ends[to].raised(FLAG));
        let mut command = to_device(put(memory[from].address(), size, 0, Some(FLAG)));
        if turn % 3 == 0 {
            command.head.flags = CMD_WORDS;
            command.words = [turn as u64, 2, 3];
        }
        deliver(&mut ends, from, command);
        assert!(
            memory[to].read(0, size) == content,
            "{size} bytes are wrong"
        );
        assert!(
            flushed.calls.load(Ordering::Relaxed) > calls,
            "{size} bytes"
        );
        // What came later, a word of credits, may have flushed again: the last before the flag counts.
        if flushed.calls.load(Ordering::Relaxed) == calls + 1 {
            assert_eq!(flushed.seen.load(Ordering::Relaxed), before, "{size} bytes");
            assert!(flushed.landed.load(Ordering::Relaxed), "{size} bytes");
        }
        if turn % 3 == 0 {
            assert_eq!(ends[to].words(FLAG), [turn as u64, 2, 3]);
        }
    }
}

impl End {
    fn words(&self, flag: usize) -> [u64; 3] {
        self.flags.words(flag)
    }
}

/// The other way round at each end, and pieces at strides.
fn between_a_device_and_the_host() {
    let memory = [Device::new(), Device::new()];
    let mut ends = with_devices(&memory, &[("stripe", 4096.into())]);
    let mut random = Random::seeded();
    let source = Memory::new(BYTES);
    for size in [1, 100, 5000, 70_000, BYTES] {
        let content = random.bytes(size);
        source.write(0, &content);
        deliver(
            &mut ends,
            0,
            to_device(put(source.address(), size, 0, Some(FLAG))),
        );
        assert!(memory[1].read(0, size) == content, "to a device: {size}");
        deliver(&mut ends, 1, put(memory[1].address(), size, 0, Some(FLAG)));
        assert!(ends[0].data.read(0, size) == content, "from one: {size}");
    }
    for (piece, stride, repeat) in [(3, 10, 7), (100, 128, 200), (5000, 6000, 20)] {
        let content = random.bytes(stride * repeat);
        memory[0].write(64, &content);
        let mut command = to_device(put(memory[0].address() + 64, piece, 0, Some(FLAG)));
        (command.repeat, command.src_stride) = (repeat as u64, stride as u64);
        deliver(&mut ends, 0, command);
        let pieces = content.chunks(stride).flat_map(|all| &all[..piece]);
        let gathered: Vec<u8> = pieces.copied().collect();
        assert!(
            memory[1].read(0, gathered.len()) == gathered,
            "{piece} of {stride}"
        );
    }
    // The CPU raises no flag in a device's memory, whatever a peer asks for.
    let mut command = put(source.address(), 8, 0, Some(0));
    command.signal_window = DEVICE;
    ends[0].submit(&Commands::default().put(command));
    let error = failure_of_either(&mut ends);
    assert!(error.to_string().contains("flag"), "{error}");
}

fn failure_of_either(ends: &mut [End; 2]) -> Error {
    loop {
        for end in ends.iter_mut() {
            if let Err(error) = end.link.poll(1 << 20) {
                return error;
            }
        }
    }
}

/// No flag is raised over what the device may not see.
fn a_device_that_cannot_flush() {
    let memory = [Device::new(), Device::new()];
    let mut ends = with_devices(&memory, &[]);
    memory[1].flushed.fails.store(true, Ordering::Relaxed);
    ends[0].submit(&Commands::default().put(to_device(put(
        memory[0].address(),
        100_000,
        0,
        Some(FLAG),
    ))));
    let error = failure_of_either(&mut ends);
    assert!(error.to_string().contains("cannot flush"), "{error}");
    assert_eq!(ends[1].raised(FLAG), 0);
}

fn a_rail_dies_under_them(devices: &Devices) {
    let memory = [Device::new(), Device::new()];
    let mut ends = with_devices(&memory, &[("queue_pairs", 1.into())]);
    let mut random = Random::seeded();
    for rail in ["fake0", "fake1", "fake0"] {
        devices.cut(rail);
        for size in [50, 3000, 200_000, BYTES] {
            for from in 0..2 {
                let content = random.bytes(size);
                memory[from].write(0, &content);
                let command = to_device(put(memory[from].address(), size, 0, Some(FLAG)));
                deliver(&mut ends, from, command);
                assert!(memory[1 - from].read(0, size) == content, "{size} bytes");
            }
        }
        devices.mend(rail);
    }
    let statistics = ends[0].link.statistics().unwrap();
    assert!(statistics.recovered > 0, "{statistics:?}");
}

fn what_is_refused(devices: &Devices) {
    let memory = Device::new();
    let [end, _other] = pair(&[], 4096);
    let status = |error: Result<(), Error>| error.map_err(|error| error.status());
    assert!(!end.instance.interface(DMABUF_INTERFACE).is_null());
    assert!(end.instance.interface("unisono.dmabufs").is_null());
    let unknown = end.instance.remove_dmabuf(memory.address());
    assert_eq!(status(unknown), Err(Kind::Invalid));
    devices.set("fake1", "no_dmabuf", "");
    let refused = memory.add(&end);
    let text = refused.as_ref().map_err(ToString::to_string);
    assert!(text.is_err_and(|text| text.contains("fake1")));
    assert_eq!(status(refused), Err(Kind::Unsupported));
    std::fs::remove_file(devices.path("fake1").join("no_dmabuf")).unwrap();
    assert_eq!(status(memory.add(&end)), Ok(()));
    assert_eq!(status(memory.add(&end)), Err(Kind::Invalid));
    assert_eq!(status(end.instance.remove_dmabuf(memory.address())), Ok(()));
    assert_eq!(status(memory.add(&end)), Ok(()));
    let without = instance(&[("dmabuf", 0.into())]).unwrap();
    assert!(without.interface(DMABUF_INTERFACE).is_null());
    assert!(memory.file.as_raw_fd() >= 0);
}
