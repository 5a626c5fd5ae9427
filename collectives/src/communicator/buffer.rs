//! Buffers that belong to the library: what the stream forms of the collectives take.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use unisono_hal::{Memory, MemoryKind, MemoryRequest};

use super::Communicator;
use super::asked::Span;
use crate::Element;
use crate::error::{Error, Result};
use crate::transfer::Transfer;

/// Bytes that pass between two devices at once.
const PIECE: usize = 4 << 20;

/// Memory for `len` elements on a communicator's device.
///
/// Where the CPU can reach it, it is a slice; everywhere it can be [read](Self::read) and
/// [written](Self::write).
pub struct Buffer<T> {
    memory: Memory,
    /// Where the CPU does not see the memory.
    transfer: Option<Arc<Transfer>>,
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
            transfer: self.shared.world.transfer.clone(),
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

fn as_long(call: &'static str, len: usize, other: usize) -> Result<()> {
    if len == other {
        return Ok(());
    }
    Err(Error::invalid(
        call,
        format!("{other} elements for memory of {len}"),
    ))
}

/// Copies a slice to memory of as many elements, which no call uses now.
#[allow(unsafe_code, reason = "copies to memory that the plugin allocated")]
pub(super) fn write<T: Element>(
    memory: &Memory,
    transfer: Option<&Transfer>,
    len: usize,
    from: &[T],
) -> Result<()> {
    as_long("write", len, from.len())?;
    let source = from.as_ptr().cast::<u8>();
    match (memory.host_ptr(), transfer) {
        // SAFETY: the memory holds as many elements, of which any bytes are values.
        (Some(to), _) => unsafe {
            unisono_copy::copy(to, source, size_of_val(from));
            Ok(())
        },
        // SAFETY: as above; the copy has ended when this returns.
        (None, Some(transfer)) => unsafe {
            transfer.copy_in(memory.base(), source, size_of_val(from) as u64)
        },
        (None, None) => Err(unseen("write")),
    }
}

/// Copies memory of as many elements, which no call uses now, to a slice.
#[allow(unsafe_code, reason = "copies from memory that the plugin allocated")]
pub(super) fn read<T: Element>(
    memory: &Memory,
    transfer: Option<&Transfer>,
    len: usize,
    to: &mut [T],
) -> Result<()> {
    as_long("read", len, to.len())?;
    let (bytes, target) = (size_of_val(to), to.as_mut_ptr().cast::<u8>());
    match (memory.host_ptr(), transfer) {
        // SAFETY: the memory holds as many elements, of which any bytes are values.
        (Some(from), _) => unsafe {
            unisono_copy::copy(target, from, bytes);
            Ok(())
        },
        // SAFETY: as above; the copy has ended when this returns.
        (None, Some(transfer)) => unsafe { transfer.copy_out(target, memory.base(), bytes as u64) },
        (None, None) => Err(unseen("read")),
    }
}

/// A device that says that the CPU reaches its memory, and gives memory which it does not.
fn unseen(call: &'static str) -> Error {
    Error::Unsupported {
        call,
        why: "the CPU does not see this memory, though its device says that it does".to_owned(),
    }
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

    /// Fills it. Blocks until the elements are there.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are more or fewer elements; what the plugin says.
    pub fn write(&mut self, from: &[T]) -> Result<()>
    where
        T: Element,
    {
        write(&self.memory, self.transfer.as_deref(), self.len, from)
    }

    /// What it holds. Blocks until the elements are here.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are more or fewer elements; what the plugin says.
    pub fn read(&self, to: &mut [T]) -> Result<()>
    where
        T: Element,
    {
        read(&self.memory, self.transfer.as_deref(), self.len, to)
    }

    /// Fills it with another's elements, which may lie on another device of this process, of any
    /// vendor: what no CPU sees passes through a piece of ordinary memory. Blocks until they are there.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    #[allow(unsafe_code, reason = "copies between memory that plugins allocated")]
    pub fn copy_from(&mut self, other: &Self) -> Result<()>
    where
        T: Element,
    {
        as_long("copy_from", self.len, other.len)?;
        if let Some(seen) = other.as_slice() {
            return self.write(seen);
        }
        if let Some(seen) = self.as_mut_slice() {
            return other.read(seen);
        }
        let (Some(out), Some(into)) = (&other.transfer, &self.transfer) else {
            return Err(unseen("copy_from"));
        };
        let bytes = self.len * size_of::<T>();
        let mut passing = vec![0_u8; bytes.min(PIECE)];
        for first in (0..bytes).step_by(PIECE) {
            let piece = &mut passing[..PIECE.min(bytes - first)];
            let (at, length) = (first as u64, piece.len() as u64);
            // SAFETY: both buffers hold so many bytes from there on, and no call uses them, since a
            // started call takes its buffers; both copies have ended when this goes on.
            unsafe {
                out.copy_out(piece.as_mut_ptr(), other.address() + at, length)?;
                into.copy_in(self.address() + at, piece.as_ptr(), length)?;
            }
        }
        Ok(())
    }

    /// The memory, to keep it alive.
    pub(super) fn memory(&self) -> Memory {
        self.memory.clone()
    }
}

#[allow(unsafe_code, reason = "a slice of memory that the plugin allocated")]
impl<T: Element> Buffer<T> {
    /// The elements, where the CPU sees them; elsewhere they are read and written.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[T]> {
        let start = self.memory.host_ptr()?.cast::<T>();
        // SAFETY: the memory holds `len` elements, was zeroed when made (every element type is
        // valid when zero), and is aligned to 4096; no call is using it, since a started call
        // takes the buffer.
        Some(unsafe { std::slice::from_raw_parts(start, self.len) })
    }

    /// As [`as_slice`](Self::as_slice), to write.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        let start = self.memory.host_ptr()?.cast::<T>();
        // SAFETY: as in `as_slice`; `&mut self` excludes other borrows.
        Some(unsafe { std::slice::from_raw_parts_mut(start, self.len) })
    }
}

/// Why there is no slice.
pub(super) const UNSEEN: &str = "the CPU does not see this device's memory: use `read` and `write`";

impl<T: Element> Deref for Buffer<T> {
    type Target = [T];

    /// # Panics
    /// If the device's memory is not visible to the CPU.
    fn deref(&self) -> &[T] {
        self.as_slice().expect(UNSEEN)
    }
}

impl<T: Element> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice().expect(UNSEEN)
    }
}

impl<T> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} elements)", self.len)
    }
}
