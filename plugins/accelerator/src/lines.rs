//! Pinned cache lines: where a stream tells its host how far it came.
//!
//! They are pieces of pages that are registered once, as registering blocks behind pending work.
#![allow(
    unsafe_code,
    reason = "words of registered memory, which a device writes too"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use unisono_plugin::Result;

use crate::mapping::Mapping;
use crate::{Runtime, fork};

const PAGE: u64 = 64 << 10;

/// The words of a line.
#[repr(C)]
#[derive(Debug, Default)]
struct Words {
    /// Commands that a stream has done; or 1 if a gate is open.
    done: AtomicU64,
    /// The number of a WAIT that found other words, 0 if none did.
    found: AtomicU64,
    words: [AtomicU64; 3],
    reserved: [AtomicU64; 3],
}

/// A piece of a registered page, given back when dropped.
#[derive(Debug)]
pub(crate) struct Piece {
    host: u64,
    device: u64,
    free: Arc<Free>,
}

/// Pieces that nobody has: their addresses for the CPU and for the device.
type Free = Mutex<Vec<(u64, u64)>>;

/// Pieces of one size, of one device.
#[derive(Debug)]
pub(crate) struct Pieces {
    size: u64,
    free: Arc<Free>,
    pages: Mutex<Vec<Mapping>>,
}

impl Pieces {
    /// With a first page of pieces of `size` bytes, a power of two.
    pub(crate) fn new<R: Runtime>(runtime: &R, size: u64) -> Result<Self> {
        let this = Self::empty(size);
        this.grow(runtime)?;
        Ok(this)
    }

    /// So many pieces, or a few more, for [`take_ready`](Self::take_ready): no page is registered later.
    pub(crate) fn ready<R: Runtime>(runtime: &R, size: u64, count: u64) -> Result<Self> {
        let this = Self::empty(size);
        for _ in 0..(count * size).div_ceil(PAGE) {
            this.grow(runtime)?;
        }
        Ok(this)
    }

    fn empty(size: u64) -> Self {
        Self {
            size,
            free: Arc::default(),
            pages: Mutex::default(),
        }
    }

    #[allow(unsafe_code, reason = "registers pages that it keeps")]
    fn grow<R: Runtime>(&self, runtime: &R) -> Result<()> {
        let page = Mapping::private(PAGE)?;
        let host = page.address();
        // SAFETY: the pages are kept until `close` has ended the registration.
        unsafe { runtime.register(host, PAGE) }?;
        let device = runtime.device_address(host)?;
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let offsets = (0..PAGE).step_by(self.size as usize);
        free.extend(offsets.map(|offset| (host + offset, device + offset)));
        drop(free);
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.push(page);
        Ok(())
    }

    /// A piece, all zero.
    pub(crate) fn take<R: Runtime>(&self, runtime: &R) -> Result<Piece> {
        loop {
            if let Some(piece) = self.take_ready() {
                return Ok(piece);
            }
            // Others may take the whole new page meanwhile.
            self.grow(runtime)?;
        }
    }

    /// A piece, all zero, if one is free: nothing is registered for it.
    pub(crate) fn take_ready(&self) -> Option<Piece> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let (host, device) = free.pop()?;
        drop(free);
        let piece = Piece {
            host,
            device,
            free: Arc::clone(&self.free),
        };
        for word in (host..host + self.size).step_by(8) {
            // SAFETY: a piece of a registered page, whose words nobody else uses.
            unsafe { AtomicU64::from_ptr(word as usize as *mut u64) }.store(0, Ordering::Relaxed);
        }
        Some(piece)
    }

    /// Whether a piece is free.
    pub(crate) fn is_any_ready(&self) -> bool {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        !free.is_empty()
    }

    /// Ends the registrations; no piece is in use any more.
    pub(crate) fn close<R: Runtime>(&self, runtime: &R) {
        for page in self
            .pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            runtime.unregister(page.address());
        }
    }
}

impl Piece {
    /// Its address for the CPU.
    pub(crate) fn host(&self) -> u64 {
        self.host
    }

    /// Its address for commands.
    pub(crate) fn device(&self) -> u64 {
        self.device
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if !fork::is_child() {
            self.free
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((self.host, self.device));
        }
    }
}

/// A line of its own, given back when dropped.
#[derive(Debug)]
pub struct Line(Piece);

impl Line {
    fn words(&self) -> &Words {
        // SAFETY: atomics in a piece of a page that `Pieces` keeps; a device and its process outlive
        // their lines.
        unsafe { &*(self.0.host as usize as *const Words) }
    }

    /// Bytes of a line.
    pub(crate) const BYTES: u64 = size_of::<Words>() as u64;

    /// A line in a piece of so many bytes, all zero.
    pub(crate) fn new(piece: Piece) -> Self {
        Self(piece)
    }

    /// The first word's address for commands.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.device
    }

    /// Where a kernel tells of other words, for commands.
    pub(crate) fn found_address(&self) -> u64 {
        self.0.device + 8
    }

    /// Commands done, or whether a gate is open.
    pub(crate) fn done(&self) -> u64 {
        self.words().done.load(Ordering::Acquire)
    }

    /// Opens a gate.
    pub(crate) fn open(&self) {
        self.words().done.store(1, Ordering::Release);
    }

    /// Puts 16 bytes at its start, for a copy.
    pub(crate) fn put(&self, bytes: &[u8; 16]) {
        let (low, high) = bytes.split_at(8);
        let number = |half: &[u8]| half.try_into().map_or(0, u64::from_ne_bytes);
        self.words().done.store(number(low), Ordering::Release);
        self.words().found.store(number(high), Ordering::Release);
    }

    /// The 16 bytes at its start, after a copy.
    pub(crate) fn get(&self) -> [u8; 16] {
        let Words { done, found, .. } = self.words();
        let halves = [done, found].map(|half| half.load(Ordering::Acquire).to_ne_bytes());
        let mut out = [0; 16];
        out[..8].copy_from_slice(&halves[0]);
        out[8..].copy_from_slice(&halves[1]);
        out
    }

    /// The number of the first WAIT that found other words, and these.
    pub(crate) fn found(&self) -> Option<(u64, [u64; 3])> {
        let Words { found, words, .. } = self.words();
        let number = found.load(Ordering::Acquire);
        let words = [0, 1, 2].map(|i| words[i].load(Ordering::Relaxed));
        (number != 0).then_some((number, words))
    }
}
