//! Counts of bytes, by where they came from and went to, and by what moved them.
//!
//! They lie in a file that all processes of a job map, so a test sees the sum.
#![allow(unsafe_code, reason = "a file of atomics, mapped")]

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, ftruncate, memfd_create, openat};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Where bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In a device's memory.
    Device(u32),
    /// In the host's.
    Host,
}

/// What moved bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// A copy.
    Copy,
    /// A kernel that computes or copies.
    Kernel,
    /// A write or wait of a stream, or a kernel that does as much.
    Flag,
}

/// Devices and the host.
const PLACES: usize = 65;
const MOVERS: usize = 3;
const BYTES: usize = PLACES * PLACES * MOVERS * 8;

/// The counts of one job.
#[derive(Debug)]
pub struct Traffic {
    counts: *const AtomicU64,
}

// SAFETY: a mapping of atomics.
unsafe impl Send for Traffic {}
// SAFETY: as above.
unsafe impl Sync for Traffic {}

impl Place {
    const fn index(self) -> usize {
        match self {
            Self::Device(device) => device as usize % (PLACES - 1),
            Self::Host => PLACES - 1,
        }
    }
}

impl Traffic {
    /// Counts in a file, made if it is not there; or of this process alone.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(path: Option<&Path>) -> io::Result<Self> {
        let file: OwnedFd = match path {
            Some(path) => openat(
                CWD,
                path,
                OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC,
                Mode::RUSR | Mode::WUSR,
            )?,
            None => memfd_create("traffic", MemfdFlags::CLOEXEC)?,
        };
        ftruncate(&file, BYTES as u64)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the kernel finds room, as long as the file now is.
        let at = unsafe {
            mmap(
                ptr::null_mut(),
                BYTES,
                protection,
                MapFlags::SHARED,
                file,
                0,
            )
        }?;
        Ok(Self {
            counts: at.cast_const().cast(),
        })
    }

    fn count(&self, from: Place, to: Place, mover: Mover) -> &AtomicU64 {
        let index = (from.index() * PLACES + to.index()) * MOVERS + mover as usize;
        // SAFETY: below the number of counts, which are mapped as long as `self`.
        unsafe { &*self.counts.add(index) }
    }

    /// Counts bytes.
    pub fn add(&self, from: Place, to: Place, mover: Mover, bytes: u64) {
        self.count(from, to, mover)
            .fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes so far.
    #[must_use]
    pub fn bytes(&self, from: Place, to: Place, mover: Mover) -> u64 {
        self.count(from, to, mover).load(Ordering::Relaxed)
    }

    /// Bytes of data so far: of copies and kernels, without flags.
    #[must_use]
    pub fn data(&self, from: Place, to: Place) -> u64 {
        self.bytes(from, to, Mover::Copy) + self.bytes(from, to, Mover::Kernel)
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's alone.
        let _ = unsafe { munmap(self.counts.cast_mut().cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_in_a_file() {
        let path = std::env::temp_dir().join(format!("unisono-traffic-{}", std::process::id()));
        let (a, b) = (
            Traffic::open(Some(&path)).unwrap(),
            Traffic::open(Some(&path)).unwrap(),
        );
        a.add(Place::Device(1), Place::Host, Mover::Copy, 5);
        b.add(Place::Device(1), Place::Host, Mover::Kernel, 7);
        b.add(Place::Device(1), Place::Device(63), Mover::Copy, 1);
        assert_eq!(a.data(Place::Device(1), Place::Host), 12);
        assert_eq!(a.data(Place::Host, Place::Device(1)), 0);
        std::fs::remove_file(path).unwrap();
    }
}
