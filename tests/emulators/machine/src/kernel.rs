//! Kernels: the shipped sources, compiled for the host, run thread by thread.
//!
//! Blocks run in a seeded order. A kernel asks for the ranges that it will touch; where a device would
//! fault, it gets memory that nobody sees, and the device is broken when it ends.
#![allow(
    unsafe_code,
    reason = "calls functions of a library that was built for this"
)]

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use libloading::Library;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::op::{self, Noted, Running};
use crate::space::Range;
use crate::{Broken, Device, Launch, Machine, Mover, Place};

/// Ranges of a launch that are noted: kernels have few, but rows of many.
const NOTES: usize = 20;

/// In an access: it writes, and it is of a flag. As in plugins/kernels/sources/device.h.
const WRITES: i32 = 1;
const OF_FLAG: i32 = 2;

/// The kernel with barriers, of one block.
const WITH_BARRIERS: &str = "unisono_steps";

/// The library of kernels.
#[derive(Debug)]
pub struct Kernels(Library);

/// A kernel of the library.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    call: unsafe extern "C" fn(*const u64),
    position: unsafe extern "C" fn(*const Position),
    /// It has barriers: one thread does it all.
    alone: bool,
}

/// Which thread runs: the same struct as in plugins/kernels/sources/device.h.
#[repr(C)]
struct Position {
    thread: u64,
    threads: u64,
    block: u64,
    blocks: u64,
    row: u64,
    rows: u64,
}

/// What kernels ask of the machine: as above.
#[repr(C)]
struct Hooks {
    range: extern "C" fn(u64, u64, i32) -> *mut u8,
    relax: extern "C" fn(),
    barrier: extern "C" fn(),
}

/// A range that a kernel is at.
struct Note {
    address: u64,
    bytes: u64,
    access: i32,
    /// Until the launch is over.
    _noted: Option<Noted>,
}

/// What the thread of a hardware queue runs now.
struct Now {
    machine: *const Machine,
    device: *const Device,
    faulted: Cell<bool>,
    /// The first thread of all runs: its ranges are the launch's.
    first: Cell<bool>,
    /// A link to another device carries nothing any more.
    cut_off: Cell<bool>,
    operation: u64,
    /// Ranges that it is at.
    notes: RefCell<Vec<Note>>,
    /// The ranges that were asked for last.
    recent: Cell<[Option<Arc<Range>>; 4]>,
    /// Of messages, by the place.
    read: Cell<[u64; 65]>,
    written: Cell<[u64; 65]>,
    /// Of flags, both ways.
    flags: Cell<[u64; 65]>,
}

thread_local! {
    static NOW: Cell<*const Now> = const { Cell::new(ptr::null()) };
}

impl Kernels {
    /// Opens the library.
    ///
    /// # Errors
    /// If it is none of ours.
    pub(crate) fn open(path: &Path) -> Result<Self, libloading::Error> {
        let hooks = Hooks {
            range,
            relax,
            barrier,
        };
        // SAFETY: a library built from plugins/kernels/sources, which has no constructors; its
        // functions have these types.
        unsafe {
            let library = Library::new(path)?;
            let bind =
                library.get::<unsafe extern "C" fn(*const Hooks)>(b"unisono_host_machine\0")?;
            bind(&raw const hooks);
            Ok(Self(library))
        }
    }

    /// A kernel by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Kernel> {
        // SAFETY: as in `open`. The library is never closed.
        unsafe {
            let call = self
                .0
                .get::<unsafe extern "C" fn(*const u64)>(name.as_bytes());
            let position = self.0.get(b"unisono_host_position\0");
            Some(Kernel {
                call: *call.ok()?,
                position: *position.ok()?,
                alone: name == WITH_BARRIERS,
            })
        }
    }
}

impl Kernel {
    pub(crate) fn run(&self, on: &mut Running<'_>, launch: &Launch) -> Result<(), Broken> {
        let now = Now {
            machine: on.machine,
            device: on.device,
            faulted: Cell::new(false),
            first: Cell::new(true),
            cut_off: Cell::new(false),
            operation: on.operation,
            notes: RefCell::default(),
            recent: Cell::default(),
            read: Cell::new([0; 65]),
            written: Cell::new([0; 65]),
            flags: Cell::new([0; 65]),
        };
        NOW.set(&raw const now);
        let (blocks, rows) = (u64::from(launch.grid[0]), u64::from(launch.grid[1]));
        let threads = match self.alone {
            true => 1,
            false => u64::from(launch.block[0]),
        };
        let total = blocks * rows;
        // Any odd step visits each block of a power of two; for others, from a random first one.
        let first = on.random.below(total);
        let backwards = on.random.below(2) == 1;
        for step in 0..total {
            let step = if backwards { total - 1 - step } else { step };
            let at = (first + step) % total;
            for thread in 0..threads {
                let position = Position {
                    thread,
                    threads,
                    block: at % blocks,
                    blocks,
                    row: at / blocks,
                    rows,
                };
                // SAFETY: the types in device.h; the arguments are as long as the kernel's parameter,
                // which was checked when it was launched.
                unsafe {
                    (self.position)(&raw const position);
                    (self.call)(launch.arguments.as_ptr());
                }
                now.first.set(false);
            }
        }
        NOW.set(ptr::null());
        on.pace_kernel(&now, blocks * threads);
        on.linger();
        drop(now.notes.take());
        on.count_kernel(&now, blocks * threads);
        if now.cut_off.get() {
            return Err(Broken::Link);
        }
        if now.faulted.get() {
            return Err(Broken::IllegalAddress);
        }
        Ok(())
    }
}

impl Running<'_> {
    /// Takes the time of the link that carried most: a kernel uses all of them at once.
    fn pace_kernel(&self, now: &Now, threads: u64) {
        let carried = [now.read.get(), now.written.get()]
            .into_iter()
            .flat_map(|way| {
                let others = way.into_iter().take(64).enumerate();
                others.filter(|(device, _)| *device != self.device.index as usize)
            });
        let most = carried.map(|(_, bytes)| bytes / threads.max(1)).max();
        self.take_time(most.unwrap_or(0));
    }

    /// Every thread of a row asks for the whole range: what was asked for is counted once.
    fn count_kernel(&self, now: &Now, threads: u64) {
        let me = Place::Device(self.device.index);
        let data = now.read.get().into_iter().zip(now.written.get());
        for (index, ((read, written), flags)) in data.zip(now.flags.get()).enumerate() {
            let place = match index {
                64 => Place::Host,
                device => Place::Device(device as u32),
            };
            let traffic = &self.machine.traffic;
            traffic.add(place, me, Mover::Kernel, read / threads.max(1));
            traffic.add(me, place, Mover::Kernel, written / threads.max(1));
            traffic.add(me, place, Mover::Flag, flags / threads.max(1));
        }
    }
}

impl Now {
    /// Notes a range, once for all threads that ask; false if that is a race.
    fn note(
        &self,
        machine: &Machine,
        range: &Arc<Range>,
        (address, bytes): (u64, u64),
        access: i32,
    ) -> bool {
        let mut notes = self.notes.borrow_mut();
        let asked = (address, bytes, access);
        let known = (notes.iter()).any(|note| (note.address, note.bytes, note.access) == asked);
        if known || notes.len() >= NOTES {
            return true;
        }
        match op::note(
            machine,
            self.operation,
            range,
            (address, bytes),
            access & WRITES != 0,
        ) {
            Ok(noted) => {
                notes.push(Note {
                    address,
                    bytes,
                    access,
                    _noted: noted,
                });
                true
            }
            Err(_) => false,
        }
    }
}

/// Where the bytes of a range lie, for a kernel.
extern "C" fn range(address: u64, bytes: u64, access: i32) -> *mut u8 {
    let now = NOW.get();
    if now.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: set by the launch that this thread is in, which outlives the kernel's call.
    let (now, machine, device) = unsafe { (&*now, &*(*now).machine, &*(*now).device) };
    if bytes == 0 {
        return address as usize as *mut u8;
    }
    let mut recent = now.recent.take();
    let known = recent.iter().flatten();
    let range = known
        .clone()
        .find(|range| address >= range.base && address - range.base < range.bytes)
        .map(Arc::clone)
        .or_else(|| machine.space.find(address));
    let found = range.and_then(|range| {
        let found = range.resolve(device.index, address, bytes).ok()?;
        if !recent
            .iter()
            .flatten()
            .any(|known| Arc::ptr_eq(known, &range))
        {
            recent.rotate_right(1);
            recent[0] = Some(range);
        }
        Some(found)
    });
    now.recent.set(recent);
    let raced = (found.as_ref())
        .is_some_and(|found| !now.note(machine, &found.range, (address, bytes), access));
    if raced {
        now.faulted.set(true);
    }
    let Some(found) = found else {
        if !now.faulted.replace(true) {
            eprintln!("emulator: a kernel touches {bytes} bytes at {address:#x}");
        }
        return nowhere(bytes);
    };
    let index = match found.place {
        Place::Device(device) => device as usize,
        Place::Host => 64,
    };
    if let Place::Device(other) = found.place
        && access & OF_FLAG == 0
        && now.first.get()
        && other != device.index
        && machine.link_is_broken(device.index, other, bytes)
    {
        now.cut_off.set(true);
    }
    let counts = match access {
        _ if access & OF_FLAG != 0 => &now.flags,
        _ if access & WRITES != 0 => &now.written,
        _ => &now.read,
    };
    let mut sums = counts.get();
    sums[index] += bytes;
    counts.set(sums);
    found.at
}

/// Memory that nobody sees. It is lost: the device is broken anyway.
fn nowhere(bytes: u64) -> *mut u8 {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping where the kernel finds room.
    let at = unsafe { mmap_anonymous(ptr::null_mut(), bytes as usize, protection, flags) };
    at.map_or(ptr::null_mut(), |at| at.cast())
}

/// A thread of a kernel that spins.
extern "C" fn relax() {
    std::thread::sleep(Duration::from_micros(20));
}

/// All threads of a block have come here: what they were at before they are at no more.
extern "C" fn barrier() {
    let now = NOW.get();
    if !now.is_null() {
        // SAFETY: set by the launch that this thread is in, which outlives the kernel's call.
        unsafe { &*now }.notes.borrow_mut().clear();
    }
}
