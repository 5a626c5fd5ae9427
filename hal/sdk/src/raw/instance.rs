//! `unisono_instance_table`.

use std::ffi::c_void;

use unisono_abi::{self as abi, Status, Str};

use super::guard::{OK, Poison, guard, guard_release, guard_value, null};
use super::handle::{InstanceHandle, borrow, give, take};
use super::structs::{bytes, fill, read, slice, write_array};
use crate::{Context, DeviceInfo, Host, Instance, Params, Plugin};

pub const fn table<P: Plugin>() -> abi::InstanceTable {
    abi::InstanceTable {
        struct_size: size_of::<abi::InstanceTable>() as u32,
        reserved: 0,
        create: Some(create::<P>),
        destroy: Some(destroy::<P::Instance>),
        devices: Some(devices::<P::Instance>),
        get_interface: Some(get_interface::<P::Instance>),
    }
}

// SAFETY, for every function of the tables: the host keeps the contract of the header. Pointers are
// NULL or good for what they are for, handles are NULL or came from this plugin and are not yet
// destroyed, thread rules hold. Each function relies on that and on nothing else.

unsafe extern "C" fn create<P: Plugin>(
    info: *const abi::InstanceInfo,
    out: *mut abi::Instance,
    error: *mut abi::Error,
) -> Status {
    let poison = Poison::default();
    // SAFETY: as above.
    unsafe {
        if out.is_null() {
            return null(error, "instance.create: out");
        }
        out.write(abi::Instance::NULL);
        guard(&poison, error, || {
            let info = read(info, "instance.create: info")?;
            let host = if info.host.is_null() {
                Host::silent()
            } else {
                Host::from_raw(read(info.host, "instance.create: info.host")?)
            };
            let params = Params::from_raw(slice(info.params, info.param_count.into()));
            let instance = P::create(Context { params, host })?;
            out.write(abi::Instance(give(InstanceHandle {
                poison: poison.clone(),
                instance,
            })));
            Ok(OK)
        })
    }
}

unsafe extern "C" fn destroy<I: Instance>(instance: abi::Instance) {
    // SAFETY: as above; the host gives the handle back.
    if let Some(handle) = unsafe { take::<InstanceHandle<I>>(instance.0) } {
        let poison = handle.poison.clone();
        guard_release(&poison, || drop(handle));
    }
}

unsafe extern "C" fn devices<I: Instance>(
    instance: abi::Instance,
    out: *mut abi::DeviceInfo,
    cap: u32,
    count: *mut u32,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as above.
    unsafe {
        let Some(handle) = borrow::<InstanceHandle<I>>(instance.0) else {
            return null(error, "instance.devices: instance");
        };
        guard(&handle.poison, error, || {
            let devices: Vec<_> = handle.instance.devices()?.iter().map(raw).collect();
            write_array(out, cap, count, &devices)?;
            Ok(OK)
        })
    }
}

unsafe extern "C" fn get_interface<I: Instance>(instance: abi::Instance, id: Str) -> *const c_void {
    // SAFETY: as above.
    unsafe {
        let Some(handle) = borrow::<InstanceHandle<I>>(instance.0) else {
            return std::ptr::null();
        };
        guard_value(&handle.poison, std::ptr::null(), || {
            std::str::from_utf8(bytes(id))
                .map_or(std::ptr::null(), |id| handle.instance.interface(id))
        })
    }
}

fn raw(info: &DeviceInfo) -> abi::DeviceInfo {
    let mut raw = abi::DeviceInfo::zeroed();
    raw.kind = info.kind as u32;
    raw.id = info.id.0;
    fill(&mut raw.name, &info.name);
    fill(&mut raw.pci, &info.pci);
    raw.numa = info
        .numa
        .and_then(|numa| i32::try_from(numa).ok())
        .unwrap_or(-1);
    raw.queues = info.queues;
    raw.memory_bytes = info.memory_bytes;
    raw.reach = info.reach;
    raw.streams = info.streams;
    raw.reduce_bytes_per_second = info.reduce_bytes_per_second;
    raw.event_sides = info.events.raw();
    raw.event_reach = info.event_reach;
    raw
}
