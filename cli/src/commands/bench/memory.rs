//! Memory on a communicator's device, as bytes of this process.

#![allow(unsafe_code, reason = "the device's memory as a slice")]

use anyhow::{Result, bail};
use unisono::hal::{Memory, MemoryKind, MemoryRequest};
use unisono::{Communicator, Window};

/// A buffer of the bench.
pub enum Block {
    /// Ordinary memory of the device.
    Plain(Memory),
    /// Memory that the peers can reach.
    Window(Window<u8>),
}

impl Block {
    /// Zeroed memory. With `window` every rank must ask for as much.
    pub fn new(communicator: &Communicator, bytes: u64, window: bool) -> Result<Self> {
        if window {
            return Ok(Self::Window(communicator.alloc(bytes.max(1) as usize)?));
        }
        let request = MemoryRequest::new(MemoryKind::Data, bytes.max(1)).align(4096);
        let memory = communicator.device().alloc(&request)?;
        if memory.host_ptr().is_none() {
            bail!(
                "the memory of {} cannot be reached by the processor, which this bench needs to \
                 fill and check it",
                communicator.device().info().name
            );
        }
        Ok(Self::Plain(memory))
    }

    /// The address, as the device sees it.
    pub fn address(&self) -> u64 {
        match self {
            Self::Plain(memory) => memory.base(),
            Self::Window(window) => window.address(),
        }
    }

    /// Whether peers reach it directly.
    pub fn is_direct(&self) -> bool {
        matches!(self, Self::Window(window) if window.is_direct())
    }

    /// The first bytes. No call may be using them.
    pub fn bytes(&self, len: u64) -> &[u8] {
        match self {
            Self::Plain(memory) => {
                let (start, len) = self.checked(memory, len);
                // SAFETY: the memory lives as long as `self` and holds `len` bytes, zeroed when
                // made; calls of this bench are complete before they return, so nothing writes it.
                unsafe { std::slice::from_raw_parts(start, len) }
            }
            Self::Window(window) => &window[..len as usize],
        }
    }

    /// The first bytes, to write. No call may be using them.
    pub fn bytes_mut(&mut self, len: u64) -> &mut [u8] {
        if let Self::Window(window) = self {
            return &mut window[..len as usize];
        }
        let Self::Plain(memory) = &*self else {
            return &mut [];
        };
        let (start, len) = self.checked(memory, len);
        // SAFETY: as in `bytes`; `&mut self` excludes other slices.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    fn checked(&self, memory: &Memory, len: u64) -> (*mut u8, usize) {
        assert!(len <= memory.len(), "{len} of {} bytes", memory.len());
        let start = memory.host_ptr().unwrap_or(std::ptr::dangling_mut());
        (start, len as usize)
    }
}
