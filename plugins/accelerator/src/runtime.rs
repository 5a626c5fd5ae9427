//! What a vendor's runtime does for one device.
#![allow(unsafe_code, reason = "duplicates another process's descriptor")]

use std::fmt;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use unisono_plugin::abi::{CommandCopy, CommandReduce, CommandScale};
use unisono_plugin::{DeviceId, Error, MemoryView, Recording, Result, Status};

use crate::{Line, Process, Step};

/// The runtime of one device. Any thread may call. Every function leaves the calling thread's current
/// device or context as it was.
///
/// # Safety
/// Addresses that it gives are good for the device until what they came with is dropped or freed;
/// [`idle`](Self::idle) and completed writes tell the truth about what the device still touches.
pub unsafe trait Runtime: Send + Sync + Sized + 'static {
    /// What errors call it: the plugin's name.
    const NAME: &'static str;
    /// What its device memory is aligned to.
    const ALIGN: u64;
    /// A stream of the runtime's.
    type Stream: Copy + fmt::Debug + Send + Sync;
    /// An event of the runtime's.
    type Event: Copy + fmt::Debug + Send + Sync;
    /// Memory of the device, freed or unmapped when dropped.
    type Block: Block;
    /// A graph of the runtime's, ready to run; [`NoGraph`] if it has none.
    type Graph: Copy + fmt::Debug + Send + Sync;

    /// What all devices of this process share.
    fn process() -> &'static Process<Self>;
    /// The device's identity.
    fn id(&self) -> DeviceId;

    /// A stream that is ordered with no other. Higher priority is sooner, 0 is usual.
    ///
    /// # Errors
    /// What the runtime says; so for all functions here.
    fn create_stream(&self, priority: i64) -> Result<Self::Stream>;
    /// Ends an idle stream that was created.
    fn destroy_stream(&self, stream: Self::Stream);
    /// A stream that the caller owns, by its handle.
    fn adopt_stream(&self, native: u64) -> Result<Self::Stream>;
    /// A stream that was adopted is not used any more, as often as it was adopted: what is kept for it goes.
    fn release_stream(&self, _: Self::Stream) {}
    /// The handle.
    fn stream_handle(stream: Self::Stream) -> u64;
    /// Whether all that a stream was given is done.
    fn idle(&self, stream: Self::Stream) -> Result<bool>;
    /// Does what the host has to do for streams to go on; whoever polls one calls it. Never blocks.
    fn progress(&self) {}
    /// What a stream is recording now. Streams that record into one graph give the same.
    fn capturing(&self, stream: Self::Stream) -> Result<Option<Recording>>;

    /// An event without timing.
    fn create_event(&self) -> Result<Self::Event>;
    /// Ends an event that was created.
    fn destroy_event(&self, event: Self::Event);
    /// An event that the caller owns, by its handle.
    fn adopt_event(&self, native: u64) -> Result<Self::Event>;
    /// The handle.
    fn event_handle(event: Self::Event) -> u64;
    /// Records an event.
    fn record(&self, stream: Self::Stream, event: Self::Event) -> Result<()>;
    /// Makes a stream wait for an event's last recording.
    fn wait_event(&self, stream: Self::Stream, event: Self::Event) -> Result<()>;
    /// Whether an event's last recording is reached.
    fn event_done(&self, event: Self::Event) -> Result<bool>;

    /// Copies bytes.
    ///
    /// # Safety
    /// Both ranges are memory that the device reaches, until the stream is done with them; so for all
    /// functions that take addresses.
    unsafe fn copy(&self, stream: Self::Stream, dst: u64, src: u64, bytes: u64) -> Result<()>;
    /// Copies pieces at strides; how many calls it needs is its matter, but see
    /// [`copy_cost`](Self::copy_cost).
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    unsafe fn copy_pieces(&self, stream: Self::Stream, command: &CommandCopy) -> Result<()>;
    /// How many copies to, or from, different devices one call takes that does them at once, on one queue;
    /// 0 if there is no such call.
    fn copies_at_once(&self) -> usize {
        0
    }
    /// Copies of one piece each, to or from different devices, at once: no more than
    /// [`copies_at_once`](Self::copies_at_once).
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    unsafe fn copy_at_once(&self, stream: Self::Stream, commands: &[CommandCopy]) -> Result<()> {
        let _ = (stream, commands);
        Err(Error::unsupported(
            "this runtime copies one after the other",
        ))
    }
    /// Operations that a COPY takes in a queue of the device.
    fn copy_cost(command: &CommandCopy) -> u64;
    /// Whether a reduction of a type can be done.
    fn reduces(&self, dtype: u16, reduction: u16) -> bool;
    /// Operations that a REDUCE takes in a queue of the device.
    fn reduce_cost(_: &CommandReduce) -> u64 {
        1
    }
    /// Reduces.
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    unsafe fn reduce(&self, stream: Self::Stream, command: &CommandReduce) -> Result<()>;
    /// Whether a type can be scaled. Not, unless a runtime says so.
    fn scales(&self, dtype: u16) -> bool {
        let _ = dtype;
        false
    }
    /// Scales: asked only of types that [`scales`](Self::scales) says yes to.
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    unsafe fn scale(&self, stream: Self::Stream, command: &CommandScale) -> Result<()> {
        let _ = stream;
        Err(Error::unsupported(format!(
            "this device does not scale type {}",
            command.dtype
        )))
    }
    /// Writes and waits, in order. What came before a write is visible everywhere when it is.
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    unsafe fn operate(&self, stream: Self::Stream, operations: &[MemoryOperation]) -> Result<()>;
    /// How many steps one kernel does, one after the other: each takes one, or, of [`Step::Check`], two in all with the
    /// wait before it. 0 if there is no such kernel.
    fn steps_at_once(&self) -> usize {
        0
    }
    /// Does steps one after the other in one kernel: no more than [`steps_at_once`](Self::steps_at_once). Copies and
    /// reductions are of one piece, a comparison stands behind the wait for its flag, and nothing is scaled.
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    unsafe fn run_steps(&self, stream: Self::Stream, steps: &[Step]) -> Result<()> {
        let _ = (stream, steps);
        Err(Error::unsupported("this runtime does one step at a time"))
    }
    /// Whether a stream that waits has a kernel on the device, also where no graph is at work.
    fn waits_by_kernel(&self) -> bool {
        false
    }
    /// Whether there are kernels for flags: words are then compared, and batches can be recorded.
    fn has_flag_kernels(&self) -> bool;
    /// Runs a kernel for flags.
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    unsafe fn flag(&self, stream: Self::Stream, kernel: FlagKernel, on: &FlagCommand)
    -> Result<()>;
    /// Whether what is put on streams can be made a graph, and shall be.
    fn graphs(&self) -> bool {
        false
    }
    /// Makes a graph of what `record` puts on this stream, which nobody else uses meanwhile; nothing of it
    /// runs. May block behind all that the process has under way. No other thread's calls are in its way, nor
    /// its calls in theirs.
    fn capture(
        &self,
        stream: Self::Stream,
        record: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Self::Graph> {
        let _ = (stream, record);
        Err(Error::unsupported("this runtime makes no graphs"))
    }
    /// As [`copy`](Self::copy), on a stream that records.
    ///
    /// # Safety
    /// As [`copy`](Self::copy), until what is recorded runs no more.
    unsafe fn record_copy(
        &self,
        stream: Self::Stream,
        dst: u64,
        src: u64,
        bytes: u64,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.copy(stream, dst, src, bytes) }
    }
    /// Runs operations that lie in memory, as `replay` of `kernels.cpp` in `unisono-kernels` reads them.
    ///
    /// # Safety
    /// As [`copy`](Self::copy), for the table and all that it names.
    unsafe fn replay(&self, stream: Self::Stream, table: u64, count: u64) -> Result<()> {
        let _ = (stream, table, count);
        Err(Error::unsupported("this runtime makes no graphs"))
    }
    /// Runs a graph that is not under way.
    ///
    /// # Safety
    /// As [`copy`](Self::copy), for all that it names.
    unsafe fn launch_graph(&self, stream: Self::Stream, graph: Self::Graph) -> Result<()> {
        let _ = (stream, graph);
        Err(Error::unsupported("this runtime makes no graphs"))
    }
    /// Ends a graph that is not under way. May block as [`capture`](Self::capture) may.
    fn destroy_graph(&self, graph: Self::Graph) {
        let _ = graph;
    }

    /// Fills with zeros.
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    unsafe fn zero(&self, stream: Self::Stream, dst: u64, bytes: u64) -> Result<()>;

    /// Memory of this device, full of anything. May block.
    fn alloc(&self, bytes: u64, exportable: bool) -> Result<Self::Block>;
    /// Memory that another process exported, for this device; once more for each device of this process.
    /// May block.
    fn import(&self, handle: &[u8]) -> Result<Self::Block>;
    /// Lets this device access memory that another device of this process made.
    fn reach(&self, block: &Self::Block) -> Result<()>;
    /// Makes host memory reachable for all devices of the process; `false` if it was so before, by
    /// somebody else, who then ends it. May block.
    ///
    /// # Safety
    /// The range is mapped until [`unregister`](Self::unregister).
    unsafe fn register(&self, host: u64, bytes: u64) -> Result<bool>;
    /// This device's address of registered host memory.
    fn device_address(&self, host: u64) -> Result<u64>;
    /// Ends a registration. May block.
    fn unregister(&self, host: u64);
    /// What the runtime knows of an address that is none of the plugin's own.
    fn foreign(&self, address: u64) -> Result<Option<Foreign>>;
    /// What the runtime knows of a range that its owner says is memory of this device. Runtimes that
    /// cannot tell where memory begins and ends take his word.
    fn foreign_range(&self, base: u64, _bytes: u64) -> Result<Option<Foreign>> {
        self.foreign(base)
    }
    /// Makes finished remote writes visible to this device.
    fn flush_remote_writes(&self) -> Result<()>;
}

/// The graph of a runtime that makes none: there is no such value.
#[derive(Clone, Copy, Debug)]
pub enum NoGraph {}

/// Device memory.
pub trait Block: Send + Sync {
    /// Its first byte, for commands.
    fn base(&self) -> u64;
    /// Its size: at least what was asked for.
    fn bytes(&self) -> u64;
    /// What another process's [`Runtime::import`] takes; 96 bytes at most.
    ///
    /// # Errors
    /// Unsupported if it was not made for that.
    fn export(&self) -> Result<Vec<u8>>;
    /// A dma-buf of it, as a descriptor of the caller's.
    ///
    /// # Errors
    /// Unsupported where the driver has no such thing.
    fn dmabuf(&self, offset: u64, bytes: u64) -> Result<OwnedFd> {
        Err(Error::unsupported(format!(
            "{bytes} bytes at {:#x} cannot be exported as a dma-buf",
            self.base() + offset
        )))
    }
}

/// Memory of the user's.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// What it is.
    pub view: MemoryView,
}

/// A write to memory or a wait for it, done by a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOperation {
    /// Store a number that a later write tells of.
    Word {
        /// Where, a multiple of 8.
        address: u64,
        /// What.
        value: u64,
    },
    /// Store a number.
    Write {
        /// Where, a multiple of 8.
        address: u64,
        /// What.
        value: u64,
    },
    /// Until what lies there is not behind a number, cyclically.
    Wait {
        /// Where, a multiple of 8.
        address: u64,
        /// The number.
        value: u64,
    },
}

/// Kernels for flags: see `kernels.cpp` of `unisono-kernels`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagKernel {
    /// Compares words behind a wait.
    Check,
    /// SIGNAL with its counter in memory.
    Signal,
    /// WAIT with its counter in memory.
    Wait,
}

/// What a kernel for flags works on, as it is laid out there.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlagCommand {
    /// The flag line.
    pub flag: u64,
    /// The counter; of signal and wait.
    pub counter: u64,
    /// Words to write or to expect.
    pub words: [u64; 3],
    /// The counter's value; of check.
    pub value: u64,
    /// Where other words go.
    pub found: u64,
    /// The number that goes with them.
    pub command: u64,
    /// 1: with words.
    pub flags: u64,
}

/// A descriptor of another process's, which stays open there.
///
/// # Errors
/// If the process is gone, is not this one's to look into, or has no such descriptor.
pub fn open_descriptor(pid: u32, descriptor: i32) -> Result<OwnedFd> {
    let gone = |error: std::io::Error| {
        let what = format!(
            "cannot take descriptor {descriptor} of process {pid} (is it alive, of the same user, \
             and may its memory be looked at?)"
        );
        Error::system(Status::Peer, &what, &error)
    };
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| Error::invalid(format!("{pid} is no process")))?;
    let process = pidfd_open(process, PidfdFlags::empty()).map_err(|e| gone(e.into()))?;
    // SAFETY: plain numbers; the descriptor that comes is new, and this process's.
    unsafe {
        let call = libc::SYS_pidfd_getfd;
        let found = libc::syscall(call, process.as_raw_fd(), descriptor, 0);
        if found < 0 {
            return Err(gone(std::io::Error::last_os_error()));
        }
        Ok(OwnedFd::from_raw_fd(found as i32))
    }
}

/// When a process started, in clock ticks since boot: another with its number differs.
///
/// # Errors
/// If it is gone.
pub fn start_time(pid: u32) -> Result<u64> {
    let gone = |error: std::io::Error| {
        let what = format!("cannot read /proc/{pid}/stat (is it alive?)");
        Error::system(Status::Peer, &what, &error)
    };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(gone)?;
    // The name in parentheses may hold anything; start time is the 20th field after it.
    stat.rsplit_once(") ")
        .and_then(|(_, fields)| fields.split(' ').nth(19))
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| gone(std::io::ErrorKind::InvalidData.into()))
}

/// Where a stream tells of other words than expected: see [`Line`].
impl FlagCommand {
    pub(crate) fn on(line: &Line) -> Self {
        Self {
            found: line.found_address(),
            ..Self::default()
        }
    }
}
