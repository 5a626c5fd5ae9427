//! Device memory: the process's own, or another's by a handle of 64 bytes.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::ptr;
use std::sync::Arc;

use unisono_plugin::{Error, Result, Status};
use unisono_plugin_accelerator::Block;

use crate::api::{ByValue, INVALID_VALUE, PEER_ALREADY_ENABLED, SUCCESS};
use crate::device::Opened;
use crate::error::check;
use crate::graph;
use crate::places::{self, ELSEWHERE};

/// Kinds of memory: what the device's caches may hold of it while others access it.
const COARSE: u32 = 0;
const FINE: u32 = 1;
const UNCACHED: u32 = 3;
/// `hipIpcMemLazyEnablePeerAccess`: 1, and 0 in runtimes of ROCm 5.
const LAZY_PEER: [u32; 2] = [1, 0];

/// Memory of a device.
#[derive(Debug)]
pub struct RocmBlock {
    device: Arc<Opened>,
    base: u64,
    bytes: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Own { exportable: bool },
    Opened,
}

impl RocmBlock {
    /// New memory. What others map is fine-grained: the device's caches then hold nothing back of what
    /// kernels wrote when a flag is raised.
    pub(crate) fn alloc(device: &Arc<Opened>, bytes: u64, exportable: bool) -> Result<Self> {
        let flags = match (exportable, device.options.uncached) {
            (false, _) => COARSE,
            (true, false) => FINE,
            (true, true) => UNCACHED,
        };
        let size = usize::try_from(bytes).ok();
        let size = size.filter(|size| isize::try_from(*size).is_ok());
        let size = size.ok_or_else(|| {
            let what = format!("{bytes} bytes are more than any device has");
            Error::new(Status::OutOfMemory, what)
        })?;
        let mut base = ptr::null_mut();
        device.with(|api| {
            // SAFETY: writes an address.
            let code = unsafe { (api.alloc)(&raw mut base, size, flags) };
            let what = format!("{bytes} bytes of device memory: hipExtMallocWithFlags");
            check(api, &what, code)
        })?;
        let number = device.facts.device;
        Ok(Self::new(
            device,
            base as u64,
            bytes,
            Kind::Own { exportable },
            number,
        ))
    }

    fn new(device: &Arc<Opened>, base: u64, bytes: u64, kind: Kind, number: i32) -> Self {
        places::insert(base, bytes, number);
        Self {
            device: Arc::clone(device),
            base,
            bytes,
            kind,
        }
    }

    /// Memory that another process exported.
    pub(crate) fn import(device: &Arc<Opened>, handle: &[u8]) -> Result<Self> {
        let foreign = || Error::invalid("no handle of device memory that this plugin made");
        let (bytes, handle) = handle.split_first_chunk().ok_or_else(foreign)?;
        let handle = ByValue(handle.try_into().map_err(|_| foreign())?);
        let mut base = ptr::null_mut();
        device.with(|api| {
            let mut code = SUCCESS;
            for flags in LAZY_PEER {
                // SAFETY: writes an address; a handle that is none is refused.
                code = unsafe { (api.ipc_open)(&raw mut base, handle, flags) };
                if code != INVALID_VALUE {
                    break;
                }
            }
            check(api, "hipIpcOpenMemHandle", code)
        })?;
        let bytes = u64::from_le_bytes(*bytes);
        Ok(Self::new(
            device,
            base as u64,
            bytes,
            Kind::Opened,
            ELSEWHERE,
        ))
    }

    /// Lets another device of this process access it.
    pub(crate) fn reach(&self, from: &Opened) -> Result<()> {
        from.with(|api| {
            // SAFETY: devices that the runtime listed.
            let code = unsafe { (api.enable_peer)(self.device.facts.device, 0) };
            if code == PEER_ALREADY_ENABLED {
                return Ok(());
            }
            check(api, "hipDeviceEnablePeerAccess", code)
        })
    }
}

impl Block for RocmBlock {
    fn base(&self) -> u64 {
        self.base
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn export(&self) -> Result<Vec<u8>> {
        if self.kind != (Kind::Own { exportable: true }) {
            return Err(Error::unsupported(
                "this memory was not made for other processes",
            ));
        }
        let mut handle = [0; 64];
        self.device.with(|api| {
            let base = ptr::with_exposed_provenance_mut(self.base as usize);
            // SAFETY: writes 64 bytes.
            let code = unsafe { (api.ipc_get)(&raw mut handle, base) };
            check(api, "hipIpcGetMemHandle", code)
        })?;
        let mut out = self.bytes.to_le_bytes().to_vec();
        out.extend(handle);
        Ok(out)
    }
}

impl Drop for RocmBlock {
    fn drop(&mut self) {
        places::remove(self.base);
        let base = ptr::with_exposed_provenance_mut(self.base as usize);
        let freed = self.device.with(|api| {
            let _mode = graph::relaxed(api);
            // SAFETY: this block's, which nobody uses any more.
            let code = unsafe {
                match self.kind {
                    Kind::Own { .. } => (api.free)(base),
                    Kind::Opened => (api.ipc_close)(base),
                }
            };
            check(api, "freeing device memory", code)
        });
        // A device that is lost frees nothing; there is nobody to tell.
        drop(freed);
    }
}
