//! `unisono_device_table`.

use unisono_abi::{self as abi, Status, status};

use super::guard::{OK, guard, guard_release, null};
use super::handle::{DeviceHandle, InstanceHandle, borrow, give, take};
use super::structs::read;
use crate::{Device, Error, Instance, Place, SupportQuery};

pub const fn table<I: Instance>() -> abi::DeviceTable {
    abi::DeviceTable {
        struct_size: size_of::<abi::DeviceTable>() as u32,
        reserved: 0,
        open: Some(open::<I>),
        close: Some(close::<I::Device>),
        supports: Some(supports::<I::Device>),
    }
}

unsafe extern "C" fn open<I: Instance>(
    instance: abi::Instance,
    index: u32,
    out: *mut abi::Device,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`: the host keeps the contract.
    unsafe {
        let Some(handle) = borrow::<InstanceHandle<I>>(instance.0) else {
            return null(error, "device.open: instance");
        };
        if out.is_null() {
            return null(error, "device.open: out");
        }
        out.write(abi::Device::NULL);
        guard(&handle.poison, error, || {
            let device = handle.instance.open(index)?;
            let poison = handle.poison.clone();
            out.write(abi::Device(give(DeviceHandle { poison, device })));
            Ok(OK)
        })
    }
}

unsafe extern "C" fn close<D: Device>(device: abi::Device) {
    // SAFETY: as in `instance`; the host gives the handle back.
    if let Some(handle) = unsafe { take::<DeviceHandle<D>>(device.0) } {
        let poison = handle.poison.clone();
        guard_release(&poison, || drop(handle));
    }
}

unsafe extern "C" fn supports<D: Device>(
    device: abi::Device,
    query: *const abi::SupportQuery,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        let Some(handle) = borrow::<DeviceHandle<D>>(device.0) else {
            return status::INVALID;
        };
        guard(&handle.poison, std::ptr::null_mut(), || {
            let raw = read(query, "device.supports: query")?;
            let narrow = |value: u32| {
                u16::try_from(value).map_err(|_| Error::unsupported("unknown command or type"))
            };
            let query = SupportQuery {
                command: narrow(raw.command)?,
                dtype: narrow(raw.dtype)?,
                reduction: narrow(raw.reduction)?,
                source: Place::parse(raw.source),
                destination: Place::parse(raw.destination),
            };
            Ok(if handle.device.supports(&query) {
                OK
            } else {
                status::UNSUPPORTED
            })
        })
    }
}
