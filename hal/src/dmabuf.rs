//! Devices' memory that posted links read and write by themselves.

#![allow(
    unsafe_code,
    reason = "calls the plugin's function pointers, and is called by it"
)]

use std::ffi::c_void;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use unisono_abi as abi;

use crate::error::call_done;
use crate::{Device, Error, ExportKind, Instance, Memory, Result, Status};

type Add = unsafe extern "C" fn(abi::Instance, *const abi::Dmabuf, *mut abi::Error) -> abi::Status;
type Remove = unsafe extern "C" fn(abi::Instance, u64, *mut abi::Error) -> abi::Status;

/// The alignment that memory must have to be added.
const PAGE: u64 = 4096;

/// What a plugin's links do with the memory of devices, where they read and write it by themselves.
#[derive(Clone)]
pub struct Dmabufs {
    instance: Instance,
    add: Add,
    remove: Remove,
}

/// Memory that links of an instance know, for as long as this lives. Links that have windows in it, or
/// puts that read it, must be gone before it goes.
pub struct LinkedMemory {
    by: Dmabufs,
    address: u64,
    /// What the plugin calls to flush; after the removal in the order of dropping.
    _device: Box<Device>,
    _memory: Memory,
}

impl Dmabufs {
    /// Of an instance whose plugin offers it.
    #[must_use]
    pub fn of(instance: &Instance) -> Option<Self> {
        let table = instance
            .interface(abi::DMABUF_INTERFACE)?
            .cast::<abi::DmabufTable>();
        // SAFETY: the contract says what lies at an interface of this name, and that it lives as
        // long as the process; its size comes first.
        unsafe {
            if ((&raw const (*table.as_ptr()).struct_size).read() as usize)
                < size_of::<abi::DmabufTable>()
            {
                return None;
            }
            let table = table.as_ref();
            Some(Self {
                instance: instance.clone(),
                add: table.add?,
                remove: table.remove?,
            })
        }
    }

    /// Makes memory of a device known to the instance's links, which name it by its address there. What
    /// they are told has landed in it, the device sees: it is flushed before.
    ///
    /// # Errors
    /// If the device does not export it as a dma-buf, or a card does not take it.
    pub fn add(&self, memory: &Memory) -> Result<LinkedMemory> {
        const CALL: &str = "dmabuf.add";
        let plugin = self.instance.data().name;
        let address = memory.base();
        if !address.is_multiple_of(PAGE) {
            let what = format!("memory at {address:#x} does not begin a page");
            return Err(Error::host(plugin, CALL, Status::Invalid, what));
        }
        let file = descriptor(memory)?;
        let device = Box::new(memory.device().clone());
        let raw = abi::Dmabuf {
            struct_size: size_of::<abi::Dmabuf>() as u32,
            fd: file.as_raw_fd(),
            offset: 0,
            bytes: memory.len(),
            address,
            flush: Some(flush),
            context: (&raw const *device).cast_mut().cast(),
        };
        call_done(plugin, CALL, |error| {
            // SAFETY: the instance is live, the descriptor open; the device lives until the memory
            // was removed.
            unsafe { (self.add)(self.instance.raw(), &raw const raw, error) }
        })?;
        Ok(LinkedMemory {
            by: self.clone(),
            address,
            _device: device,
            _memory: memory.clone(),
        })
    }
}

impl LinkedMemory {
    /// The address by which links know it: the device's own.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for LinkedMemory {
    fn drop(&mut self) {
        let Dmabufs {
            instance, remove, ..
        } = &self.by;
        let removed = call_done(instance.data().name, "dmabuf.remove", |error| {
            // SAFETY: the instance is live; it was added once and is removed once.
            unsafe { remove(instance.raw(), self.address, error) }
        });
        // There is nobody to tell.
        drop(removed);
    }
}

/// The dma-buf of a piece of memory, from its first byte on.
fn descriptor(memory: &Memory) -> Result<OwnedFd> {
    let exported = memory.export(ExportKind::DmaBuf)?;
    let file = exported.as_slice().try_into().map(i32::from_ne_bytes);
    match file {
        // SAFETY: by the contract the descriptor is the caller's from now on.
        Ok(file) if file >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(file) }),
        _ => {
            let what = format!("a dma-buf is told in {} bytes", exported.len());
            Err(memory.device().broken("memory.export_memory", what))
        }
    }
}

/// Flushes a device, for a link.
///
/// # Safety
/// `context` is a [`Device`].
unsafe extern "C" fn flush(context: *mut c_void) -> abi::Status {
    // SAFETY: the caller's promise.
    let device = unsafe { &*context.cast::<Device>() };
    match catch_unwind(AssertUnwindSafe(|| device.flush_remote_writes())) {
        Ok(Ok(())) => abi::status::OK,
        Ok(Err(error)) => error.status.to_raw(),
        Err(_) => abi::status::INTERNAL,
    }
}

impl std::fmt::Debug for Dmabufs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dmabufs").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for LinkedMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LinkedMemory({:#x})", self.address)
    }
}
