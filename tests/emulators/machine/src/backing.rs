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

    /// Zeros a range. Whole pages of a large one are given back to the system, which is no work where nothing was written.
    pub(crate) fn zero(&self, offset: u64, bytes: u64) {
        let end = offset + bytes;
        assert!(end <= self.bytes, "{offset} + {bytes} of {}", self.bytes);
        let (first, last) = (offset.next_multiple_of(PAGE).min(end), end / PAGE * PAGE);
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let punched = last >= first + FILLED as u64
            && fallocate(&self.file, flags, first, last - first).is_ok();
        let (first, last) = if punched { (first, last) } else { (end, end) };
        // SAFETY: within the mapping, as was just checked; as racy as any access of a device.
        let write = |from: u64, to: u64| unsafe {
            ptr::write_bytes(self.at.add(from as usize), 0, (to - from) as usize);
        };
        write(offset, first);
        write(last, end);
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        let length = (pages(self.bytes) + PAGE) as usize;
        // SAFETY: the mapping is this one's alone.
        let _ = unsafe { munmap(self.at.cast::<c_void>(), length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = (1 << 20) + 100;

    fn bytes_of(memory: &mut Backing) -> &mut [u8] {
        // SAFETY: mapped as long as it lives, and used by this test alone.
        unsafe { std::slice::from_raw_parts_mut(memory.at(), memory.bytes() as usize) }
    }

    #[test]
    fn what_is_zeroed_is_zero_and_the_rest_stays() {
        let large = FILLED as u64 + 3 * PAGE;
        for (from, to) in [
            (0, BYTES),
            (1, BYTES - 1),
            (PAGE, PAGE + large),
            (PAGE - 1, PAGE + large + 1),
            (5, 6),
            (PAGE - 1, 3 * PAGE + 1),
            (7, 7),
        ] {
            let mut memory = Backing::new(0, BYTES).unwrap();
            bytes_of(&mut memory).fill(7);
            memory.zero(from, to - from);
            for (at, byte) in (0..).zip(bytes_of(&mut memory)) {
                let expected = if (from..to).contains(&at) { 0 } else { 7 };
                assert_eq!(*byte, expected, "{from}..{to}: {at}");
            }
        }
    }

    /// Or each emulated device would keep all the memory that is allocated for it, and write it first.
    #[test]
    fn zeros_where_nobody_wrote_take_no_memory() {
        let memory = Backing::new(0, 64 * BYTES).unwrap();
        memory.zero(0, memory.bytes());
        let kept = fstat(memory.file()).unwrap().st_blocks * 512;
        assert!(kept < 1 << 20, "{kept}");
    }
}
