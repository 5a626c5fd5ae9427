//! What streams do, one operation after another.
#![allow(
    unsafe_code,
    reason = "moves bytes of emulated memory, calls the program's functions"
)]

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::accesses::Touched;
use crate::kernel::Kernel;
use crate::space::{Illegal, Range, Resolved};
use crate::{Broken, Device, Event, Machine, Mover, Node, Place, Random};

/// An operation of a stream.
#[derive(Clone, Debug)]
pub enum Op {
    /// Rows of bytes; one row is a plain copy.
    Copy {
        /// Where to.
        dst: u64,
        /// From where.
        src: u64,
        /// Bytes of a row.
        bytes: u64,
        /// Rows.
        rows: u64,
        /// From one row to the next.
        dst_pitch: u64,
        /// As above.
        src_pitch: u64,
    },
    /// One byte everywhere.
    Fill {
        /// Where to.
        dst: u64,
        /// The byte.
        value: u8,
        /// How many.
        bytes: u64,
    },
    /// A range folded into another, both of the device's own memory.
    Fold {
        /// The one that changes.
        dst: u64,
        /// The other.
        src: u64,
        /// Of each.
        bytes: u64,
        /// How.
        fold: Fold,
    },
    /// A kernel on a grid.
    Launch(Launch),
    /// A number to memory, after all before it.
    Write {
        /// Where to, a multiple of 8 (or 4).
        address: u64,
        /// What.
        value: u64,
        /// 8 or 4 bytes.
        wide: bool,
    },
    /// Until memory holds a number.
    Wait {
        /// Where.
        address: u64,
        /// What it is compared with.
        value: u64,
        /// How.
        compare: Compare,
        /// 8 or 4 bytes.
        wide: bool,
    },
    /// Completes a recording of an event.
    Record(Arc<Event>, u64),
    /// Waits for a recording of an event.
    Await(Arc<Event>, u64),
    /// Calls the program.
    Call(HostCall),
    /// Something of the emulated driver's own.
    Do(Internal),
    /// A graph's nodes, some of which nothing orders.
    Branches(Arc<[Node]>),
}

/// Folds elements into as many others.
pub type Fold = fn(&mut [u8], &[u8]);

/// Work of an emulated driver, in a stream's order.
#[derive(Clone)]
pub struct Internal(pub Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for Internal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Internal")
    }
}

/// How a wait compares what it finds with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Not behind it, cyclically.
    GreaterOrEqual,
    /// The same.
    Equal,
    /// A common bit.
    And,
    /// A bit that neither has.
    Nor,
}

/// A kernel's launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel.
    pub kernel: Kernel,
    /// Its one parameter.
    pub arguments: Vec<u64>,
    /// Blocks: x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block: x, y, z.
    pub block: [u32; 3],
}

/// A function of the program's, to be called when a stream comes to it.
#[derive(Clone, Copy, Debug)]
pub struct HostCall {
    /// The function.
    pub call: unsafe extern "C" fn(*mut c_void),
    /// Its argument.
    pub data: *mut c_void,
}

// SAFETY: who enqueues it promises that any thread may call it.
unsafe impl Send for HostCall {}
// SAFETY: as above; it is called once.
unsafe impl Sync for HostCall {}

/// Where an operation runs.
pub(crate) struct Running<'a> {
    pub machine: &'a Machine,
    pub device: &'a Device,
    pub random: &'a mut Random,
    /// The operation's number on this machine.
    pub operation: u64,
}

/// A range that an operation is at, until dropped.
pub(crate) struct Noted {
    range: Arc<Range>,
    at: usize,
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(backing) = self.range.backing() {
            backing.accesses().end(self.at);
        }
    }
}

/// Notes that an operation is at a range of device memory, where the box says that races are found. An
/// error if it is not ordered with another that is at it now.
pub(crate) fn note(
    machine: &Machine,
    operation: u64,
    range: &Arc<Range>,
    (address, bytes): (u64, u64),
    writes: bool,
) -> Result<Option<Noted>, Broken> {
    let Some(backing) = range.backing().filter(|_| machine.facts.finds_races) else {
        return Ok(None);
    };
    let from = address - range.base;
    let touched = Touched {
        of: operation,
        from,
        to: from + bytes,
        writes,
    };
    match backing.accesses().begin(touched) {
        Ok(at) => Ok(at.map(|at| Noted {
            range: Arc::clone(range),
            at,
        })),
        Err(other) => {
            let does = |writes| if writes { "writes" } else { "reads" };
            eprintln!(
                "emulator: a race: an operation {} {bytes} bytes at {address:#x} of device {} while \
                 another, of process {}, {} {} bytes there: nothing orders the two",
                does(writes),
                backing.owner(),
                other.of >> 32,
                does(other.writes),
                other.to - other.from,
            );
            Err(Broken::Launch)
        }
    }
}

impl From<Illegal> for Broken {
    fn from(_: Illegal) -> Self {
        Self::IllegalAddress
    }
}

impl Op {
    /// Does it. An error breaks the device.
    pub(crate) fn run(&self, on: &mut Running<'_>) -> Result<(), Broken> {
        match self {
            Self::Copy { bytes, rows, .. } if *bytes == 0 || *rows == 0 => Ok(()),
            &Self::Copy {
                dst,
                src,
                bytes,
                rows,
                dst_pitch,
                src_pitch,
            } => {
                for row in 0..rows {
                    on.copy(dst + row * dst_pitch, src + row * src_pitch, bytes)?;
                }
                Ok(())
            }
            Self::Fill { bytes: 0, .. } | Self::Fold { bytes: 0, .. } => Ok(()),
            &Self::Fold {
                dst,
                src,
                bytes,
                fold,
            } => on.fold(dst, src, bytes, fold),
            &Self::Fill { dst, value, bytes } => on.fill(dst, value, bytes),
            Self::Launch(launch) => launch.kernel.run(on, launch),
            &Self::Write {
                address,
                value,
                wide,
            } => on.write(address, value, wide),
            &Self::Wait {
                address,
                value,
                compare,
                wide,
            } => on.wait(address, value, compare, wide),
            Self::Record(event, number) => {
                event.reach(*number);
                Ok(())
            }
            Self::Await(event, number) => on.until(|| event.is_reached(*number)),
            Self::Call(call) => {
                // SAFETY: the promise of who enqueued it.
                unsafe { (call.call)(call.data) };
                Ok(())
            }
            Self::Do(work) => {
                (work.0)();
                Ok(())
            }
            // Its nodes run by themselves.
            Self::Branches(_) => Ok(()),
        }
    }

    /// How many numbers of its stream's operations it takes.
    pub(crate) fn numbers(&self) -> u64 {
        match self {
            Self::Branches(nodes) => nodes.len() as u64 + 1,
            _ => 1,
        }
    }

    /// It as a node of a graph that is launched now.
    pub(crate) fn at_launch(&self) -> Self {
        match self {
            Self::Await(event, _) => Self::Await(Arc::clone(event), event.last()),
            op => op.clone(),
        }
    }

    /// Whether it can take for ever.
    pub(crate) const fn waits(&self) -> bool {
        matches!(self, Self::Wait { .. } | Self::Await(..))
    }
}

impl Running<'_> {
    fn resolve(&self, address: u64, bytes: u64) -> Result<Resolved, Broken> {
        Ok(self
            .machine
            .space
            .resolve(self.device.index, address, bytes)?)
    }

    fn note(
        &self,
        at: &Resolved,
        address: u64,
        bytes: u64,
        writes: bool,
    ) -> Result<Option<Noted>, Broken> {
        let within = (address, bytes);
        note(self.machine, self.operation, &at.range, within, writes)
    }

    /// Stays at what it noted for a while, now and then, so that others who come meet it.
    pub(crate) fn linger(&mut self) {
        let delays = self.machine.facts.delays;
        let stays = self.machine.facts.finds_races && delays.one_in > 0;
        if stays && self.random.below(delays.one_in.into()) == 0 {
            let time = self.random.below(delays.longest_us + 1);
            std::thread::sleep(Duration::from_micros(time));
        }
    }

    fn copy(&mut self, dst: u64, src: u64, bytes: u64) -> Result<(), Broken> {
        let to = self.resolve(dst, bytes)?;
        let from = self.resolve(src, bytes)?;
        let _notes = [
            self.note(&to, dst, bytes, true)?,
            self.note(&from, src, bytes, false)?,
        ];
        self.carry(from.place, to.place, bytes)?;
        self.machine
            .traffic
            .add(from.place, to.place, Mover::Copy, bytes);
        self.pace(from.place, to.place, bytes);
        // A copy has no order of its own: now and then the later half comes first.
        let cut = if bytes > 64 && self.random.below(4) == 0 {
            self.random.below(bytes)
        } else {
            0
        } as usize;
        // SAFETY: both were resolved for so many bytes and are kept by `to` and `from`. They may
        // overlap or race where the program is wrong, hence `copy`.
        unsafe {
            std::ptr::copy(from.at.add(cut), to.at.add(cut), bytes as usize - cut);
            self.linger();
            std::ptr::copy(from.at, to.at, cut);
        }
        Ok(())
    }

    /// Takes the time that a link takes.
    fn pace(&self, from: Place, to: Place, bytes: u64) {
        if from != to && matches!((from, to), (Place::Device(_), Place::Device(_))) {
            let facts = &self.machine.facts;
            let is_read = to == Place::Device(self.device.index);
            let read = facts.read_bytes_per_second.filter(|_| is_read);
            take(bytes, read.unwrap_or(facts.copy_bytes_per_second));
        }
    }

    /// The time that a link takes for so many bytes.
    pub(crate) fn take_time(&self, bytes: u64) {
        take(bytes, self.machine.facts.copy_bytes_per_second);
    }

    fn fold(&self, dst: u64, src: u64, bytes: u64, fold: Fold) -> Result<(), Broken> {
        let (to, from) = (self.resolve(dst, bytes)?, self.resolve(src, bytes)?);
        let own = Place::Device(self.device.index);
        let apart = dst.abs_diff(src) >= bytes;
        if to.place != own || from.place != own || !apart {
            return Err(Broken::IllegalAddress);
        }
        let _notes = [
            self.note(&to, dst, bytes, true)?,
            self.note(&from, src, bytes, false)?,
        ];
        self.machine.traffic.add(own, own, Mover::Kernel, bytes);
        // SAFETY: both were resolved for so many bytes, are kept by `to` and `from`, and lie apart; a
        // program that lets them race is wrong, and finds wrong numbers.
        unsafe {
            let to = std::slice::from_raw_parts_mut(to.at, bytes as usize);
            let from = std::slice::from_raw_parts(from.at, bytes as usize);
            fold(to, from);
        }
        Ok(())
    }

    /// Whether a link still carries bytes.
    fn carry(&self, from: Place, to: Place, bytes: u64) -> Result<(), Broken> {
        let (Place::Device(a), Place::Device(b)) = (from, to) else {
            return Ok(());
        };
        if a != b && self.machine.link_is_broken(a, b, bytes) {
            return Err(Broken::Link);
        }
        Ok(())
    }

    fn fill(&self, dst: u64, value: u8, bytes: u64) -> Result<(), Broken> {
        let to = self.resolve(dst, bytes)?;
        let _note = self.note(&to, dst, bytes, true)?;
        match to.range.backing().filter(|_| value == 0) {
            Some(backing) => backing.zero(to.at.addr() as u64 - backing.at().addr() as u64, bytes),
            // SAFETY: as in `copy`.
            None => unsafe { std::ptr::write_bytes(to.at, value, bytes as usize) },
        }
        Ok(())
    }

    fn write(&self, address: u64, value: u64, wide: bool) -> Result<(), Broken> {
        let to = self.resolve(address, if wide { 8 } else { 4 })?;
        let from = Place::Device(self.device.index);
        self.machine.traffic.add(from, to.place, Mover::Flag, 8);
        // SAFETY: resolved for so many bytes, aligned as was checked when it was submitted, and
        // accessed atomically by whoever looks at it meanwhile.
        unsafe {
            if wide {
                AtomicU64::from_ptr(to.at.cast()).store(value, Ordering::SeqCst);
            } else {
                std::sync::atomic::AtomicU32::from_ptr(to.at.cast())
                    .store(value as u32, Ordering::SeqCst);
            }
        }
        Ok(())
    }

    fn wait(&self, address: u64, value: u64, compare: Compare, wide: bool) -> Result<(), Broken> {
        // Looked up each time: memory that is freed under a wait breaks the device.
        let mut broken = None;
        self.until(|| {
            let at = match self.resolve(address, if wide { 8 } else { 4 }) {
                Ok(at) => at,
                Err(error) => {
                    broken = Some(error);
                    return true;
                }
            };
            // SAFETY: as in `write`.
            let found = unsafe {
                if wide {
                    AtomicU64::from_ptr(at.at.cast()).load(Ordering::SeqCst)
                } else {
                    let word = std::sync::atomic::AtomicU32::from_ptr(at.at.cast());
                    u64::from(word.load(Ordering::SeqCst))
                }
            };
            let ahead = if wide {
                found.wrapping_sub(value).cast_signed() >= 0
            } else {
                (found as u32).wrapping_sub(value as u32).cast_signed() >= 0
            };
            match compare {
                Compare::GreaterOrEqual => ahead,
                Compare::Equal => found == value,
                Compare::And => found & value != 0,
                Compare::Nor => !(found | value) & if wide { u64::MAX } else { 0xffff_ffff } != 0,
            }
        })?;
        broken.map_or(Ok(()), Err)
    }

    /// Polls until `done`, or the device is broken.
    fn until(&self, mut done: impl FnMut() -> bool) -> Result<(), Broken> {
        let mut rounds = 0_u64;
        while !done() {
            if let Some(broken) = self.device.broken() {
                return Err(broken);
            }
            rounds += 1;
            match rounds {
                0..64 => std::hint::spin_loop(),
                64..256 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros((rounds - 255).min(20) * 5)),
            }
        }
        Ok(())
    }
}

/// Waits as long as a link takes for so many bytes; a rate of 0 takes no time.
fn take(bytes: u64, rate: u64) {
    if rate > 0 && bytes > 0 {
        std::thread::sleep(Duration::from_secs_f64(bytes as f64 / rate as f64));
    }
}
