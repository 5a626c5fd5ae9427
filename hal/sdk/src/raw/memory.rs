//! `unisono_memory_table`.

use std::ffi::c_void;

use unisono_abi::{self as abi, Status, status};

use super::guard::{OK, guard, guard_release, null};
use super::handle::{DeviceHandle, MemoryHandle, borrow, give, take};
use super::structs::{read, slice, write, write_bytes};
use crate::{Device, Error, HostRange, Memory, MemoryExport, MemoryRequest, Result};

pub const fn table<D: Device>() -> abi::MemoryTable {
    abi::MemoryTable {
        struct_size: size_of::<abi::MemoryTable>() as u32,
        reserved: 0,
        alloc: Some(alloc::<D>),
        free: Some(free::<D::Memory>),
        register_host: Some(register_host::<D>),
        wrap: Some(wrap::<D>),
        query: Some(query::<D>),
        export_memory: Some(export::<D::Memory>),
        import_memory: Some(import::<D>),
        flush_remote_writes: Some(flush::<D>),
    }
}

/// Makes memory and gives it to the host with its view.
///
/// # Safety
/// The host keeps the contract, as in `instance`.
unsafe fn make<D: Device>(
    device: abi::Device,
    out: *mut abi::Memory,
    view: *mut abi::MemoryView,
    error: *mut abi::Error,
    call: impl FnOnce(&D) -> Result<D::Memory>,
) -> Status {
    // SAFETY: as above.
    unsafe {
        let Some(handle) = borrow::<DeviceHandle<D>>(device.0) else {
            return null(error, "memory: device");
        };
        if out.is_null() {
            return null(error, "memory: out");
        }
        out.write(abi::Memory::NULL);
        guard(&handle.poison, error, || {
            let memory = call(&handle.device)?;
            if !view.is_null() {
                write(view, &memory.view().raw());
            }
            let poison = handle.poison.clone();
            out.write(abi::Memory(give(MemoryHandle { poison, memory })));
            Ok(OK)
        })
    }
}

unsafe extern "C" fn alloc<D: Device>(
    device: abi::Device,
    request: *const abi::MemoryRequest,
    out: *mut abi::Memory,
    view: *mut abi::MemoryView,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`: the host keeps the contract.
    unsafe {
        make(device, out, view, error, |device: &D| {
            device.alloc(&MemoryRequest::parse(&read(
                request,
                "memory.alloc: request",
            )?)?)
        })
    }
}

unsafe extern "C" fn free<M: Memory>(memory: abi::Memory) {
    // SAFETY: as in `instance`; the host gives the handle back.
    if let Some(handle) = unsafe { take::<MemoryHandle<M>>(memory.0) } {
        let poison = handle.poison.clone();
        guard_release(&poison, || drop(handle));
    }
}

unsafe extern "C" fn register_host<D: Device>(
    device: abi::Device,
    ptr: *mut c_void,
    bytes: u64,
    out: *mut abi::Memory,
    view: *mut abi::MemoryView,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        make(device, out, view, error, |device: &D| {
            device.register_host(HostRange::parse(ptr.expose_provenance() as u64, bytes)?)
        })
    }
}

unsafe extern "C" fn wrap<D: Device>(
    device: abi::Device,
    base: u64,
    bytes: u64,
    out: *mut abi::Memory,
    view: *mut abi::MemoryView,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        make(device, out, view, error, |device: &D| {
            let range = HostRange::parse(base, bytes)?; // the same bounds hold for device addresses
            device.wrap_memory(range.address, range.bytes)
        })
    }
}

unsafe extern "C" fn query<D: Device>(
    device: abi::Device,
    address: u64,
    view: *mut abi::MemoryView,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        let Some(handle) = borrow::<DeviceHandle<D>>(device.0) else {
            return null(error, "memory.query: device");
        };
        if view.is_null() {
            return null(error, "memory.query: view");
        }
        guard(&handle.poison, error, || {
            Ok(match handle.device.query_memory(address)? {
                Some(found) => {
                    write(view, &found.raw());
                    OK
                }
                None => status::AGAIN,
            })
        })
    }
}

unsafe extern "C" fn export<M: Memory>(
    memory: abi::Memory,
    how: u32,
    out: *mut c_void,
    cap: u64,
    len: *mut u64,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        let Some(handle) = borrow::<MemoryHandle<M>>(memory.0) else {
            return null(error, "memory.export_memory: memory");
        };
        guard(&handle.poison, error, || {
            let description = handle.memory.export(MemoryExport::parse(how)?)?;
            write_bytes(out, cap, len, &description)?;
            Ok(OK)
        })
    }
}

unsafe extern "C" fn import<D: Device>(
    device: abi::Device,
    description: *const c_void,
    len: u64,
    out: *mut abi::Memory,
    view: *mut abi::MemoryView,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        make(device, out, view, error, |device: &D| {
            if description.is_null() || len == 0 || len > abi::EXPORT_MAX as u64 {
                return Err(Error::invalid(format!("no description: {len} bytes")));
            }
            device.import_memory(slice(description.cast(), len))
        })
    }
}

unsafe extern "C" fn flush<D: Device>(device: abi::Device, error: *mut abi::Error) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        let Some(handle) = borrow::<DeviceHandle<D>>(device.0) else {
            return null(error, "memory.flush_remote_writes: device");
        };
        guard(&handle.poison, error, || {
            handle.device.flush_remote_writes().map(|()| OK)
        })
    }
}
