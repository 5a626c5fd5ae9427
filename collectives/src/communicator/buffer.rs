//! Buffers that belong to the library: what the stream forms of the collectives take.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use unisono_hal::{Memory, MemoryKind, MemoryRequest};

use super::Communicator;
use super::asked::Span;
use crate::Element;
use crate::error::{Error, Result};

/// Memory for `len` elements on a communicator's device.
///
/// Where the CPU can reach it, it is a slice.
pub struct Buffer<T> {
    memory: Memory,
    len: usize,
    elements: PhantomData<T>,
}

impl Communicator {
    /// Zeroed memory for `len` elements on this communicator's device.
    ///
    /// # Errors
    /// If the device has not enough memory.
    pub fn buffer<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.shared.not_forked()?;
        let bytes = bytes_of::<T>("buffer", len)?;
        let request = MemoryRequest::new(MemoryKind::Data, bytes)
            .lazy()
            .align(4096);
        Ok(Buffer {
            memory: self.device().alloc(&request)?,
            len,
            elements: PhantomData,
        })
    }
}

/// Bytes of `len` elements, at least 1; no more than a slice may have.
pub(super) fn bytes_of<T>(call: &'static str, len: usize) -> Result<u64> {
    let bytes = len
        .checked_mul(size_of::<T>())
        .filter(|bytes| isize::try_from(*bytes).is_ok());
    bytes
        .map(|bytes| bytes.max(1) as u64)
        .ok_or_else(|| Error::invalid(call, format!("{len} elements are too many")))
}

impl<T> Buffer<T> {
    /// The address, as this communicator's device sees it.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.memory.base()
    }

    /// Elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// As an end of a call.
    pub(super) fn span(&self) -> Span {
        Span {
            address: self.memory.base(),
            len: self.len,
            size: size_of::<T>(),
        }
    }

    /// The memory, to keep it alive.
    pub(super) fn memory(&self) -> Memory {
        self.memory.clone()
    }

    fn host(&self) -> *mut T {
        self.memory
            .host_ptr()
            .expect("this device's memory is not visible to the CPU; copy it instead")
            .cast()
    }
}

#[allow(unsafe_code, reason = "a slice of memory that the plugin allocated")]
impl<T: Element> Deref for Buffer<T> {
    type Target = [T];

    /// # Panics
    /// If the device's memory is not visible to the CPU.
    fn deref(&self) -> &[T] {
        // SAFETY: the memory holds `len` elements, was zeroed when made (every element type is
        // valid when zero), and is aligned to 4096; no call is using it, since a started call
        // takes the buffer.
        unsafe { std::slice::from_raw_parts(self.host(), self.len) }
    }
}

#[allow(unsafe_code, reason = "a slice of memory that the plugin allocated")]
impl<T: Element> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`; `&mut self` excludes other borrows.
        unsafe { std::slice::from_raw_parts_mut(self.host(), self.len) }
    }
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} elements)", self.len)
    }
}
