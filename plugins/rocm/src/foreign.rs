//! Memory of the program's own, as the runtime knows it.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::ffi::c_void;
use std::ptr;

use unisono_plugin::{DeviceId, MemoryView, Place};
use unisono_plugin_accelerator::Foreign;

use crate::api::{Api, SUCCESS};

/// Attributes of an address.
const HOST_POINTER: u32 = 4;
const BUFFER_ID: u32 = 7;
const DEVICE_ORDINAL: u32 = 9;

fn pointer(address: u64) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// # Safety
/// The attribute is of this type.
unsafe fn attribute<T>(api: &Api, which: u32, address: u64, none: T) -> Option<T> {
    let mut value = none;
    // SAFETY: the caller's promise.
    let code = unsafe { (api.pointer)((&raw mut value).cast(), which, pointer(address)) };
    (code == SUCCESS).then_some(value)
}

/// What lies at an address; the device is current, and devices have these identities, by the runtime's
/// number.
pub(crate) fn at(api: &Api, ids: &[DeviceId], address: u64) -> Option<Foreign> {
    let (mut base, mut bytes) = (ptr::null_mut(), 0);
    // SAFETY: writes an address and a size; an address that is none is refused.
    let code = unsafe { (api.range)(&raw mut base, &raw mut bytes, pointer(address)) };
    if code != SUCCESS {
        return None;
    }
    let base = base as u64;
    // SAFETY: a pointer, an int and a number of 64 bits.
    let (host, ordinal, generation) = unsafe {
        (
            attribute(api, HOST_POINTER, base, 0_u64).unwrap_or(0),
            attribute(api, DEVICE_ORDINAL, address, -1_i32).unwrap_or(-1),
            attribute(api, BUFFER_ID, address, 0_u64).unwrap_or(0),
        )
    };
    // The kind of memory has changed its numbers; an address for the CPU has not.
    let place = if host == 0 {
        Place::Device
    } else {
        Place::Host
    };
    let id = usize::try_from(ordinal).ok();
    let id = id.and_then(|ordinal| ids.get(ordinal).copied());
    Some(Foreign {
        view: MemoryView {
            place,
            base,
            host,
            bytes: bytes as u64,
            generation,
            device: id.unwrap_or_default(),
        },
    })
}
