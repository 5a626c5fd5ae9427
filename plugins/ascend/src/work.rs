//! What only the processor can do: copies of host memory that the device does not reach, and
//! reductions that the runtime has not.
#![allow(unsafe_code, reason = "moves bytes by address; calls the runtime")]

use std::ptr;
use std::sync::{Mutex, PoisonError};

use unisono_plugin::abi::{CommandCopy, CommandReduce, CommandScale, reduction};
use unisono_plugin::{Error, Result};
use unisono_plugin_host::cpu::Isa;
use unisono_plugin_host::reduce::{Dtype, Kernel, Reduction};

use crate::api::{Api, Handle, kind};
use crate::error::check;
use crate::lane::Raw;
use crate::places::{self, Place};

/// Bytes that are moved at once.
const BLOCK: u64 = 1 << 20;
/// How long a step may take: it waits for nobody.
const PATIENCE_MS: i32 = 30_000;

/// Work for the host, whose memory stays until it is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// A COPY.
    Copy(CommandCopy),
    /// A REDUCE.
    Reduce(CommandReduce),
    /// A SCALE.
    Scale(CommandScale),
}

/// Who does it, on a stream of his own.
#[derive(Debug)]
pub(crate) struct Worker {
    api: &'static Api,
    stream: Raw,
    device: i32,
    buffers: Mutex<Option<Buffers>>,
}

/// Memory on the way: made when first needed.
#[derive(Clone, Copy, Debug)]
struct Buffers {
    /// Pinned: two operands and a result.
    host: [Raw; 3],
    /// The device's: the host reaches no memory of other devices.
    device: Raw,
}

/// Whether the processor has a reduction of a type.
pub(crate) fn kernel(dtype: u16, reduction: u16) -> Option<(Kernel, u64)> {
    let (dtype, reduction) = (Dtype::from_code(dtype)?, Reduction::from_code(reduction)?);
    let kernel = Kernel::new(Isa::best(), dtype, reduction)?;
    Some((kernel, dtype.bytes() as u64))
}

impl Worker {
    pub(crate) fn new(api: &'static Api, stream: Raw, device: i32) -> Self {
        Self {
            api,
            stream,
            device,
            buffers: Mutex::default(),
        }
    }

    /// Does it; the context is current.
    pub(crate) fn run(&self, work: &Work) -> Result<()> {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let buffers = match *buffers {
            Some(buffers) => buffers,
            None => *buffers.insert(self.make()?),
        };
        match work {
            Work::Copy(command) => self.copy(&buffers, command),
            Work::Reduce(command) => self.reduce(&buffers, command),
            Work::Scale(command) => self.scale(&buffers, command),
        }
    }

    fn make(&self) -> Result<Buffers> {
        let host = || {
            let mut at: Handle = ptr::null_mut();
            // SAFETY: writes an address.
            let code = unsafe { (self.api.alloc_host)(&raw mut at, BLOCK as usize) };
            check("aclrtMallocHost", code).map(|()| Raw::of(at))
        };
        let mut device: Handle = ptr::null_mut();
        // SAFETY: as above.
        let code = unsafe { (self.api.alloc)(&raw mut device, BLOCK as usize, 0) };
        check("aclrtMalloc", code)?;
        Ok(Buffers {
            host: [host()?, host()?, host()?],
            device: Raw::of(device),
        })
    }

    /// Gives everything back; the context is current.
    pub(crate) fn close(&self) {
        let buffers = self
            .buffers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // SAFETY: made by this, and used by nobody any more.
        unsafe {
            if let Some(buffers) = buffers {
                for host in buffers.host {
                    let _ = (self.api.free_host)(host.handle());
                }
                let _ = (self.api.free)(buffers.device.handle());
            }
            let _ = (self.api.stream_destroy)(self.stream.handle());
        }
    }

    fn copy(&self, buffers: &Buffers, command: &CommandCopy) -> Result<()> {
        for piece in 0..command.repeat {
            let dst = command.dst + piece * command.dst_stride;
            let src = command.src + piece * command.src_stride;
            for (from, bytes) in blocks(command.bytes, 1) {
                self.fetch(buffers, src + from, bytes, buffers.host[0])?;
                self.put(buffers, buffers.host[0], dst + from, bytes)?;
            }
        }
        Ok(())
    }

    fn reduce(&self, buffers: &Buffers, command: &CommandReduce) -> Result<()> {
        let kernel = kernel(command.dtype, command.reduction);
        let (kernel, size) = kernel.ok_or_else(|| Error::unsupported("no such reduction"))?;
        let [near, far, result] = buffers.host;
        for piece in 0..command.repeat {
            let a = command.a + piece * command.a_stride;
            let b = command.b + piece * command.b_stride;
            let dst = command.dst + piece * command.dst_stride;
            for (from, bytes) in blocks(command.elements * size, size) {
                self.fetch(buffers, a + from, bytes, near)?;
                self.fetch(buffers, b + from, bytes, far)?;
                let elements = (bytes / size) as usize;
                // SAFETY: three buffers of this worker's, of at least so many elements.
                unsafe {
                    kernel.run(
                        result.handle().cast(),
                        near.handle().cast_const().cast(),
                        far.handle().cast_const().cast(),
                        elements,
                        command.divisor,
                        false,
                    );
                }
                self.put(buffers, result, dst + from, bytes)?;
            }
        }
        Ok(())
    }

    fn scale(&self, buffers: &Buffers, command: &CommandScale) -> Result<()> {
        let kernel = kernel(command.dtype, reduction::PROD);
        let (kernel, size) = kernel.ok_or_else(|| Error::unsupported("no such product"))?;
        let [operand, _, result] = buffers.host;
        for piece in 0..command.repeat {
            let src = command.src + piece * command.src_stride;
            let dst = command.dst + piece * command.dst_stride;
            for (from, bytes) in blocks(command.elements * size, size) {
                self.fetch(buffers, src + from, bytes, operand)?;
                let elements = (bytes / size) as usize;
                let (to, of) = (result.handle().cast(), operand.handle().cast_const().cast());
                // SAFETY: two buffers of this worker's, of at least so many elements.
                unsafe { kernel.run_with(to, of, &command.factor, elements) };
                self.put(buffers, result, dst + from, bytes)?;
            }
        }
        Ok(())
    }

    /// Bytes of anywhere to a buffer.
    fn fetch(&self, buffers: &Buffers, from: u64, bytes: u64, to: Raw) -> Result<()> {
        let near = match places::place(self.device, from) {
            Place::Host { .. } => {
                // SAFETY: who handed the work over keeps it; the buffer has the room.
                unsafe {
                    ptr::copy_nonoverlapping(from as *const u8, to.handle().cast(), bytes as usize)
                };
                return Ok(());
            }
            Place::Near => from,
            Place::Far => {
                let scratch = buffers.device.0 as u64;
                self.enqueue(scratch, from, bytes, kind::DEVICE_TO_DEVICE)?;
                scratch
            }
        };
        self.enqueue(to.0 as u64, near, bytes, kind::DEVICE_TO_HOST)?;
        self.settle()
    }

    /// Bytes of a buffer to anywhere.
    fn put(&self, buffers: &Buffers, from: Raw, to: u64, bytes: u64) -> Result<()> {
        match places::place(self.device, to) {
            Place::Host { .. } => {
                // SAFETY: as in `fetch`.
                unsafe {
                    ptr::copy_nonoverlapping(
                        from.handle().cast_const().cast(),
                        to as *mut u8,
                        bytes as usize,
                    )
                };
                return Ok(());
            }
            Place::Near => self.enqueue(to, from.0 as u64, bytes, kind::HOST_TO_DEVICE)?,
            Place::Far => {
                let scratch = buffers.device.0 as u64;
                self.enqueue(scratch, from.0 as u64, bytes, kind::HOST_TO_DEVICE)?;
                self.enqueue(to, scratch, bytes, kind::DEVICE_TO_DEVICE)?;
            }
        }
        self.settle()
    }

    fn enqueue(&self, dst: u64, src: u64, bytes: u64, kind: i32) -> Result<()> {
        let (dst, src, bytes) = (dst as Handle, (src as Handle).cast_const(), bytes as usize);
        // SAFETY: memory that its owner keeps until the work is done.
        let code = unsafe { (self.api.copy)(dst, bytes, src, bytes, kind, self.stream.handle()) };
        check("aclrtMemcpyAsync", code)
    }

    fn settle(&self) -> Result<()> {
        // SAFETY: a living stream, on which nothing waits for anybody.
        let code = unsafe { (self.api.stream_synchronize)(self.stream.handle(), PATIENCE_MS) };
        check("aclrtSynchronizeStreamWithTimeout", code)
    }
}

/// Cuts bytes into blocks of whole elements: where each begins, and its length.
fn blocks(bytes: u64, element: u64) -> impl Iterator<Item = (u64, u64)> {
    let block = BLOCK - BLOCK % element;
    (0..bytes)
        .step_by(block as usize)
        .map(move |from| (from, block.min(bytes - from)))
}
