//! The runtime as `unisono-plugin-accelerator` wants it.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use unisono_kernels::parameters::{COPIES, Copies, Pieces, Reduce, Scale, Table};
use unisono_kernels::{THREADS, TYPES, blocks};
use unisono_plugin::abi::{CommandCopy, CommandReduce, CommandScale};
use unisono_plugin::{DeviceId, Error, Recording, Result};
use unisono_plugin_accelerator::{
    FlagCommand, FlagKernel, Foreign, MemoryOperation, Process, Runtime,
};

use crate::api::{
    ALREADY_REGISTERED, Api, Handle, INVALID_DIRECTION, INVALID_VALUE, NOT_READY, SUCCESS,
};
use crate::block::RocmBlock;
use crate::device::Opened;
use crate::error::{check, error};
use crate::foreign;
use crate::graph;
use crate::handles::{RocmEvent, RocmGraph, RocmStream};
use crate::kernels::Kernels;
use crate::operate::{Step, steps};
use crate::places;

/// `hipStreamNonBlocking`: ordered with no other stream.
const NON_BLOCKING: u32 = 1;
/// `hipEventDisableTiming`.
const NO_TIMING: u32 = 2;
/// `hipHostRegisterPortable`, `_Mapped`.
const PORTABLE_MAPPED: u32 = 3;
/// `hipMemcpyDefault`.
const ANY_DIRECTION: u32 = 4;
/// `hipMemcpyDeviceToDeviceNoCU`: by the DMA engines.
const BY_DMA: u32 = 1024;
/// Kinds of arguments in a launch's `extra`.
const BUFFER: usize = 1;
const BUFFER_SIZE: usize = 2;
const END: usize = 3;

/// The runtime for one device.
#[derive(Debug)]
pub struct RocmRuntime {
    device: Arc<Opened>,
    kernels: Kernels,
    /// None where there are none, or none are wanted.
    graphs: Option<graph::Functions>,
    /// Copies between devices by DMA; until the runtime says that it does not know them.
    dma: AtomicBool,
}

static PROCESS: Process<RocmRuntime> = Process::new();

fn at(address: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address as usize)
}

impl RocmRuntime {
    pub(crate) fn open(device: Opened) -> Result<Self> {
        let kernels = device.with(Kernels::load)?;
        Ok(Self {
            dma: AtomicBool::new(device.options.dma_copies),
            graphs: (device.options.graphs)
                .then(|| graph::Functions::of(device.api))
                .flatten(),
            device: Arc::new(device),
            kernels,
        })
    }

    fn with<T>(&self, call: impl FnOnce(&Api) -> Result<T>) -> Result<T> {
        self.device.with(call)
    }

    /// Launches a kernel.
    ///
    /// # Safety
    /// `argument` is the kernel's parameter, and the addresses in it are good.
    unsafe fn launch<T>(
        &self,
        stream: RocmStream,
        kernel: Handle,
        (blocks, rows, threads): (u32, u32, u32),
        argument: &T,
    ) -> Result<()> {
        let mut size = size_of::<T>();
        let mut extra: [*mut c_void; 5] = [
            ptr::without_provenance_mut(BUFFER),
            ptr::from_ref(argument).cast_mut().cast(),
            ptr::without_provenance_mut(BUFFER_SIZE),
            (&raw mut size).cast(),
            ptr::without_provenance_mut(END),
        ];
        self.with(|api| {
            // SAFETY: the caller's promise; the runtime copies the parameter before it returns.
            let code = unsafe {
                (api.launch)(
                    kernel,
                    blocks,
                    rows,
                    1,
                    threads,
                    1,
                    1,
                    0,
                    stream.0,
                    ptr::null_mut(),
                    extra.as_mut_ptr(),
                )
            };
            check(api, "hipModuleLaunchKernel", code)
        })
    }

    /// Streams and memory are made and ended at any time, also while the program records.
    fn relaxed(&self) -> Result<Option<graph::Mode>> {
        graph::relaxed(self.device.api)
    }

    fn grid(&self, bytes: u64, repeat: u64) -> (u32, u32, u32) {
        let blocks = blocks(bytes, self.device.facts.processors);
        (blocks, repeat.min(65535) as u32, THREADS)
    }
}

// SAFETY: addresses are the runtime's, and what it frees is freed by the blocks' drop; streams are asked
// by `hipStreamQuery`.
unsafe impl Runtime for RocmRuntime {
    const NAME: &'static str = "rocm";
    const ALIGN: u64 = 256;
    type Stream = RocmStream;
    type Event = RocmEvent;
    type Block = RocmBlock;
    type Graph = RocmGraph;

    fn process() -> &'static Process<Self> {
        &PROCESS
    }

    fn id(&self) -> DeviceId {
        self.device.facts.info.id
    }

    fn create_stream(&self, priority: i64) -> Result<RocmStream> {
        let _mode = self.relaxed()?;
        self.with(|api| {
            let (mut least, mut greatest, mut stream) = (0, 0, ptr::null_mut());
            // SAFETY: writes numbers and a handle. The runtime's priorities are the sooner the lower.
            let code = unsafe {
                let _ = (api.priority_range)(&raw mut least, &raw mut greatest);
                let wanted = i32::try_from(-priority).unwrap_or(0);
                let wanted = wanted.clamp(greatest.min(least), least.max(greatest));
                (api.stream_create)(&raw mut stream, NON_BLOCKING, wanted)
            };
            check(api, "hipStreamCreateWithPriority", code)?;
            Ok(RocmStream(stream))
        })
    }

    fn destroy_stream(&self, stream: RocmStream) {
        let _mode = self.relaxed();
        let destroyed = self.with(|api| {
            // SAFETY: created by this, and used by nobody any more.
            check(api, "hipStreamDestroy", unsafe {
                (api.stream_destroy)(stream.0)
            })
        });
        drop(destroyed);
    }

    fn adopt_stream(&self, native: u64) -> Result<RocmStream> {
        let stream = at(native);
        self.with(|api| {
            let (mut flags, mut device) = (0, self.device.facts.device);
            // SAFETY: the caller's stream, by the contract; a handle that is none is refused.
            let code = unsafe { (api.stream_flags)(stream, &raw mut flags) };
            check(api, "the stream to wrap: hipStreamGetFlags", code)?;
            if let Some(ask) = api.stream_device {
                // SAFETY: a stream, as it has flags.
                let code = unsafe { ask(stream, &raw mut device) };
                check(api, "the stream to wrap: hipStreamGetDevice", code)?;
            }
            if device != self.device.facts.device {
                return Err(Error::invalid("the stream is not of this device"));
            }
            Ok(RocmStream(stream))
        })
    }

    fn stream_handle(stream: RocmStream) -> u64 {
        stream.0.expose_provenance() as u64
    }

    fn idle(&self, stream: RocmStream) -> Result<bool> {
        self.with(|api| {
            // SAFETY: a stream of this device.
            match unsafe { (api.stream_query)(stream.0) } {
                SUCCESS => Ok(true),
                NOT_READY => Ok(false),
                code => Err(error(api, "hipStreamQuery", code)),
            }
        })
    }

    fn capturing(&self, stream: RocmStream) -> Result<Option<Recording>> {
        self.with(|api| graph::capturing(api, stream.0))
    }

    fn create_event(&self) -> Result<RocmEvent> {
        let mut event = ptr::null_mut();
        self.with(|api| {
            // SAFETY: writes a handle.
            let code = unsafe { (api.event_create)(&raw mut event, NO_TIMING) };
            check(api, "hipEventCreateWithFlags", code)
        })?;
        Ok(RocmEvent(event))
    }

    fn destroy_event(&self, event: RocmEvent) {
        let destroyed = self.with(|api| {
            // SAFETY: created by this, and used by nobody any more.
            check(api, "hipEventDestroy", unsafe {
                (api.event_destroy)(event.0)
            })
        });
        drop(destroyed);
    }

    fn adopt_event(&self, native: u64) -> Result<RocmEvent> {
        let event = RocmEvent(at(native));
        self.event_done(event)?;
        Ok(event)
    }

    fn event_handle(event: RocmEvent) -> u64 {
        event.0.expose_provenance() as u64
    }

    fn record(&self, stream: RocmStream, event: RocmEvent) -> Result<()> {
        self.with(|api| {
            // SAFETY: living handles.
            check(api, "hipEventRecord", unsafe {
                (api.event_record)(event.0, stream.0)
            })
        })
    }

    fn wait_event(&self, stream: RocmStream, event: RocmEvent) -> Result<()> {
        self.with(|api| {
            // SAFETY: living handles.
            let code = unsafe { (api.stream_wait_event)(stream.0, event.0, 0) };
            check(api, "hipStreamWaitEvent", code)
        })
    }

    fn event_done(&self, event: RocmEvent) -> Result<bool> {
        self.with(|api| {
            // SAFETY: a living handle; one that is none is refused.
            match unsafe { (api.event_query)(event.0) } {
                SUCCESS => Ok(true),
                NOT_READY => Ok(false),
                code => Err(error(api, "hipEventQuery", code)),
            }
        })
    }

    unsafe fn copy(&self, stream: RocmStream, dst: u64, src: u64, bytes: u64) -> Result<()> {
        self.with(|api| {
            // SAFETY: the caller's promise.
            let copy =
                |kind| unsafe { (api.copy)(at(dst), at(src), bytes as usize, kind, stream.0) };
            if self.dma.load(Ordering::Relaxed) && places::apart(dst, src) {
                match copy(BY_DMA) {
                    // Runtimes before ROCm 6 do not know it.
                    INVALID_VALUE | INVALID_DIRECTION => self.dma.store(false, Ordering::Relaxed),
                    code => return check(api, "hipMemcpyAsync", code),
                }
            }
            check(api, "hipMemcpyAsync", copy(ANY_DIRECTION))
        })
    }

    unsafe fn copy_pieces(&self, stream: RocmStream, command: &CommandCopy) -> Result<()> {
        let grid = self.grid(command.bytes, command.repeat);
        let pieces = Pieces::from(command);
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { self.launch(stream, self.kernels.copy, grid, &pieces) }
    }

    fn copies_at_once(&self) -> usize {
        COPIES
    }

    unsafe fn copy_at_once(&self, stream: RocmStream, commands: &[CommandCopy]) -> Result<()> {
        let longest = commands.iter().map(|copy| copy.bytes).max().unwrap_or(0);
        let copies = Copies::of(commands);
        let grid = self.grid(longest, copies.count);
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { self.launch(stream, self.kernels.copies, grid, &copies) }
    }

    fn copy_cost(_: &CommandCopy) -> u64 {
        1
    }

    fn reduces(&self, dtype: u16, reduction: u16) -> bool {
        self.kernels.reduction(dtype, reduction).is_some()
    }

    unsafe fn reduce(&self, stream: RocmStream, command: &CommandReduce) -> Result<()> {
        let kernel = self.kernels.reduction(command.dtype, command.reduction);
        let kernel = kernel.ok_or_else(|| Error::unsupported("no such reduction"))?;
        if command.elements == 0 {
            return Ok(());
        }
        let (_, size) = TYPES[usize::from(command.dtype) - 1];
        let grid = self.grid(command.elements * size, command.repeat);
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { self.launch(stream, kernel, grid, &Reduce::from(command)) }
    }

    fn scales(&self, dtype: u16) -> bool {
        self.kernels.scale(dtype).is_some()
    }

    unsafe fn scale(&self, stream: RocmStream, command: &CommandScale) -> Result<()> {
        let kernel = self.kernels.scale(command.dtype);
        let kernel = kernel.ok_or_else(|| Error::unsupported("no such type"))?;
        if command.elements == 0 {
            return Ok(());
        }
        let (_, size) = TYPES[usize::from(command.dtype) - 1];
        let grid = self.grid(command.elements * size, command.repeat);
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { self.launch(stream, kernel, grid, &Scale::from(command)) }
    }

    unsafe fn operate(&self, stream: RocmStream, operations: &[MemoryOperation]) -> Result<()> {
        let by_kernel = self.device.options.write_by_kernel;
        steps(operations, by_kernel, |step| match step {
            &Step::Write { address, value } => self.with(|api| {
                // SAFETY: the caller's promise.
                let code = unsafe { (api.write_value)(stream.0, at(address), value, 0) };
                check(api, "hipStreamWriteValue64", code)
            }),
            Step::Launch(launch) => {
                // SAFETY: the kernel's parameter; the caller's promise.
                unsafe { self.launch(stream, self.kernels.operate, (1, 1, 1), launch) }
            }
        })
    }

    fn waits_by_kernel(&self) -> bool {
        true
    }

    fn has_flag_kernels(&self) -> bool {
        true
    }

    unsafe fn flag(&self, stream: RocmStream, kernel: FlagKernel, on: &FlagCommand) -> Result<()> {
        let kernel = match kernel {
            FlagKernel::Check => self.kernels.check,
            FlagKernel::Signal => self.kernels.signal,
            FlagKernel::Wait => self.kernels.wait,
        };
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { self.launch(stream, kernel, (1, 1, 1), on) }
    }

    fn graphs(&self) -> bool {
        self.graphs.is_some()
    }

    fn capture(
        &self,
        stream: RocmStream,
        record: &mut dyn FnMut() -> Result<()>,
    ) -> Result<RocmGraph> {
        let graphs = self.graphs.ok_or_else(graph::none)?;
        let made = self.with(|api| graphs.capture(api, stream.0, record));
        made.map(RocmGraph)
    }

    /// By the runtime's own choice: what graphs make of a copy that is told to go by DMA no manual says.
    unsafe fn record_copy(&self, stream: RocmStream, dst: u64, src: u64, bytes: u64) -> Result<()> {
        self.with(|api| {
            let (to, bytes) = (at(dst), bytes as usize);
            // SAFETY: the caller's promise.
            let code = unsafe { (api.copy)(to, at(src), bytes, ANY_DIRECTION, stream.0) };
            check(api, "hipMemcpyAsync", code)
        })
    }

    unsafe fn replay(&self, stream: RocmStream, table: u64, count: u64) -> Result<()> {
        let table = Table { at: table, count };
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { self.launch(stream, self.kernels.replay, (1, 1, 1), &table) }
    }

    unsafe fn launch_graph(&self, stream: RocmStream, graph: RocmGraph) -> Result<()> {
        let graphs = self.graphs.ok_or_else(graph::none)?;
        // SAFETY: made by `capture`; the caller's promise.
        self.with(|api| unsafe { graphs.launch(api, graph.0, stream.0) })
    }

    fn destroy_graph(&self, graph: RocmGraph) {
        let Some(graphs) = self.graphs else { return };
        // SAFETY: made by `capture`, and used by nobody any more.
        let destroyed = self.with(|api| unsafe { graphs.destroy(api, graph.0) });
        // A device that is lost has none.
        drop(destroyed);
    }

    unsafe fn zero(&self, stream: RocmStream, dst: u64, bytes: u64) -> Result<()> {
        self.with(|api| {
            // SAFETY: the caller's promise.
            let code = unsafe { (api.fill)(at(dst), 0, bytes as usize, stream.0) };
            check(api, "hipMemsetAsync", code)
        })
    }

    fn alloc(&self, bytes: u64, exportable: bool) -> Result<RocmBlock> {
        let _mode = self.relaxed()?;
        RocmBlock::alloc(&self.device, bytes, exportable)
    }

    fn import(&self, handle: &[u8]) -> Result<RocmBlock> {
        let _mode = self.relaxed()?;
        RocmBlock::import(&self.device, handle)
    }

    fn reach(&self, block: &RocmBlock) -> Result<()> {
        block.reach(&self.device)
    }

    unsafe fn register(&self, host: u64, bytes: u64) -> Result<bool> {
        let _mode = self.relaxed()?;
        self.with(|api| {
            // SAFETY: the caller keeps it mapped.
            let code = unsafe { (api.register)(at(host), bytes as usize, PORTABLE_MAPPED) };
            if code == ALREADY_REGISTERED {
                return Ok(false);
            }
            let what = format!("registering {bytes} bytes: hipHostRegister");
            check(api, &what, code)?;
            Ok(true)
        })
    }

    fn device_address(&self, host: u64) -> Result<u64> {
        let mut address = ptr::null_mut();
        self.with(|api| {
            // SAFETY: writes an address; memory that is not registered is refused.
            let code = unsafe { (api.host_address)(&raw mut address, at(host), 0) };
            check(api, "hipHostGetDevicePointer", code)
        })?;
        Ok(address as u64)
    }

    fn unregister(&self, host: u64) {
        let _mode = self.relaxed();
        let ended = self.with(|api| {
            // SAFETY: registered by this, and used by nobody any more.
            check(api, "hipHostUnregister", unsafe {
                (api.unregister)(at(host))
            })
        });
        // A device that is lost has ended it already.
        drop(ended);
    }

    fn foreign(&self, address: u64) -> Result<Option<Foreign>> {
        self.with(|api| Ok(foreign::at(api, &self.device.ids, address)))
    }

    fn flush_remote_writes(&self) -> Result<()> {
        Err(Error::unsupported(
            "no device outside the runtime writes to this memory: it is not exported as a dma-buf",
        ))
    }
}

impl Drop for RocmRuntime {
    fn drop(&mut self) {
        let unloaded = self.with(|api| {
            self.kernels.unload(api);
            Ok(())
        });
        drop(unloaded);
    }
}
