//! `unisono_dmabuf_table`.

use std::os::fd::BorrowedFd;

use unisono_abi::{self as abi, DmabufTable, Status, status::OK};

use super::guard::{guard, null};
use super::handle::{InstanceHandle, borrow};
use super::structs::read;
use crate::{Dmabuf, DmabufInstance, Error, Flush, HostRange};

pub const fn table<I: DmabufInstance>() -> &'static DmabufTable {
    const {
        &DmabufTable {
            struct_size: size_of::<DmabufTable>() as u32,
            reserved: 0,
            add: Some(add::<I>),
            remove: Some(remove::<I>),
        }
    }
}

// SAFETY, for both functions: as in `instance`.

unsafe extern "C" fn add<I: DmabufInstance>(
    instance: abi::Instance,
    memory: *const abi::Dmabuf,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as above; the descriptor is open through the call.
    unsafe {
        let Some(handle) = borrow::<InstanceHandle<I>>(instance.0) else {
            return null(error, "dmabuf.add: instance");
        };
        guard(&handle.poison, error, || {
            let memory = read(memory, "dmabuf")?;
            if memory.fd < 0 || memory.offset.checked_add(memory.bytes).is_none() {
                return Err(Error::invalid(format!(
                    "no dma-buf: {} bytes at {} of descriptor {}",
                    memory.bytes, memory.offset, memory.fd
                )));
            }
            let range = HostRange::parse(memory.address, memory.bytes)?;
            let memory = Dmabuf {
                fd: BorrowedFd::borrow_raw(memory.fd),
                offset: memory.offset,
                range,
                flush: memory
                    .flush
                    .map(|flush| Flush::from_raw(flush, memory.context)),
            };
            handle.instance.add_dmabuf(memory).map(|()| OK)
        })
    }
}

unsafe extern "C" fn remove<I: DmabufInstance>(
    instance: abi::Instance,
    address: u64,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as above.
    unsafe {
        let Some(handle) = borrow::<InstanceHandle<I>>(instance.0) else {
            return null(error, "dmabuf.remove: instance");
        };
        guard(&handle.poison, error, || {
            handle.instance.remove_dmabuf(address).map(|()| OK)
        })
    }
}
