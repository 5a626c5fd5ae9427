//! `unisono_event_table`.

use unisono_abi::{self as abi, Status, status};

use super::guard::{OK, guard, guard_release, guard_value, null};
use super::handle::{DeviceHandle, EventHandle, borrow, give, take};
use crate::{Device, Event, Result};

pub const fn table<D: Device>() -> abi::EventTable {
    abi::EventTable {
        struct_size: size_of::<abi::EventTable>() as u32,
        reserved: 0,
        create: Some(create::<D>),
        wrap: Some(wrap::<D>),
        destroy: Some(destroy::<D::Event>),
        native: Some(native::<D::Event>),
        host_signal: Some(host_signal::<D::Event>),
        host_query: Some(host_query::<D::Event>),
    }
}

/// # Safety
/// The host keeps the contract, as in `instance`.
unsafe fn make<D: Device>(
    device: abi::Device,
    out: *mut abi::Event,
    error: *mut abi::Error,
    call: impl FnOnce(&D) -> Result<D::Event>,
) -> Status {
    // SAFETY: as above.
    unsafe {
        let Some(handle) = borrow::<DeviceHandle<D>>(device.0) else {
            return null(error, "event: device");
        };
        if out.is_null() {
            return null(error, "event: out");
        }
        out.write(abi::Event::NULL);
        guard(&handle.poison, error, || {
            let event = call(&handle.device)?;
            out.write(abi::Event(give(EventHandle {
                poison: handle.poison.clone(),
                event,
            })));
            Ok(OK)
        })
    }
}

unsafe extern "C" fn create<D: Device>(
    device: abi::Device,
    out: *mut abi::Event,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`: the host keeps the contract.
    unsafe { make(device, out, error, D::create_event) }
}

unsafe extern "C" fn wrap<D: Device>(
    device: abi::Device,
    native: u64,
    out: *mut abi::Event,
    error: *mut abi::Error,
) -> Status {
    // SAFETY: as in `instance`.
    unsafe { make(device, out, error, |device: &D| device.wrap_event(native)) }
}

unsafe extern "C" fn destroy<E: Event>(event: abi::Event) {
    // SAFETY: as in `instance`; the host gives the handle back.
    if let Some(handle) = unsafe { take::<EventHandle<E>>(event.0) } {
        let poison = handle.poison.clone();
        guard_release(&poison, || drop(handle));
    }
}

unsafe extern "C" fn native<E: Event>(event: abi::Event) -> u64 {
    // SAFETY: as in `instance`.
    unsafe {
        borrow::<EventHandle<E>>(event.0).map_or(0, |handle| {
            guard_value(&handle.poison, 0, || handle.event.native())
        })
    }
}

unsafe extern "C" fn host_signal<E: Event>(event: abi::Event, error: *mut abi::Error) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        let Some(handle) = borrow::<EventHandle<E>>(event.0) else {
            return null(error, "event.host_signal: event");
        };
        guard(&handle.poison, error, || {
            handle.event.host_signal().map(|()| OK)
        })
    }
}

unsafe extern "C" fn host_query<E: Event>(event: abi::Event, error: *mut abi::Error) -> Status {
    // SAFETY: as in `instance`.
    unsafe {
        let Some(handle) = borrow::<EventHandle<E>>(event.0) else {
            return null(error, "event.host_query: event");
        };
        guard(&handle.poison, error, || {
            Ok(if handle.event.host_query()? {
                OK
            } else {
                status::AGAIN
            })
        })
    }
}
