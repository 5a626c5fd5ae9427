//! The bytes behind a device's memory: a memory file, mapped where no device address points.
#![allow(unsafe_code, reason = "maps memory files")]

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, fstat, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::accesses::Accesses;

/// Fills new memory, so that whoever reads it without having written it is found out.
const GARBAGE: u8 = 0xc5;
/// Of memory larger than this only both ends are filled: the rest stays untouched, and free.
const FILLED: usize = 256 << 10;

const PAGE: u64 = 4096;
const MAGIC: u64 = 0x554e_4953_454d_554c;

/// Memory behind device addresses. The file has one page more than the memory, which says what it is
/// to other processes that map it.
#[derive(Debug)]
pub struct Backing {
    file: OwnedFd,
    at: *mut u8,
    bytes: u64,
    owner: u32,
}

/// The last page of the file.
#[repr(C)]
struct Header {
    magic: AtomicU64,
    bytes: AtomicU64,
    owner: AtomicU32,
    alive: AtomicU32,
    accesses: Accesses,
}

// SAFETY: a range of shared memory; the header is atomic, the rest is accessed by emulated devices in
// whatever order their streams say, races included, through raw pointers alone.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE)
}

impl Backing {
    /// New memory of a device, full of garbage.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(owner: u32, bytes: u64) -> io::Result<Self> {
        let file = memfd_create("emulated-device", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, pages(bytes) + PAGE)?;
        let this = Self::map(file, owner, bytes)?;
        let header = this.header();
        header.bytes.store(bytes, Ordering::Relaxed);
        header.owner.store(owner, Ordering::Relaxed);
        header.alive.store(1, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
        let len = bytes as usize;
        let fill = |from: usize, to: usize| {
            // SAFETY: within the mapping, which nobody else knows yet.
            unsafe { ptr::write_bytes(this.at.add(from), GARBAGE, to - from) }
        };
        if len <= FILLED {
            fill(0, len);
        } else {
            fill(0, FILLED / 2);
            fill(len - FILLED / 2, len);
        }
        Ok(this)
    }

    /// Memory that another process made, by its file.
    ///
    /// # Errors
    /// What the system says; invalid data if the file is none of an emulator.
    pub fn open(file: OwnedFd) -> io::Result<Self> {
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        let size = u64::try_from(fstat(&file)?.st_size).map_err(|_| bad())?;
        let data = size.checked_sub(PAGE).filter(|data| *data > 0);
        let mut this = Self::map(file, 0, data.ok_or_else(bad)?)?;
        let header = this.header();
        let bytes = header.bytes.load(Ordering::Relaxed);
        let owner = header.owner.load(Ordering::Relaxed);
        if header.magic.load(Ordering::Acquire) != MAGIC || pages(bytes) + PAGE != size {
            return Err(bad());
        }
        (this.bytes, this.owner) = (bytes, owner);
        Ok(this)
    }

    fn map(file: OwnedFd, owner: u32, bytes: u64) -> io::Result<Self> {
        let length = (pages(bytes) + PAGE) as usize;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel finds room.
        let at = unsafe {
            let at = mmap(ptr::null_mut(), length, protection, flags, &file, 0)?;
            madvise(at, length, Advice::LinuxDontFork)?;
            at
        };
        Ok(Self {
            file,
            at: at.cast(),
            bytes,
            owner,
        })
    }

    fn header(&self) -> &Header {
        // SAFETY: the page behind the data is mapped, aligned, and holds atomics alone.
        unsafe { &*self.at.add(pages(self.bytes) as usize).cast() }
    }

    /// Who is at it now.
    pub(crate) fn accesses(&self) -> &Accesses {
        &self.header().accesses
    }

    /// The secret address of its first byte.
    #[must_use]
    pub const fn at(&self) -> *mut u8 {
        self.at
    }

    /// Its size.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The device that it is memory of.
    #[must_use]
    pub const fn owner(&self) -> u32 {
        self.owner
    }

    /// Its file, for exports.
    #[must_use]
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Whether the process that made it has not freed it.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.header().alive.load(Ordering::Relaxed) != 0
    }

    /// Says to all processes that it was freed.
    pub fn kill(&self) {
        self.header().alive.store(0, Ordering::Relaxed);
    }

    /// Gives zeroed pages back to the system instead of writing zeros; false if they must be written.
    pub(crate) fn punch(&self, offset: u64, bytes: u64) -> bool {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        bytes.is_multiple_of(PAGE)
            && offset.is_multiple_of(PAGE)
            && fallocate(&self.file, flags, offset, bytes).is_ok()
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        let length = (pages(self.bytes) + PAGE) as usize;
        // SAFETY: the mapping is this one's alone.
        let _ = unsafe { munmap(self.at.cast::<c_void>(), length) };
    }
}
