//! The driver as `unisono-plugin-accelerator` wants it.
#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUevent, CUfunction, CUstream, cudaError_enum as C};
use unisono_kernels::parameters::{COPIES, Copies, Pieces, Reduce, STEPS, Scale, Steps, Table};
use unisono_kernels::{STEPS_THREADS, THREADS, TYPES, blocks};
use unisono_plugin::abi::{CommandCopy, CommandReduce, CommandScale};
use unisono_plugin::{DeviceId, Error, Recording, Result};
use unisono_plugin_accelerator::{
    FlagCommand, FlagKernel, Foreign, MemoryOperation, Process, Runtime, Step,
};

use crate::api::{Api, BatchOperation};
use crate::block::CudaBlock;
use crate::device::Opened;
use crate::error::{check, error};
use crate::facts::Flush;
use crate::foreign;
use crate::graph::{self, Handle};
use crate::kernels::Kernels;
use crate::params::Options;

/// Kinds of operations in a batch of the driver's.
const WAIT_64: u64 = 4;
const WRITE_64: u64 = 5;
/// Operations that the driver takes at once.
const BATCH: usize = 256;
/// `CU_EVENT_DISABLE_TIMING`.
const NO_TIMING: u32 = 2;
/// `CU_MEMHOSTREGISTER_PORTABLE`, `_DEVICEMAP`.
const PORTABLE_MAPPED: u32 = 3;

/// The driver for one device.
#[derive(Debug)]
pub struct CudaRuntime {
    device: Arc<Opened>,
    kernels: Kernels,
    /// Short steps are done together.
    together: bool,
    /// None where there are none, or none are wanted.
    graphs: Option<graph::Functions>,
}

/// A stream of the driver's.
#[derive(Clone, Copy, Debug)]
pub struct CudaStream(CUstream);

/// An event of the driver's.
#[derive(Clone, Copy, Debug)]
pub struct CudaEvent(CUevent);

/// A graph of the driver's, ready to run.
#[derive(Clone, Copy, Debug)]
pub struct CudaGraph(Handle);

// SAFETY: handles of the driver's, usable from any thread.
unsafe impl Send for CudaStream {}
// SAFETY: as above.
unsafe impl Sync for CudaStream {}
// SAFETY: as above.
unsafe impl Send for CudaGraph {}
// SAFETY: as above.
unsafe impl Sync for CudaGraph {}
// SAFETY: as above.
unsafe impl Send for CudaEvent {}
// SAFETY: as above.
unsafe impl Sync for CudaEvent {}

static PROCESS: Process<CudaRuntime> = Process::new();

impl CudaRuntime {
    pub(crate) fn open(device: Opened, options: Options) -> Result<Self> {
        if !device.facts.stream_memory {
            return Err(Error::unsupported(format!(
                "streams of {} cannot write and wait for 64-bit numbers in memory: a newer driver \
                 or device is needed",
                device.facts.info.name
            )));
        }
        let kernels = device.context.with(Kernels::load)?;
        Ok(Self {
            graphs: (options.graphs)
                .then(|| graph::Functions::of(device.api))
                .flatten(),
            together: options.together,
            device: Arc::new(device),
            kernels,
        })
    }

    fn with<T>(&self, call: impl FnOnce(&Api) -> Result<T>) -> Result<T> {
        self.device.context.with(call)
    }

    /// Launches a kernel on `bytes` a row.
    ///
    /// # Safety
    /// `argument` is the kernel's parameter, and the addresses in it are good.
    unsafe fn launch<T>(
        &self,
        stream: CudaStream,
        kernel: CUfunction,
        (blocks, rows, threads): (u32, u32, u32),
        argument: &T,
    ) -> Result<()> {
        let mut parameters = [ptr::from_ref(argument).cast_mut().cast::<c_void>()];
        self.with(|api| {
            // SAFETY: the caller's promise; the driver copies the parameter before it returns.
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
                    parameters.as_mut_ptr(),
                    ptr::null_mut(),
                )
            };
            check(api, "cuLaunchKernel", code)
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

/// Steps as the kernel takes them.
fn together(steps: &[Step]) -> Steps {
    let mut all = Steps::default();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Memory(MemoryOperation::Wait { address, value }) => {
                // Where a comparison is next it waits, too.
                if !matches!(steps.get(at + 1), Some(Step::Check(_))) {
                    all.wait(*address, *value);
                }
            }
            Step::Memory(MemoryOperation::Word { address, value }) => all.word(*address, *value),
            Step::Memory(MemoryOperation::Write { address, value }) => all.flag(*address, *value),
            Step::Check(on) => all.expect(on.flag, on.value, on.words, on.found, on.command),
            Step::Copy(copy) => all.copy(copy),
            Step::Reduce(reduce) => all.reduce(reduce),
            // None is given.
            Step::Scale(_) => {}
        }
    }
    all
}

// SAFETY: addresses are the driver's, and what it frees is freed by the blocks' drop; streams are asked
// by `cuStreamQuery`.
unsafe impl Runtime for CudaRuntime {
    const NAME: &'static str = "cuda";
    const ALIGN: u64 = 256;
    type Stream = CudaStream;
    type Event = CudaEvent;
    type Block = CudaBlock;
    type Graph = CudaGraph;

    fn process() -> &'static Process<Self> {
        &PROCESS
    }

    fn id(&self) -> DeviceId {
        self.device.facts.info.id
    }

    fn create_stream(&self, priority: i64) -> Result<CudaStream> {
        let _mode = self.relaxed()?;
        self.device.create_stream(priority).map(CudaStream)
    }

    fn destroy_stream(&self, stream: CudaStream) {
        let _mode = self.relaxed();
        let destroyed = self.with(|api| {
            // SAFETY: created by this, and used by nobody any more.
            check(api, "cuStreamDestroy", unsafe {
                (api.stream_destroy)(stream.0)
            })
        });
        drop(destroyed);
    }

    fn adopt_stream(&self, native: u64) -> Result<CudaStream> {
        let stream = ptr::with_exposed_provenance_mut(native as usize);
        let mut context = ptr::null_mut();
        self.with(|api| {
            // SAFETY: the caller's stream, by the contract; a handle that is none is refused.
            let code = unsafe { (api.stream_context)(stream, &raw mut context) };
            check(api, "the stream to wrap: cuStreamGetCtx", code)
        })?;
        if context != self.device.context.raw() {
            return Err(Error::invalid(
                "the stream is not of this device's primary context",
            ));
        }
        Ok(CudaStream(stream))
    }

    fn stream_handle(stream: CudaStream) -> u64 {
        stream.0.expose_provenance() as u64
    }

    fn idle(&self, stream: CudaStream) -> Result<bool> {
        self.device.is_idle(stream.0)
    }

    fn capturing(&self, stream: CudaStream) -> Result<Option<Recording>> {
        self.with(|api| graph::capturing(api, stream.0))
    }

    fn create_event(&self) -> Result<CudaEvent> {
        let mut event = ptr::null_mut();
        self.with(|api| {
            // SAFETY: writes a handle.
            let code = unsafe { (api.event_create)(&raw mut event, NO_TIMING) };
            check(api, "cuEventCreate", code)
        })?;
        Ok(CudaEvent(event))
    }

    fn destroy_event(&self, event: CudaEvent) {
        let destroyed = self.with(|api| {
            // SAFETY: created by this, and used by nobody any more.
            check(api, "cuEventDestroy", unsafe {
                (api.event_destroy)(event.0)
            })
        });
        drop(destroyed);
    }

    fn adopt_event(&self, native: u64) -> Result<CudaEvent> {
        let event = CudaEvent(ptr::with_exposed_provenance_mut(native as usize));
        self.event_done(event)?;
        Ok(event)
    }

    fn event_handle(event: CudaEvent) -> u64 {
        event.0.expose_provenance() as u64
    }

    fn record(&self, stream: CudaStream, event: CudaEvent) -> Result<()> {
        self.with(|api| {
            // SAFETY: living handles.
            check(api, "cuEventRecord", unsafe {
                (api.event_record)(event.0, stream.0)
            })
        })
    }

    fn wait_event(&self, stream: CudaStream, event: CudaEvent) -> Result<()> {
        self.with(|api| {
            // SAFETY: living handles.
            let code = unsafe { (api.stream_wait_event)(stream.0, event.0, 0) };
            check(api, "cuStreamWaitEvent", code)
        })
    }

    fn event_done(&self, event: CudaEvent) -> Result<bool> {
        self.with(|api| {
            // SAFETY: a living handle; one that is none is refused.
            match unsafe { (api.event_query)(event.0) } {
                0 => Ok(true),
                600 => Ok(false),
                code => Err(error(api, "cuEventQuery", code)),
            }
        })
    }

    unsafe fn copy(&self, stream: CudaStream, dst: u64, src: u64, bytes: u64) -> Result<()> {
        self.with(|api| {
            // SAFETY: the caller's promise.
            let code = unsafe { (api.copy)(dst, src, bytes as usize, stream.0) };
            check(api, "cuMemcpyAsync", code)
        })
    }

    unsafe fn copy_pieces(&self, stream: CudaStream, command: &CommandCopy) -> Result<()> {
        let pieces = Pieces::from(command);
        let grid = self.grid(command.bytes, command.repeat);
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { self.launch(stream, self.kernels.copy, grid, &pieces) }
    }

    fn copies_at_once(&self) -> usize {
        COPIES
    }

    unsafe fn copy_at_once(&self, stream: CudaStream, commands: &[CommandCopy]) -> Result<()> {
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

    unsafe fn reduce(&self, stream: CudaStream, command: &CommandReduce) -> Result<()> {
        let kernel = self.kernels.reduction(command.dtype, command.reduction);
        let kernel = kernel.ok_or_else(|| Error::unsupported("no such reduction"))?;
        if command.elements == 0 {
            return Ok(());
        }
        let reduce = Reduce::from(command);
        let (_, size) = TYPES[usize::from(command.dtype) - 1];
        let grid = self.grid(command.elements * size, command.repeat);
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { self.launch(stream, kernel, grid, &reduce) }
    }

    fn scales(&self, dtype: u16) -> bool {
        self.kernels.scale(dtype).is_some()
    }

    unsafe fn scale(&self, stream: CudaStream, command: &CommandScale) -> Result<()> {
        let kernel = self.kernels.scale(command.dtype);
        let kernel = kernel.ok_or_else(|| Error::unsupported("no such type"))?;
        if command.elements == 0 {
            return Ok(());
        }
        let scale = Scale::from(command);
        let (_, size) = TYPES[usize::from(command.dtype) - 1];
        let grid = self.grid(command.elements * size, command.repeat);
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { self.launch(stream, kernel, grid, &scale) }
    }

    unsafe fn operate(&self, stream: CudaStream, operations: &[MemoryOperation]) -> Result<()> {
        let mut batch: [BatchOperation; BATCH] = [[0; 6]; BATCH];
        self.with(|api| {
            for operations in operations.chunks(BATCH) {
                for (to, operation) in batch.iter_mut().zip(operations) {
                    *to = match *operation {
                        MemoryOperation::Word { address, value }
                        | MemoryOperation::Write { address, value } => {
                            [WRITE_64, address, value, 0, 0, 0]
                        }
                        MemoryOperation::Wait { address, value } => {
                            [WAIT_64, address, value, 0, 0, 0]
                        }
                    };
                }
                let count = operations.len() as u32;
                // SAFETY: as many operations; the caller's promise. The driver copies them.
                let code = unsafe { (api.batch)(stream.0, count, batch.as_mut_ptr(), 0) };
                check(api, "cuStreamBatchMemOp", code)?;
            }
            Ok(())
        })
    }

    fn steps_at_once(&self) -> usize {
        if self.together { STEPS } else { 0 }
    }

    unsafe fn run_steps(&self, stream: CudaStream, steps: &[Step]) -> Result<()> {
        let (kernel, all) = (self.kernels.steps, together(steps));
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { self.launch(stream, kernel, (1, 1, STEPS_THREADS), &all) }
    }

    fn has_flag_kernels(&self) -> bool {
        true
    }

    unsafe fn flag(&self, stream: CudaStream, kernel: FlagKernel, on: &FlagCommand) -> Result<()> {
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
        stream: CudaStream,
        record: &mut dyn FnMut() -> Result<()>,
    ) -> Result<CudaGraph> {
        let graphs = self.graphs.ok_or_else(graph::none)?;
        let made = self.with(|api| graphs.capture(api, stream.0, record));
        made.map(CudaGraph)
    }

    unsafe fn replay(&self, stream: CudaStream, table: u64, count: u64) -> Result<()> {
        let table = Table { at: table, count };
        // SAFETY: the kernel's parameter; the caller's promise.
        unsafe { self.launch(stream, self.kernels.replay, (1, 1, 1), &table) }
    }

    unsafe fn launch_graph(&self, stream: CudaStream, graph: CudaGraph) -> Result<()> {
        let graphs = self.graphs.ok_or_else(graph::none)?;
        // SAFETY: made by `capture`; the caller's promise.
        self.with(|api| unsafe { graphs.launch(api, graph.0, stream.0) })
    }

    fn destroy_graph(&self, graph: CudaGraph) {
        let Some(graphs) = self.graphs else { return };
        // SAFETY: made by `capture`, and used by nobody any more.
        let destroyed = self.with(|api| unsafe { graphs.destroy(api, graph.0) });
        // A device that is lost has none.
        drop(destroyed);
    }

    unsafe fn zero(&self, stream: CudaStream, dst: u64, bytes: u64) -> Result<()> {
        self.with(|api| {
            // SAFETY: the caller's promise.
            let code = unsafe { (api.fill)(dst, 0, bytes as usize, stream.0) };
            check(api, "cuMemsetD8Async", code)
        })
    }

    fn alloc(&self, bytes: u64, exportable: bool) -> Result<CudaBlock> {
        let _mode = self.relaxed()?;
        CudaBlock::alloc(&self.device, bytes, exportable)
    }

    fn import(&self, handle: &[u8]) -> Result<CudaBlock> {
        let _mode = self.relaxed()?;
        CudaBlock::import(&self.device, handle)
    }

    fn reach(&self, block: &CudaBlock) -> Result<()> {
        block.reach(&self.device)
    }

    unsafe fn register(&self, host: u64, bytes: u64) -> Result<bool> {
        let _mode = self.relaxed()?;
        let at = ptr::with_exposed_provenance_mut(host as usize);
        self.with(|api| {
            // SAFETY: the caller keeps it mapped.
            let code = unsafe { (api.register)(at, bytes as usize, PORTABLE_MAPPED) };
            if code == C::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED as u32 {
                return Ok(false);
            }
            check(
                api,
                &format!("registering {bytes} bytes: cuMemHostRegister"),
                code,
            )?;
            Ok(true)
        })
    }

    fn device_address(&self, host: u64) -> Result<u64> {
        let (at, mut address) = (ptr::with_exposed_provenance_mut(host as usize), 0);
        self.with(|api| {
            // SAFETY: writes an address; memory that is not registered is refused.
            let code = unsafe { (api.host_address)(&raw mut address, at, 0) };
            check(api, "cuMemHostGetDevicePointer", code)
        })?;
        Ok(address)
    }

    fn unregister(&self, host: u64) {
        let _mode = self.relaxed();
        let at = ptr::with_exposed_provenance_mut(host as usize);
        let ended = self.with(|api| {
            // SAFETY: registered by this, and used by nobody any more.
            check(api, "cuMemHostUnregister", unsafe { (api.unregister)(at) })
        });
        // A device that is lost has ended it already.
        drop(ended);
    }

    fn foreign(&self, address: u64) -> Result<Option<Foreign>> {
        self.with(|api| Ok(foreign::at(api, &self.device.ids, address)))
    }

    fn flush_remote_writes(&self) -> Result<()> {
        match (self.device.facts.flush, self.device.api.flush) {
            (Flush::Nothing, _) => Ok(()),
            (Flush::Call, Some(flush)) => self.with(|api| {
                // SAFETY: the current context's writes, to its own device.
                check(api, "cuFlushGPUDirectRDMAWrites", unsafe { flush(0, 100) })
            }),
            _ => Err(Error::unsupported(
                "this device has no flush of remote writes",
            )),
        }
    }
}

impl Drop for CudaRuntime {
    fn drop(&mut self) {
        let unloaded = self.with(|api| {
            self.kernels.unload(api);
            Ok(())
        });
        drop(unloaded);
    }
}
