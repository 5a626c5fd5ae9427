//! Device memory, in the ways that the driver has it.
#![allow(unsafe_code, reason = "calls the driver")]

use std::ffi::c_void;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{
    CUdeviceptr, CUipcMemHandle, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType,
    CUmemAllocationProp, CUmemAllocationType, CUmemGenericAllocationHandle, CUmemLocation,
    CUmemLocationType,
};
use unisono_plugin::{Error, Result};
use unisono_plugin_accelerator::{Block, open_descriptor};

use crate::device::{BRIEFLY, Opened, PATIENCE};
use crate::error::check;
use crate::graph;

/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const DESCRIPTOR: u32 = 1;
/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`.
const LAZY_PEER: u32 = 1;
/// First bytes of the two kinds of handles.
const BY_DESCRIPTOR: u8 = 1;
const BY_HANDLE: u8 = 2;

/// Memory of a device.
#[derive(Debug)]
pub struct CudaBlock {
    device: Arc<Opened>,
    base: CUdeviceptr,
    bytes: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// `cuMemAlloc`.
    Plain { exportable: bool },
    /// `cuMemAllocAsync`: freed without waiting for anything.
    Pooled,
    /// `cuMemCreate`, mapped; with a descriptor for others if it is this process's own.
    Virtual { descriptor: Option<OwnedFd> },
    /// `cuIpcOpenMemHandle`.
    Opened,
}

/// Pinned memory on a device, shareable as a descriptor.
fn properties(device: i32, dmabuf: bool) -> CUmemAllocationProp {
    // SAFETY: plain numbers and pointers, for all of which zero is a value.
    let mut properties: CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes =
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = location(device);
    properties.allocFlags.gpuDirectRDMACapable = dmabuf.into();
    properties
}

fn location(device: i32) -> CUmemLocation {
    CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: device,
    }
}

impl CudaBlock {
    /// New memory.
    pub(crate) fn alloc(device: &Arc<Opened>, bytes: u64, exportable: bool) -> Result<Self> {
        if exportable && device.descriptors {
            return Self::make(device, bytes);
        }
        let (mut base, pooled) = (0, !exportable && device.facts.pools);
        let call = if pooled {
            "cuMemAllocAsync"
        } else {
            "cuMemAlloc"
        };
        let what = format!("{bytes} bytes of device memory: {call}");
        let size = size(bytes)?;
        device.context.with(|api| {
            // SAFETY: writes an address. Memory of the pool is used only behind this call, since the
            // stream of the pool is waited for.
            let code = unsafe {
                match api.alloc_async {
                    Some(alloc) if pooled => alloc(&raw mut base, size, device.pool_stream()),
                    _ => (api.alloc)(&raw mut base, size),
                }
            };
            check(api, &what, code)
        })?;
        let kind = if pooled {
            Kind::Pooled
        } else {
            Kind::Plain { exportable }
        };
        let this = Self::of(device, base, bytes, kind);
        if pooled {
            device.settle_pool(PATIENCE)?;
        }
        Ok(this)
    }

    fn of(device: &Arc<Opened>, base: CUdeviceptr, bytes: u64, kind: Kind) -> Self {
        Self {
            device: Arc::clone(device),
            base,
            bytes,
            kind,
        }
    }

    /// Memory apart from its addresses, for others.
    fn make(device: &Arc<Opened>, bytes: u64) -> Result<Self> {
        let properties = properties(device.facts.device, device.facts.dmabuf);
        device.context.with(|api| {
            let mut granule = 0;
            // SAFETY: writes a number.
            let code = unsafe { (api.granularity)(&raw mut granule, &raw const properties, 0) };
            check(api, "cuMemGetAllocationGranularity", code)?;
            let whole = bytes.checked_next_multiple_of(granule.max(1) as u64);
            let whole = size(whole.unwrap_or(u64::MAX))?;
            let mut handle = 0;
            // SAFETY: writes a handle.
            let code = unsafe { (api.make)(&raw mut handle, whole, &raw const properties, 0) };
            check(
                api,
                &format!("{bytes} bytes of device memory: cuMemCreate"),
                code,
            )?;
            let handle = Handle {
                raw: handle,
                device,
            };
            let mut descriptor: i32 = -1;
            // SAFETY: writes a descriptor, which is then this process's.
            let code = unsafe {
                let to = (&raw mut descriptor).cast::<c_void>();
                (api.export)(to, handle.raw, DESCRIPTOR, 0)
            };
            check(api, "cuMemExportToShareableHandle", code)?;
            // SAFETY: just made, and nobody else's.
            let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
            Self::map(device, &handle, whole, Some(descriptor))
        })
    }

    /// Addresses for memory, which this device may access; the context is current.
    fn map(
        device: &Arc<Opened>,
        handle: &Handle<'_>,
        bytes: usize,
        descriptor: Option<OwnedFd>,
    ) -> Result<Self> {
        let (api, mut base) = (device.api, 0);
        // SAFETY: writes an address.
        let code = unsafe { (api.reserve)(&raw mut base, bytes, 0, 0, 0) };
        check(api, "cuMemAddressReserve", code)?;
        // SAFETY: addresses just reserved, and as much memory.
        let code = unsafe { (api.map)(base, bytes, 0, handle.raw, 0) };
        if let Err(error) = check(api, "cuMemMap", code) {
            // SAFETY: reserved above, nothing mapped.
            let _ = unsafe { (api.unreserve)(base, bytes) };
            return Err(error);
        }
        let kind = Kind::Virtual { descriptor };
        let this = Self::of(device, base, bytes as u64, kind);
        this.allow(device)?;
        Ok(this)
    }

    /// Lets a device access this memory; its context is current.
    fn allow(&self, device: &Opened) -> Result<()> {
        let access = CUmemAccessDesc {
            location: location(device.facts.device),
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        let bytes = self.bytes as usize;
        // SAFETY: memory that is mapped.
        let code = unsafe { (device.api.set_access)(self.base, bytes, &raw const access, 1) };
        check(device.api, "cuMemSetAccess", code)
    }

    /// Memory that another process exported.
    pub(crate) fn import(device: &Arc<Opened>, handle: &[u8]) -> Result<Self> {
        let foreign = || Error::invalid("no handle of device memory that this plugin made");
        let (kind, mut rest) = handle.split_first().ok_or_else(foreign)?;
        let bytes = u64::from_le_bytes(take(&mut rest).ok_or_else(foreign)?);
        match *kind {
            BY_DESCRIPTOR => {
                let pid = u32::from_le_bytes(take(&mut rest).ok_or_else(foreign)?);
                let file = i32::from_le_bytes(take(&mut rest).ok_or_else(foreign)?);
                Self::import_descriptor(device, &open_descriptor(pid, file)?, bytes)
            }
            BY_HANDLE => {
                let bytes_of_handle: [u8; 64] = take(&mut rest).ok_or_else(foreign)?;
                Self::open(device, bytes_of_handle, bytes)
            }
            _ => Err(foreign()),
        }
    }

    fn import_descriptor(device: &Arc<Opened>, file: &OwnedFd, bytes: u64) -> Result<Self> {
        let bytes = size(bytes)?;
        device.context.with(|api| {
            let mut raw = 0;
            let from = ptr::without_provenance_mut(file.as_raw_fd() as usize);
            // SAFETY: writes a handle; the descriptor stays open for the call.
            let code = unsafe { (api.import)(&raw mut raw, from, DESCRIPTOR) };
            check(api, "cuMemImportFromShareableHandle", code)?;
            let handle = Handle { raw, device };
            Self::map(device, &handle, bytes, None)
        })
    }

    fn open(device: &Arc<Opened>, handle: [u8; 64], bytes: u64) -> Result<Self> {
        let reserved = handle.map(|byte| byte as _);
        let (handle, mut base) = (CUipcMemHandle { reserved }, 0);
        device.context.with(|api| {
            // SAFETY: writes an address; a handle that is none is refused.
            let code = unsafe { (api.ipc_open)(&raw mut base, handle, LAZY_PEER) };
            check(api, "cuIpcOpenMemHandle", code)
        })?;
        Ok(Self::of(device, base, bytes, Kind::Opened))
    }

    /// Lets another device of this process access it.
    pub(crate) fn reach(&self, from: &Opened) -> Result<()> {
        match self.kind {
            Kind::Virtual { .. } => from.context.with(|_| self.allow(from)),
            Kind::Plain { .. } => from.context.with(|api| {
                // SAFETY: a context that this block's device holds.
                let code = unsafe { (api.enable_peer)(self.device.context.raw(), 0) };
                let already =
                    cudarc::driver::sys::cudaError_enum::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
                if code == already as u32 {
                    return Ok(());
                }
                check(api, "cuCtxEnablePeerAccess", code)
            }),
            Kind::Pooled | Kind::Opened => Err(Error::unsupported(
                "only memory that this process made for others can be reached by its other devices",
            )),
        }
    }
}

/// Memory by its handle, released when what needs it has mapped it. The context is current.
struct Handle<'a> {
    raw: CUmemGenericAllocationHandle,
    device: &'a Opened,
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: held once by this.
        let _ = unsafe { (self.device.api.release)(self.raw) };
    }
}

/// A size for the driver.
fn size(bytes: u64) -> Result<usize> {
    usize::try_from(bytes)
        .ok()
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .ok_or_else(|| {
            Error::new(
                unisono_plugin::Status::OutOfMemory,
                format!("{bytes} bytes are more than any device has"),
            )
        })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

impl Block for CudaBlock {
    fn base(&self) -> u64 {
        self.base
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn export(&self) -> Result<Vec<u8>> {
        match &self.kind {
            Kind::Virtual {
                descriptor: Some(file),
            } => {
                let mut out = vec![BY_DESCRIPTOR];
                out.extend(self.bytes.to_le_bytes());
                out.extend(std::process::id().to_le_bytes());
                out.extend(file.as_raw_fd().to_le_bytes());
                Ok(out)
            }
            Kind::Plain { exportable: true } => {
                let mut handle = CUipcMemHandle { reserved: [0; 64] };
                self.device.context.with(|api| {
                    // SAFETY: writes 64 bytes.
                    let code = unsafe { (api.ipc_get)(&raw mut handle, self.base) };
                    check(api, "cuIpcGetMemHandle", code)
                })?;
                let mut out = vec![BY_HANDLE];
                out.extend(self.bytes.to_le_bytes());
                out.extend(handle.reserved.map(|byte| byte as u8));
                Ok(out)
            }
            _ => Err(Error::unsupported(
                "this memory was not made for other processes",
            )),
        }
    }

    fn dmabuf(&self, offset: u64, bytes: u64) -> Result<OwnedFd> {
        let call = self
            .device
            .api
            .range_handle
            .filter(|_| self.device.facts.dmabuf);
        let call = call.ok_or_else(|| Error::unsupported("this driver exports no dma-bufs"))?;
        let page = 4096;
        let from = (self.base + offset) & !(page - 1);
        let end = (self.base + offset + bytes).next_multiple_of(page);
        let end = end.min(self.base + self.bytes);
        let mut file: i32 = -1;
        self.device.context.with(|api| {
            // SAFETY: writes a descriptor, which is then this process's; 1 is a dma-buf.
            let code = unsafe {
                let to = (&raw mut file).cast::<c_void>();
                call(to, from, (end - from) as usize, 1, 0)
            };
            check(api, "cuMemGetHandleForAddressRange", code)
        })?;
        // SAFETY: just made, and nobody else's.
        Ok(unsafe { OwnedFd::from_raw_fd(file) })
    }
}

impl Drop for CudaBlock {
    fn drop(&mut self) {
        let (base, bytes) = (self.base, self.bytes as usize);
        let freed = self.device.context.with(|api| {
            let _mode = graph::relaxed(api);
            // SAFETY: this block's, which nobody uses any more.
            let code = unsafe {
                match &mut self.kind {
                    Kind::Plain { .. } => (api.free)(base),
                    Kind::Pooled => match api.free_async {
                        Some(free) => free(base, self.device.pool_stream()),
                        None => 0,
                    },
                    Kind::Opened => (api.ipc_close)(base),
                    Kind::Virtual { descriptor } => {
                        // First, so that nobody takes the memory from here on.
                        drop(descriptor.take());
                        match (api.unmap)(base, bytes) {
                            0 => (api.unreserve)(base, bytes),
                            code => code,
                        }
                    }
                }
            };
            check(api, "freeing device memory", code)
        });
        // A device that is lost frees nothing; there is nobody to tell.
        if freed.is_ok() && matches!(self.kind, Kind::Pooled) {
            // Until then the driver still knows the address.
            let _ = self.device.settle_pool(BRIEFLY);
        }
    }
}
