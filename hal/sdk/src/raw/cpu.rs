//! `unisono_cpu_table`.

use unisono_abi::{self as abi, CommandReduce, CpuTable, Status, status};

use super::guard::guard_value;
use super::handle::{InstanceHandle, borrow};
use super::structs::slice;
use crate::CpuInstance;

pub const fn table<I: CpuInstance>() -> &'static CpuTable {
    const {
        &CpuTable {
            struct_size: size_of::<CpuTable>() as u32,
            reserved: 0,
            ring: Some(ring::<I>),
            reduce: Some(reduce::<I>),
        }
    }
}

// SAFETY, for both functions: as in `instance`.

unsafe extern "C" fn ring<I: CpuInstance>(instance: abi::Instance, bells: *const u64, count: u32) {
    // SAFETY: as above.
    unsafe {
        if let Some(handle) = borrow::<InstanceHandle<I>>(instance.0) {
            guard_value(&handle.poison, (), || {
                handle.instance.ring(slice(bells, count.into()));
            });
        }
    }
}

unsafe extern "C" fn reduce<I: CpuInstance>(
    instance: abi::Instance,
    command: *const CommandReduce,
) -> Status {
    // SAFETY: as above.
    unsafe {
        let (Some(handle), Some(command)) =
            (borrow::<InstanceHandle<I>>(instance.0), command.as_ref())
        else {
            return status::INVALID;
        };
        guard_value(&handle.poison, status::POISONED, || {
            match handle.instance.reduce(command) {
                true => status::OK,
                false => status::UNSUPPORTED,
            }
        })
    }
}
