//! Mapped memory: anonymous, or of a memory file, never inherited by a forked child.
#![allow(unsafe_code, reason = "maps and unmaps memory")]

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use unisono_plugin::{Error, Result, Status};

use crate::fork;

/// From this size on, memory whose pages are all wanted at once is asked for in huge pages.
const HUGE: usize = 2 << 20;

/// For ThreadSanitizer alone. The kernel gives an address to a new owner only after the last one
/// has unmapped it, but the sanitizer does not see direct system calls: it would take what the two
/// did there, one after the other, for a race. So an unmapping releases this, and a mapping
/// acquires it. Nothing else may rely on it.
static UNMAPPED: AtomicU64 = AtomicU64::new(0);

/// What to map.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// Zeroed memory of this process alone.
    Anonymous,
    /// A memory file, from its start.
    File(BorrowedFd<'a>),
}

/// A mapping, unmapped when dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    address: *mut c_void,
    length: usize,
}

// SAFETY: it is an address range; who may access it when is the matter of commands and flags.
unsafe impl Send for Mapping {}
// SAFETY: as above: nothing here dereferences through a shared reference without atomics.
unsafe impl Sync for Mapping {}

/// `bytes` rounded up to whole pages.
pub(super) fn whole_pages(bytes: u64) -> Result<usize> {
    let page = rustix::param::page_size();
    usize::try_from(bytes)
        .ok()
        .and_then(|bytes| bytes.checked_next_multiple_of(page))
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| {
            Error::new(
                Status::OutOfMemory,
                format!("{bytes} bytes are more than addresses exist"),
            )
        })
}

fn failed(what: &str, length: usize, errno: rustix::io::Errno) -> Error {
    let status = match errno {
        rustix::io::Errno::NOMEM => Status::OutOfMemory,
        _ => Status::Device,
    };
    Error::system(status, &format!("{what} {length} bytes"), &errno.into())
}

impl Mapping {
    /// Maps `length` bytes (whole pages) at an address that is a multiple of `align` (a power of
    /// two).
    pub(super) fn new(source: Source<'_>, length: usize, align: usize) -> Result<Self> {
        let page = rustix::param::page_size();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: new mappings where the kernel finds room; the fixed one replaces part of the
        // reservation that was just made, and what is cut off is the rest of that reservation.
        let address = unsafe {
            let hint = if align > page {
                Some(Self::reserve(length, align)?)
            } else {
                None
            };
            let (at, fixed) = match hint {
                Some(at) => (at, MapFlags::FIXED),
                None => (ptr::null_mut(), MapFlags::empty()),
            };
            match source {
                Source::Anonymous => mmap_anonymous(
                    at,
                    length,
                    protection,
                    MapFlags::PRIVATE | MapFlags::NORESERVE | fixed,
                ),
                Source::File(fd) => mmap(
                    at,
                    length,
                    protection,
                    MapFlags::SHARED | MapFlags::NORESERVE | fixed,
                    fd,
                    0,
                ),
            }
            .map_err(|errno| failed("cannot map", length, errno))?
        };
        if cfg!(tsan) {
            UNMAPPED.load(Ordering::Acquire);
        }
        let mapping = Self { address, length };
        // SAFETY: the range just mapped.
        unsafe { madvise(address, length, Advice::LinuxDontFork) }
            .map_err(|errno| failed("cannot keep a forked child from", length, errno))?;
        Ok(mapping)
    }

    /// Address space of `length` bytes at a multiple of `align`.
    ///
    /// # Safety
    /// The caller maps over it or unmaps it.
    unsafe fn reserve(length: usize, align: usize) -> Result<*mut c_void> {
        let room = length.checked_add(align).ok_or_else(|| {
            Error::new(
                Status::OutOfMemory,
                format!("no room for an alignment of {align}"),
            )
        })?;
        // SAFETY: a new mapping; what is unmapped are its two ends.
        unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            let start = mmap_anonymous(ptr::null_mut(), room, ProtFlags::empty(), flags)
                .map_err(|errno| failed("cannot reserve", room, errno))?;
            let skipped = start.addr().next_multiple_of(align) - start.addr();
            let aligned = start.byte_add(skipped);
            let cut = |at: *mut c_void, length: usize| {
                if length == 0 {
                    Ok(())
                } else {
                    munmap(at, length)
                }
            };
            cut(start, skipped)
                .and_then(|()| cut(aligned.byte_add(length), align - skipped))
                .map_err(|errno| failed("cannot trim", room, errno))?;
            Ok(aligned)
        }
    }

    /// Its first byte.
    pub(super) fn address(&self) -> *mut u8 {
        self.address.cast()
    }

    /// Makes the first `bytes` present now, in huge pages where that pays. Failure costs speed
    /// alone, so there is none.
    pub(super) fn populate(&self, bytes: usize) {
        let bytes = bytes.min(self.length);
        // SAFETY: the range lies within the mapping; neither advice changes its content.
        unsafe {
            if bytes >= HUGE {
                let _ = madvise(self.address, bytes, Advice::LinuxHugepage);
            }
            let _ = madvise(self.address, bytes, Advice::LinuxPopulateWrite);
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // A forked child has no such mapping; what lies there now is not the plugin's.
        if fork::is_child() {
            return;
        }
        if cfg!(tsan) {
            UNMAPPED.fetch_add(1, Ordering::Release);
        }
        // SAFETY: the range is this mapping's, and its owners are gone.
        let unmapped = unsafe { munmap(self.address, self.length) };
        debug_assert!(
            unmapped.is_ok(),
            "unmapping a mapping of one's own: {unmapped:?}"
        );
    }
}
