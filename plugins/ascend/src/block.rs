//! Device memory, and its keys for other processes.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::collections::BTreeSet;
use std::ffi::c_char;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unisono_plugin::{Error, Result, Status};
use unisono_plugin_accelerator::Block;

use crate::api::Handle;
use crate::device::Opened;
use crate::door::{self, Ticket};
use crate::error::check;
use crate::lane::Raw;
use crate::places;

/// Bytes of a key, with the NUL at its end.
pub(crate) const KEY: usize = 65;
/// A key.
pub(crate) type Key = [u8; KEY];
/// `ACL_MEM_MALLOC_HUGE_FIRST`.
const HUGE_FIRST: i32 = 0;
/// `ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION`.
const ANYBODY: u64 = 1;
/// `ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS`.
const PEER_ACCESS: u64 = 1;

/// Keys that this process has imported: the runtime takes each once a process.
static IMPORTED: Mutex<BTreeSet<Key>> = Mutex::new(BTreeSet::new());

fn imported() -> MutexGuard<'static, BTreeSet<Key>> {
    IMPORTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory of a device.
#[derive(Debug)]
pub struct AscendBlock {
    device: Arc<Opened>,
    base: Raw,
    bytes: u64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// `aclrtMalloc`, and its key once somebody asked for it: a block has one.
    Own {
        exportable: bool,
        key: Mutex<Option<(Key, Option<Ticket>)>>,
    },
    /// `aclrtIpcMemImportByKey`.
    Imported(Key),
}

impl AscendBlock {
    /// New memory.
    pub(crate) fn alloc(device: &Arc<Opened>, bytes: u64, exportable: bool) -> Result<Self> {
        let size = usize::try_from(bytes)
            .ok()
            .filter(|size| isize::try_from(*size).is_ok())
            .ok_or_else(|| {
                let what = format!("{bytes} bytes are more than any device has");
                Error::new(Status::OutOfMemory, what)
            })?;
        let mut base: Handle = ptr::null_mut();
        device.with(|api| {
            // SAFETY: writes an address.
            let code = unsafe { (api.alloc)(&raw mut base, size, HUGE_FIRST) };
            check(
                &format!("{bytes} bytes of device memory: aclrtMalloc"),
                code,
            )
        })?;
        places::add_device(base as u64, bytes, device.number());
        let key = Mutex::default();
        Ok(Self::of(device, base, bytes, Kind::Own { exportable, key }))
    }

    fn of(device: &Arc<Opened>, base: Handle, bytes: u64, kind: Kind) -> Self {
        Self {
            device: Arc::clone(device),
            base: Raw::of(base),
            bytes,
            kind,
        }
    }

    /// Memory that another process exported.
    pub(crate) fn import(device: &Arc<Opened>, handle: &[u8]) -> Result<Self> {
        let foreign = || Error::invalid("no handle of device memory that this plugin made");
        let (bytes, rest) = handle.split_first_chunk().ok_or_else(foreign)?;
        let bytes = u64::from_le_bytes(*bytes);
        let (key, ticket) = rest.split_first_chunk::<KEY>().ok_or_else(foreign)?;
        let terminated = key.contains(&0);
        if bytes == 0 || !terminated {
            return Err(foreign());
        }
        if imported().contains(key) {
            return Err(Error::unsupported(
                "memory of another process is mapped for one device of this process alone",
            ));
        }
        if !ticket.is_empty() {
            let ticket = Ticket::parse(ticket).ok_or_else(foreign)?;
            door::ask(device, &ticket, key)?;
        }
        let mut base: Handle = ptr::null_mut();
        device.with(|api| {
            let text = key.as_ptr().cast::<c_char>();
            // SAFETY: writes an address; a terminated key, which is refused if it is none.
            let code = unsafe { (api.ipc_import)(&raw mut base, text, PEER_ACCESS) };
            check("aclrtIpcMemImportByKey", code)
        })?;
        imported().insert(*key);
        places::add_imported(base as u64, bytes);
        Ok(Self::of(device, base, bytes, Kind::Imported(*key)))
    }

    /// Lets another device of this process access it.
    pub(crate) fn reach(&self, from: &Opened) -> Result<()> {
        from.reach_device(self.device.number())
    }

    /// The key, made when first asked for.
    fn make_key(&self) -> Result<(Key, Option<Ticket>)> {
        let flags = if self.device.options.allow_list {
            0
        } else {
            ANYBODY
        };
        let mut key = [0; KEY];
        self.device.with(|api| {
            let text = key.as_mut_ptr().cast::<c_char>();
            // SAFETY: a whole block of this device's; writes the key and its NUL.
            let code = unsafe {
                (api.ipc_export)(self.base.handle(), self.bytes as usize, text, KEY, flags)
            };
            check("aclrtIpcMemGetExportKey", code)
        })?;
        let ticket = if self.device.options.allow_list {
            Some(door::open(&self.device, &key)?)
        } else {
            None
        };
        Ok((key, ticket))
    }
}

impl Block for AscendBlock {
    fn base(&self) -> u64 {
        self.base.0 as u64
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn export(&self) -> Result<Vec<u8>> {
        let Kind::Own {
            exportable: true,
            key,
        } = &self.kind
        else {
            return Err(Error::unsupported(
                "this memory was not made for other processes",
            ));
        };
        let mut known = key.lock().unwrap_or_else(PoisonError::into_inner);
        let (key, ticket) = match &*known {
            Some(known) => known,
            None => known.insert(self.make_key()?),
        };
        let mut out = self.bytes.to_le_bytes().to_vec();
        out.extend(key);
        out.extend(ticket.iter().flat_map(Ticket::pack));
        Ok(out)
    }
}

impl Drop for AscendBlock {
    fn drop(&mut self) {
        let base = self.base.0 as u64;
        places::remove(base);
        let close = |key: &Key| {
            let text = key.as_ptr().cast::<c_char>();
            // SAFETY: a key that this block made or mapped, terminated.
            check("aclrtIpcMemClose", unsafe {
                (self.device.api.ipc_close)(text)
            })
        };
        let freed = self.device.with(|api| match &self.kind {
            Kind::Imported(key) => {
                let closed = close(key);
                imported().remove(key);
                closed
            }
            Kind::Own { key, .. } => {
                let key = key.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some((key, _)) = key {
                    door::shut(&key);
                    close(&key)?;
                }
                // SAFETY: this block's, which nobody uses any more.
                check("aclrtFree", unsafe { (api.free)(self.base.handle()) })
            }
        });
        // A device that is lost frees nothing; there is nobody to tell.
        drop(freed);
    }
}
