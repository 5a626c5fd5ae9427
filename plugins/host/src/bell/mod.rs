//! Bells: one per process, which its peers ring after they raised a flag there.
//!
//! A bell is a line of shared memory with the word of [`protocol`]. Its owner sleeps on the word as
//! a futex (shared, not process-private), or, where it must wait for descriptors as well, on a
//! pipe that peers open through `/proc`. A ringer that finds the owner awake makes no system call.
#![allow(unsafe_code, reason = "reads a line in shared memory by its address")]

#[cfg(all(test, loom))]
mod model;
mod peers;
mod protocol;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::futex;
use unisono_plugin::{Error, Result, Status};

use crate::fork;
use crate::memory::BellMemory;
pub(crate) use peers::{PeerBell, import};
use protocol::Sleepers;
pub(crate) use protocol::{FUTEX, PIPE};

/// Bytes of a bell.
pub(crate) const BYTES: u64 = size_of::<Line>() as u64;

/// What peers share.
#[repr(C, align(64))]
struct Line {
    /// The word of the protocol.
    word: AtomicU32,
    /// The owner's number of the pipe that it may sleep on; either end.
    pipe: AtomicI32,
    reserved: [u32; 14],
}

/// This process's bell.
#[derive(Debug)]
pub(crate) struct OwnBell {
    memory: BellMemory,
    sleepers: Mutex<Sleepers>,
    read: OwnedFd,
    write: OwnedFd,
}

static OWN: OnceLock<OwnBell> = OnceLock::new();
static MAKING: Mutex<()> = Mutex::new(());

/// This process's bell, made when first asked for; it lives as long as the process.
pub(crate) fn own() -> Result<&'static OwnBell> {
    if let Some(bell) = OWN.get() {
        return Ok(bell);
    }
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bell) = OWN.get() {
        return Ok(bell);
    }
    let bell = OwnBell::create()?;
    Ok(OWN.get_or_init(|| bell))
}

/// Rings this process's own bell, if it has one and a thread sleeps: for what happens inside it.
pub(crate) fn ring_own() {
    if let Some(bell) = OWN.get()
        && !fork::is_child()
    {
        wake(bell.line(), bell.address());
    }
}

/// After a flag was raised: wakes the process whose bell lies at an address, if it sleeps.
///
/// # Safety
/// The address is that of a bell which this process owns or imported and has not freed.
#[inline]
pub(crate) unsafe fn ring(address: u64) {
    // SAFETY: the caller's promise; all of the line is atomic or never written.
    wake(unsafe { line_at(address) }, address);
}

/// After flags were raised: wakes the processes whose bells lie at these addresses, if they sleep.
/// One fence for all.
///
/// # Safety
/// The addresses are those of bells which this process owns or imported and has not freed.
#[inline]
pub(crate) unsafe fn ring_all(addresses: &[u64]) {
    let lines = || {
        addresses.iter().map(|&address| {
            // SAFETY: the caller's promise; all of the line is atomic or never written.
            let line = unsafe { line_at(address) };
            (address, line)
        })
    };
    <AtomicU32 as protocol::Word>::fence();
    for (address, line) in lines() {
        let modes = protocol::look(&line.word);
        if modes != 0 {
            wake_up(line, address, modes);
        }
    }
}

/// # Safety
/// As for `ring`, for as long as the line is used.
unsafe fn line_at<'a>(address: u64) -> &'a Line {
    // SAFETY: the caller's promise.
    unsafe { &*(address as usize as *const Line) }
}

#[inline]
fn wake(line: &Line, address: u64) {
    let modes = protocol::ring(&line.word);
    if modes != 0 {
        wake_up(line, address, modes);
    }
}

#[cold]
fn wake_up(line: &Line, address: u64, modes: u32) {
    // Neither call can fail in a way that matters: the word is mapped, and a full pipe wakes.
    if modes & FUTEX != 0 {
        let _ = futex::wake(&line.word, futex::Flags::empty(), i32::MAX as u32);
    }
    if modes & PIPE != 0 {
        match OWN.get().filter(|bell| bell.address() == address) {
            Some(bell) => write_byte(bell.write.as_fd()),
            None => peers::with_pipe(address, write_byte),
        }
    }
}

fn write_byte(pipe: BorrowedFd<'_>) {
    let _ = rustix::io::write(pipe, &[1]);
}

fn lock(sleepers: &Mutex<Sleepers>) -> MutexGuard<'_, Sleepers> {
    sleepers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OwnBell {
    fn create() -> Result<Self> {
        let memory = BellMemory::create()?;
        let (read, write) =
            pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(|errno| {
                Error::system(
                    Status::OutOfMemory,
                    "cannot create the bell's pipe",
                    &errno.into(),
                )
            })?;
        let bell = Self {
            memory,
            sleepers: Mutex::default(),
            read,
            write,
        };
        bell.line()
            .pipe
            .store(bell.read.as_raw_fd(), Ordering::Release);
        Ok(bell)
    }

    fn line(&self) -> &Line {
        // SAFETY: the mapping is a page, zeroed, and lives as long as `self`.
        unsafe { line_at(self.address()) }
    }

    /// Where it lies.
    pub(crate) fn address(&self) -> u64 {
        self.memory.address() as u64
    }

    /// The memory that it lies in.
    pub(crate) fn memory(&self) -> &BellMemory {
        &self.memory
    }

    /// Prepares to sleep in a way, unless `ready`. The value that the futex holds meanwhile.
    pub(crate) fn arm(&self, mode: u32, ready: impl FnOnce() -> bool) -> Option<u32> {
        lock(&self.sleepers).arm(&self.line().word, mode, ready)
    }

    /// Ends what [`arm`](Self::arm) began.
    pub(crate) fn leave(&self, mode: u32) {
        let mut sleepers = lock(&self.sleepers);
        if sleepers.leave(&self.line().word, mode) && mode == PIPE {
            // Only the last one empties the pipe: it stays readable until all have seen it.
            let mut bytes = [0; 64];
            while rustix::io::read(&self.read, &mut bytes).is_ok_and(|read| read == bytes.len()) {}
        }
    }

    /// The futex word.
    pub(crate) fn futex(&self) -> u64 {
        self.address()
    }

    /// What is readable after a ring.
    pub(crate) fn pipe(&self) -> i32 {
        self.read.as_raw_fd()
    }
}
