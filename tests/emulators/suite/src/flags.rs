//! Flags and counters of a test's own.
#![allow(unsafe_code, reason = "looks at words of memory that devices write")]

use std::sync::atomic::{AtomicU64, Ordering};

use unisono::hal::{Device, Memory, MemoryKind, MemoryRequest};

/// Bytes of a line.
const LINE: u64 = 64;

/// Eight lines of a device's signal memory, as peers map it.
#[derive(Debug)]
pub struct Flags(Memory);

impl Flags {
    /// All zero.
    ///
    /// # Panics
    /// If the device has no such memory; so for all here.
    #[must_use]
    pub fn new(device: &Device) -> Self {
        let request = MemoryRequest::new(MemoryKind::Signal, 8 * LINE).exportable();
        Self(device.alloc(&request).expect("flags"))
    }

    /// As [`new`](Self::new), which no other process can map.
    #[must_use]
    pub fn private(device: &Device) -> Self {
        let request = MemoryRequest::new(MemoryKind::Signal, 8 * LINE);
        Self(device.alloc(&request).expect("flags"))
    }

    /// Where a line lies.
    #[must_use]
    pub fn line(&self, number: u64) -> u64 {
        self.0.base() + number * LINE
    }

    /// The first word of a line.
    #[must_use]
    pub fn value(&self, number: u64) -> u64 {
        let at = self.0.host_ptr().expect("flags that the CPU sees");
        // SAFETY: a word of a line, accessed atomically by all.
        let word = unsafe { AtomicU64::from_ptr(at.add((number * LINE) as usize).cast()) };
        word.load(Ordering::Acquire)
    }
}
