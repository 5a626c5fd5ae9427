//! Device memory by dma-buf: an optional table of an instance.
//!
//! The contract's windows and puts name memory by address. For the memory of another plugin's device
//! an address is not enough: the NIC needs the dma-buf that the device exports. The host makes it known
//! here first, under the addresses that its commands will use; from then on windows and sources in it
//! are written and read by the NIC itself, without staging.
#![allow(unsafe_code, reason = "a table of C functions")]

use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};

use unisono_plugin::abi::{self, status};
use unisono_plugin::{HostRange, Result};

use crate::plugin::Shared;

/// The name to ask [`interface`](unisono_plugin::Instance::interface) for.
pub const DMABUF_INTERFACE: &str = "unisono.dmabuf.1";

/// The table. Its functions may be called from any thread, and may block.
#[repr(C)]
#[derive(Debug)]
pub struct DmabufTable {
    /// Bytes of this struct.
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// To pass to the functions.
    pub context: *const c_void,
    /// Makes `bytes` at `offset` of a dma-buf known as the addresses from `address` on, on all rails.
    /// The descriptor may be closed afterwards. Gives a status: `UNSUPPORTED` where a device or the
    /// library cannot.
    pub register: unsafe extern "C" fn(
        context: *const c_void,
        fd: i32,
        offset: u64,
        bytes: u64,
        address: u64,
    ) -> abi::Status,
    /// Forgets what is known from `address` on. Windows in it and puts that read it keep it
    /// registered until they end.
    pub unregister: unsafe extern "C" fn(context: *const c_void, address: u64) -> abi::Status,
}

/// Makes the table of an instance. It lives as long as the process, as the contract asks; once the
/// instance is gone its functions only refuse.
pub(crate) fn table(shared: &Arc<Shared>) -> *const c_void {
    let context: &'static Weak<Shared> = Box::leak(Box::new(Arc::downgrade(shared)));
    let table = Box::leak(Box::new(DmabufTable {
        struct_size: size_of::<DmabufTable>() as u32,
        reserved: 0,
        context: std::ptr::from_ref(context).cast(),
        register,
        unregister,
    }));
    std::ptr::from_ref(table).cast()
}

unsafe extern "C" fn register(
    context: *const c_void,
    fd: i32,
    offset: u64,
    bytes: u64,
    address: u64,
) -> abi::Status {
    let sound = fd >= 0 && bytes > 0 && address > 0 && address.checked_add(bytes).is_some();
    if !sound {
        return status::INVALID;
    }
    with(context, |shared| {
        // SAFETY: the caller's descriptor is open through the call.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let range = HostRange { address, bytes };
        shared.registry.add_device(&shared.rails, fd, offset, range)
    })
}

unsafe extern "C" fn unregister(context: *const c_void, address: u64) -> abi::Status {
    with(context, |shared| shared.registry.remove_device(address))
}

fn with(context: *const c_void, call: impl FnOnce(&Shared) -> Result<()>) -> abi::Status {
    if context.is_null() {
        return status::INVALID;
    }
    // SAFETY: the context is the table's own, which is never freed.
    let shared = unsafe { &*context.cast::<Weak<Shared>>() };
    let Some(shared) = shared.upgrade() else {
        return status::INVALID;
    };
    let call = std::panic::AssertUnwindSafe(|| call(&shared));
    match std::panic::catch_unwind(call) {
        Ok(Ok(())) => status::OK,
        Ok(Err(error)) => error.status().code(),
        Err(_) => status::INTERNAL,
    }
}
