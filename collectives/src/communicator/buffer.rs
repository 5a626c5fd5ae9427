//! Buffers that belong to the library: what the stream forms of the collectives take.
//!
//! A started call owns its buffers until it is complete, so nobody can free or change what a device
//! still reads; [`Pending::wait`] gives them back.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use unisono_hal::{Memory, MemoryKind, MemoryRequest};
use unisono_plan::Op as PlanOp;

use super::ops::Ends;
use super::start::Request;
use super::{Communicator, Pending, Work};
use crate::error::{Error, Result};
use crate::{Element, ReduceOp};

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

    /// Starts an all_reduce in place; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::all_reduce`].
    pub fn start_all_reduce<T: Element>(
        &self,
        data: Buffer<T>,
        op: ReduceOp,
    ) -> Result<Pending<Buffer<T>>> {
        let ends = Ends {
            input: data.memory.base(),
            output: data.memory.base(),
        };
        let work = self.start::<T>(PlanOp::AllReduce, data.len, Some(op), ends, &[&data])?;
        Ok(Pending::new(work, data))
    }

    /// Starts an all_gather; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::all_gather`].
    pub fn start_all_gather<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
    ) -> Result<Pending<(Buffer<T>, Buffer<T>)>> {
        fits("start_all_gather", recv.len, send.len, self.size())?;
        let ends = ends(&send, &recv);
        let work = self.start::<T>(PlanOp::AllGather, recv.len, None, ends, &[&send, &recv])?;
        Ok(Pending::new(work, (send, recv)))
    }

    /// Starts a reduce_scatter; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::reduce_scatter`].
    pub fn start_reduce_scatter<T: Element>(
        &self,
        send: Buffer<T>,
        recv: Buffer<T>,
        op: ReduceOp,
    ) -> Result<Pending<(Buffer<T>, Buffer<T>)>> {
        fits("start_reduce_scatter", send.len, recv.len, self.size())?;
        let ends = ends(&send, &recv);
        let op = Some(op);
        let work = self.start::<T>(PlanOp::ReduceScatter, send.len, op, ends, &[&send, &recv])?;
        Ok(Pending::new(work, (send, recv)))
    }

    /// Starts a broadcast; returns at once.
    ///
    /// # Errors
    /// As [`Communicator::broadcast`].
    pub fn start_broadcast<T: Element>(
        &self,
        data: Buffer<T>,
        root: u32,
    ) -> Result<Pending<Buffer<T>>> {
        let ends = ends(&data, &data);
        let work = self.start::<T>(PlanOp::Broadcast { root }, data.len, None, ends, &[&data])?;
        Ok(Pending::new(work, data))
    }

    fn start<T: Element>(
        &self,
        op: PlanOp,
        count: usize,
        reduction: Option<ReduceOp>,
        ends: Ends,
        keep: &[&Buffer<T>],
    ) -> Result<Work> {
        let keep: Vec<Memory> = keep.iter().map(|b| b.memory.clone()).collect();
        let request = Request {
            op,
            count: count as u64,
            dtype: T::TYPE,
            reduction,
            ends,
            deadline: self.shared.world.options.timeouts.op,
        };
        let number = self.shared.start(&request, Some(Box::new(keep)))?;
        Ok(Work::new(self.shared.clone(), number))
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

fn ends<T>(send: &Buffer<T>, recv: &Buffer<T>) -> Ends {
    Ends {
        input: send.memory.base(),
        output: recv.memory.base(),
    }
}

fn fits(call: &'static str, whole: usize, block: usize, ranks: u32) -> Result<()> {
    if block.checked_mul(ranks as usize) == Some(whole) {
        return Ok(());
    }
    Err(Error::invalid(
        call,
        format!("the larger buffer has {whole} elements; {ranks} ranks times {block} are needed"),
    ))
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
