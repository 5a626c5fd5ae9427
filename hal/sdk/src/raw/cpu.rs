//! `unisono_cpu_table`.

use std::ffi::c_void;

use unisono_abi::{self as abi, Combine, CommandReduce, CpuTable, Status, status};

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
            combiner: Some(combiner::<I>),
        }
    }
}

// SAFETY, for all functions: as in `instance`.

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

unsafe extern "C" fn combiner<I: CpuInstance>(
    instance: abi::Instance,
    dtype: u16,
    reduction: u16,
    function: *mut Option<Combine>,
    context: *mut *mut c_void,
) -> Status {
    // SAFETY: as above.
    unsafe {
        let Some(handle) = borrow::<InstanceHandle<I>>(instance.0) else {
            return status::INVALID;
        };
        if function.is_null() || context.is_null() {
            return status::INVALID;
        }
        guard_value(&handle.poison, status::POISONED, || {
            let Some(combiner) = handle.instance.combiner(dtype, reduction) else {
                return status::UNSUPPORTED;
            };
            function.write(Some(combiner.function));
            context.write(combiner.context);
            status::OK
        })
    }
}
