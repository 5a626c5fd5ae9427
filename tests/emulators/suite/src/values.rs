//! Elements in a device's memory.
#![allow(unsafe_code, reason = "copies between memory by address")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use unisono::Element;
use unisono::hal::{Batch, Device, Memory, MemoryKind, MemoryRequest, Queue, State};

/// Bytes copied in and out so far.
static COPIED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// A buffer of device memory, and pinned memory beside it.
pub struct Values<T> {
    device: Device,
    memory: Memory,
    staging: Memory,
    len: usize,
    elements: std::marker::PhantomData<T>,
}

impl<T: Element> Values<T> {
    /// Zeros.
    ///
    /// # Panics
    /// If the device has no such memory; so for all here.
    #[must_use]
    pub fn new(device: &Device, len: usize) -> Self {
        let bytes = (len * size_of::<T>()).max(1) as u64;
        let memory = |kind| {
            let request = MemoryRequest::new(kind, bytes).align(256);
            device.alloc(&request).expect("memory")
        };
        Self {
            device: device.clone(),
            memory: memory(MemoryKind::Data),
            staging: memory(MemoryKind::Staging),
            len,
            elements: std::marker::PhantomData,
        }
    }

    /// The device's address.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.memory.base()
    }

    /// Bytes that this process has copied to devices and from them by such buffers.
    #[must_use]
    pub fn copied() -> [u64; 2] {
        COPIED.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Fills it.
    pub fn write(&self, values: &[T]) {
        assert_eq!(values.len(), self.len);
        let to = self.staging.host_ptr().expect("staging that the CPU sees");
        // SAFETY: staging of as many bytes, which no copy uses now.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr().cast(), to, self.bytes()) };
        self.copy(self.memory.base(), self.staging.base());
        COPIED[0].fetch_add(self.bytes() as u64, Ordering::Relaxed);
    }

    /// What it holds.
    #[must_use]
    pub fn read(&self) -> Vec<T> {
        self.copy(self.staging.base(), self.memory.base());
        COPIED[1].fetch_add(self.bytes() as u64, Ordering::Relaxed);
        let from = self.staging.host_ptr().expect("staging that the CPU sees");
        let mut out = Vec::with_capacity(self.len);
        // SAFETY: as many elements, any bits of which are values; the vector has room for them.
        unsafe {
            std::ptr::copy_nonoverlapping(from.cast(), out.as_mut_ptr(), self.len);
            out.set_len(self.len);
        }
        out
    }

    fn copy(&self, dst: u64, src: u64) {
        let mut stream = self.device.stream(0).expect("a stream");
        // SAFETY: memory of this buffer, which waits for the copy.
        let mut batch = unsafe { Batch::new() };
        batch.copy(dst, src, self.bytes() as u64);
        let end = Instant::now() + Duration::from_secs(30);
        while !batch.is_empty() {
            stream.submit(&mut batch).expect("a copy");
        }
        while stream.poll(1 << 20).expect("a poll").state != State::Idle {
            assert!(Instant::now() < end, "a copy takes too long");
            std::thread::yield_now();
        }
    }
}
