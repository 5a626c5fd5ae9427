//! The runtime as `unisono-plugin-accelerator` wants it.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unisono_plugin::abi::{CommandCopy, CommandReduce, CommandScale, reduction};
use unisono_plugin::{DeviceId, Error, MemoryView, Place as Seen, Recording, Result};
use unisono_plugin_accelerator::{
    FlagCommand, FlagKernel, Foreign, MemoryOperation, NoGraph, Process, Runtime,
};

use crate::api::{Api, Handle, PointerAttributes, code, kind};
use crate::block::AscendBlock;
use crate::device::Opened;
use crate::error::check;
use crate::fold::{self, Native, Step};
use crate::lane::Raw;
use crate::places::{self, Place};
use crate::work::{self, Work};

/// `ACL_EVENT_SYNC`: streams can wait for it.
const SYNC: u32 = 1;

/// The runtime for one device.
#[derive(Debug)]
pub struct AscendRuntime {
    device: Arc<Opened>,
    ids: Vec<DeviceId>,
    /// Memory for reductions, by stream.
    scratch: Mutex<HashMap<usize, AscendBlock>>,
    /// How often streams of callers' are wrapped.
    adopted: Mutex<HashMap<usize, u64>>,
    /// Types that the runtime turned out not to reduce: bits.
    refused: AtomicU32,
}

/// A stream of the runtime's.
#[derive(Clone, Copy, Debug)]
pub struct AscendStream(Raw);

/// An event of the runtime's.
#[derive(Clone, Copy, Debug)]
pub struct AscendEvent(Raw);

static PROCESS: Process<AscendRuntime> = Process::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AscendRuntime {
    pub(crate) fn new(device: Opened, ids: Vec<DeviceId>) -> Self {
        Self {
            device: Arc::new(device),
            ids,
            scratch: Mutex::default(),
            adopted: Mutex::default(),
            refused: AtomicU32::new(0),
        }
    }

    /// Whether streams write and wait for numbers in host memory themselves.
    pub(crate) fn has_values(&self) -> bool {
        self.device.values
    }

    fn with<T>(&self, call: impl FnOnce(&Api) -> Result<T>) -> Result<T> {
        self.device.with(call)
    }

    fn place(&self, address: u64) -> Place {
        places::place(self.device.number(), address)
    }

    /// Whether the device copies between two places by itself, and as what.
    fn direction(&self, dst: u64, src: u64) -> Option<i32> {
        let pinned = Place::Host { pinned: true };
        match (self.place(dst), self.place(src)) {
            (Place::Near, from) if from == pinned => Some(kind::HOST_TO_DEVICE),
            (to, Place::Near) if to == pinned => Some(kind::DEVICE_TO_HOST),
            (to, from) if !to.is_host() && !from.is_host() => Some(kind::DEVICE_TO_DEVICE),
            _ => None,
        }
    }

    fn enqueue(
        &self,
        stream: AscendStream,
        dst: u64,
        src: u64,
        bytes: u64,
        kind: i32,
    ) -> Result<()> {
        let (dst, src, bytes) = (dst as Handle, (src as Handle).cast_const(), bytes as usize);
        self.with(|api| {
            // SAFETY: the caller's promise.
            let code = unsafe { (api.copy)(dst, bytes, src, bytes, kind, stream.0.handle()) };
            check("aclrtMemcpyAsync", code)
        })
    }

    fn work(&self, stream: AscendStream, work: Work) -> Result<()> {
        self.device.attendant.work(stream.0.handle(), work)
    }

    /// Scratch memory of a stream's.
    fn scratch(&self, stream: AscendStream) -> Result<u64> {
        use unisono_plugin_accelerator::Block;
        let mut scratch = lock(&self.scratch);
        let key = stream.0.0;
        if let Some(block) = scratch.get(&key) {
            return Ok(block.base());
        }
        let block = AscendBlock::alloc(&self.device, fold::SCRATCH, false)?;
        let base = block.base();
        scratch.insert(key, block);
        Ok(base)
    }

    /// What the runtime calls a reduction, unless it has refused the type.
    fn native(&self, command: &CommandReduce) -> Option<Native> {
        let native = fold::native(command.dtype, command.reduction)?;
        let refused = self.refused.load(Ordering::Relaxed) & 1 << native.dtype != 0;
        (command.divisor == 0 && !refused).then_some(native)
    }

    fn step(&self, stream: AscendStream, native: &Native, step: Step) -> Result<()> {
        match step {
            Step::Copy { dst, src, bytes } => match self.direction(dst, src) {
                Some(kind) => self.enqueue(stream, dst, src, bytes, kind),
                None => self.work(stream, Work::Copy(plain(dst, src, bytes))),
            },
            Step::Fold { dst, src, bytes } => {
                let (dst, src) = (dst as Handle, (src as Handle).cast_const());
                self.with(|api| {
                    let (kind, dtype) = (native.kind, native.dtype);
                    let stream = stream.0.handle();
                    // SAFETY: memory of this device, by the caller's promise. It counts bytes.
                    let code = unsafe {
                        (api.reduce)(dst, src, bytes, kind, dtype, stream, ptr::null_mut())
                    };
                    check("aclrtReduceAsync", code)
                })
            }
        }
    }

    /// The memory of the device that holds an address, as far as the runtime tells.
    fn range(&self, address: u64) -> Option<(u64, u64)> {
        let ask = self.device.api.address_range?;
        let (mut base, mut bytes): (Handle, usize) = (ptr::null_mut(), 0);
        self.with(|_| {
            // SAFETY: writes an address and a number; memory that is none is refused.
            let code = unsafe { ask(address as Handle, &raw mut base, &raw mut bytes) };
            check("aclrtMemGetAddressRange", code)
        })
        .ok()?;
        Some((base as u64, bytes as u64))
    }

    /// The device whose memory lies at an address.
    fn owner(&self, address: u64) -> Option<u32> {
        let ask = self.device.api.pointer?;
        let mut found = PointerAttributes::default();
        self.with(|_| {
            // SAFETY: writes a struct; memory that is none is refused.
            let code = unsafe { ask((address as Handle).cast_const(), &raw mut found) };
            check("aclrtPointerGetAttributes", code)
        })
        .ok()?;
        (found.place == 1).then_some(found.device)
    }

    fn view(&self, base: u64, bytes: u64, owner: u32) -> Foreign {
        let id = self.ids.get(owner as usize).copied();
        Foreign {
            view: MemoryView {
                place: Seen::Device,
                base,
                host: 0,
                bytes,
                generation: 0,
                device: id.unwrap_or_default(),
            },
        }
    }
}

/// A COPY of one piece.
fn plain(dst: u64, src: u64, bytes: u64) -> CommandCopy {
    CommandCopy {
        dst,
        src,
        bytes,
        repeat: 1,
        ..CommandCopy::zeroed()
    }
}

// SAFETY: addresses are the runtime's, and what it frees is freed by the blocks' drop; host memory has
// its own address. Streams are asked by `aclrtStreamQuery`, and whether the attendant is done.
unsafe impl Runtime for AscendRuntime {
    const NAME: &'static str = "ascend";
    const ALIGN: u64 = 64;
    type Stream = AscendStream;
    type Event = AscendEvent;
    type Block = AscendBlock;
    /// Not used: only late releases of the runtime record streams (`aclmdlRI`).
    type Graph = NoGraph;

    fn process() -> &'static Process<Self> {
        &PROCESS
    }

    fn id(&self) -> DeviceId {
        self.device.facts.info.id
    }

    fn create_stream(&self, priority: i64) -> Result<AscendStream> {
        let stream = self.device.create_stream(priority)?;
        Ok(AscendStream(Raw::of(stream)))
    }

    fn destroy_stream(&self, stream: AscendStream) {
        drop(lock(&self.scratch).remove(&stream.0.0));
        self.device.destroy_stream(stream.0.handle());
    }

    fn adopt_stream(&self, native: u64) -> Result<AscendStream> {
        let stream = AscendStream(Raw(native as usize));
        // A handle that is none is refused; one of another device, too.
        self.device.is_idle(stream.0.handle())?;
        *lock(&self.adopted).entry(stream.0.0).or_default() += 1;
        Ok(stream)
    }

    fn release_stream(&self, stream: AscendStream) {
        let mut adopted = lock(&self.adopted);
        let count = adopted.entry(stream.0.0).or_default();
        *count = count.saturating_sub(1);
        if *count == 0 {
            adopted.remove(&stream.0.0);
            drop(lock(&self.scratch).remove(&stream.0.0));
            self.device.attendant.forget(stream.0.handle());
        }
    }

    fn stream_handle(stream: AscendStream) -> u64 {
        stream.0.0 as u64
    }

    fn idle(&self, stream: AscendStream) -> Result<bool> {
        self.device.is_idle(stream.0.handle())
    }

    fn progress(&self) {
        self.device.attendant.progress();
    }

    fn capturing(&self, _: AscendStream) -> Result<Option<Recording>> {
        Ok(None)
    }

    fn create_event(&self) -> Result<AscendEvent> {
        let mut event: Handle = ptr::null_mut();
        self.with(|api| {
            // SAFETY: writes a handle.
            let code = unsafe { (api.event_create)(&raw mut event, SYNC) };
            check("aclrtCreateEventExWithFlag", code)
        })?;
        Ok(AscendEvent(Raw::of(event)))
    }

    fn destroy_event(&self, event: AscendEvent) {
        let destroyed = self.with(|api| {
            // SAFETY: created by this, and used by nobody any more.
            check("aclrtDestroyEvent", unsafe {
                (api.event_destroy)(event.0.handle())
            })
        });
        drop(destroyed);
    }

    fn adopt_event(&self, native: u64) -> Result<AscendEvent> {
        let event = AscendEvent(Raw(native as usize));
        self.event_done(event)?;
        Ok(event)
    }

    fn event_handle(event: AscendEvent) -> u64 {
        event.0.0 as u64
    }

    fn record(&self, stream: AscendStream, event: AscendEvent) -> Result<()> {
        self.with(|api| {
            // SAFETY: living handles.
            check("aclrtRecordEvent", unsafe {
                (api.event_record)(event.0.handle(), stream.0.handle())
            })
        })
    }

    fn wait_event(&self, stream: AscendStream, event: AscendEvent) -> Result<()> {
        self.with(|api| {
            // SAFETY: living handles.
            check("aclrtStreamWaitEvent", unsafe {
                (api.stream_wait_event)(stream.0.handle(), event.0.handle())
            })
        })
    }

    fn event_done(&self, event: AscendEvent) -> Result<bool> {
        let mut status = 0;
        self.with(|api| {
            // SAFETY: a living handle; one that is none is refused. Writes a number, 1 if reached.
            check("aclrtQueryEventStatus", unsafe {
                (api.event_query)(event.0.handle(), &raw mut status)
            })
        })?;
        Ok(status == 1)
    }

    unsafe fn copy(&self, stream: AscendStream, dst: u64, src: u64, bytes: u64) -> Result<()> {
        match self.direction(dst, src) {
            Some(kind) => self.enqueue(stream, dst, src, bytes, kind),
            None => self.work(stream, Work::Copy(plain(dst, src, bytes))),
        }
    }

    unsafe fn copy_pieces(&self, stream: AscendStream, command: &CommandCopy) -> Result<()> {
        let Some(kind) = self.direction(command.dst, command.src) else {
            return self.work(stream, Work::Copy(*command));
        };
        for piece in 0..command.repeat {
            let dst = command.dst + piece * command.dst_stride;
            let src = command.src + piece * command.src_stride;
            self.enqueue(stream, dst, src, command.bytes, kind)?;
        }
        Ok(())
    }

    fn copy_cost(command: &CommandCopy) -> u64 {
        command.repeat
    }

    fn reduces(&self, dtype: u16, reduction: u16) -> bool {
        work::kernel(dtype, reduction).is_some()
    }

    fn reduce_cost(command: &CommandReduce) -> u64 {
        fold::cost(command)
    }

    unsafe fn reduce(&self, stream: AscendStream, command: &CommandReduce) -> Result<()> {
        if command.elements == 0 {
            return Ok(());
        }
        let Some(native) = self.native(command) else {
            return self.work(stream, Work::Reduce(*command));
        };
        let folded = fold::steps(
            command,
            native.bytes,
            |address| self.place(address),
            || self.scratch(stream),
            |step| self.step(stream, &native, step),
        );
        match folded {
            // Refused at its first fold, before which nothing but the result was touched.
            Err(error) if error.vendor_code() == i64::from(code::NOT_SUPPORTED) => {
                self.refused.fetch_or(1 << native.dtype, Ordering::Relaxed);
                self.work(stream, Work::Reduce(*command))
            }
            folded => folded,
        }
    }

    fn scales(&self, dtype: u16) -> bool {
        work::kernel(dtype, reduction::PROD).is_some()
    }

    unsafe fn scale(&self, stream: AscendStream, command: &CommandScale) -> Result<()> {
        self.work(stream, Work::Scale(*command))
    }

    unsafe fn operate(&self, stream: AscendStream, operations: &[MemoryOperation]) -> Result<()> {
        let handle = stream.0.handle();
        let (Some(write), Some(wait), true) = (
            self.device.api.value_write,
            self.device.api.value_wait,
            self.device.values,
        ) else {
            return self.device.attendant.operate(handle, operations);
        };
        let at = |host| places::mapped(self.device.number(), host).map(|at| at as Handle);
        self.with(|_| {
            operations
                .iter()
                .try_for_each(|operation| match *operation {
                    MemoryOperation::Word { address, value }
                    | MemoryOperation::Write { address, value } => {
                        // SAFETY: words that the caller keeps until the stream is done with them.
                        let code = unsafe { write(at(address)?, value, 0, handle) };
                        check("aclrtValueWrite", code)
                    }
                    // SAFETY: as above. 0: until what is there is not less.
                    MemoryOperation::Wait { address, value } => check("aclrtValueWait", unsafe {
                        wait(at(address)?, value, 0, handle)
                    }),
                })
        })
    }

    fn has_flag_kernels(&self) -> bool {
        false
    }

    unsafe fn flag(&self, _: AscendStream, kernel: FlagKernel, _: &FlagCommand) -> Result<()> {
        Err(Error::unsupported(format!(
            "this device has no kernels for flags ({kernel:?})"
        )))
    }

    unsafe fn zero(&self, stream: AscendStream, dst: u64, bytes: u64) -> Result<()> {
        self.with(|api| {
            let (dst, bytes) = (dst as Handle, bytes as usize);
            // SAFETY: the caller's promise.
            let code = unsafe { (api.fill)(dst, bytes, 0, bytes, stream.0.handle()) };
            check("aclrtMemsetAsync", code)
        })
    }

    fn alloc(&self, bytes: u64, exportable: bool) -> Result<AscendBlock> {
        AscendBlock::alloc(&self.device, bytes, exportable)
    }

    fn import(&self, handle: &[u8]) -> Result<AscendBlock> {
        AscendBlock::import(&self.device, handle)
    }

    fn reach(&self, block: &AscendBlock) -> Result<()> {
        block.reach(&self.device)
    }

    unsafe fn register(&self, host: u64, bytes: u64) -> Result<bool> {
        Ok(places::register(&self.device, host, bytes))
    }

    fn device_address(&self, host: u64) -> Result<u64> {
        // Commands name host memory by its own address. Where this device reaches none, its attendant
        // does.
        places::reach(&self.device, host)?;
        Ok(host)
    }

    fn unregister(&self, host: u64) {
        places::unregister(host);
    }

    fn foreign(&self, address: u64) -> Result<Option<Foreign>> {
        let found = self.range(address).zip(self.owner(address));
        Ok(found.map(|((base, bytes), owner)| self.view(base, bytes, owner)))
    }

    fn foreign_range(&self, base: u64, bytes: u64) -> Result<Option<Foreign>> {
        if let Some(found) = self.foreign(base)? {
            return Ok(Some(found));
        }
        Ok(self.owner(base).map(|owner| self.view(base, bytes, owner)))
    }

    fn flush_remote_writes(&self) -> Result<()> {
        Err(Error::unsupported(
            "no network card writes to this device's memory: it is staged through the host's",
        ))
    }
}

impl Drop for AscendRuntime {
    fn drop(&mut self) {
        // Before the streams' device goes.
        lock(&self.scratch).clear();
    }
}
