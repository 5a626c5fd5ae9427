//! What lies at an address.

use std::ffi::c_void;
use std::sync::Arc;

use unisono_emulator::space::{Kind, Range};

use crate::answer::{Answer, driver, give};
use crate::code;
use crate::context::{context_of, machine};
use crate::host::pinned_at;

fn range_at(address: u64) -> Answer<Arc<Range>> {
    let space = &machine()?.space;
    let pinned = || pinned_at(address).and_then(|(_, base)| space.find(base));
    space
        .find(address)
        .or_else(pinned)
        .ok_or(code::INVALID_VALUE)
}

/// Writes one attribute.
unsafe fn attribute(to: *mut c_void, which: u32, address: u64) -> Answer {
    let range = range_at(address)?;
    let owner = range.backing().map(|backing| backing.owner());
    // SAFETY: the caller's: room for the attribute's type.
    unsafe {
        match which {
            // CONTEXT
            1 => {
                let device = owner.and_then(|owner| machine().ok()?.device(owner));
                give(to.cast(), device.map_or(0, |device| context_of(device)))
            }
            // MEMORY_TYPE: host 1, device 2
            2 => give(to.cast(), if owner.is_some() { 2_u32 } else { 1 }),
            // DEVICE_POINTER
            3 => give(to.cast(), address),
            // HOST_POINTER
            4 => match range.kind {
                Kind::Host(host) => give(to.cast(), host + (address - range.base)),
                _ => Err(code::INVALID_VALUE),
            },
            // BUFFER_ID
            7 => give(to.cast(), range.id),
            // IS_MANAGED
            8 => give(to.cast(), 0_u32),
            // DEVICE_ORDINAL
            9 => give(to.cast(), owner.map_or(0, u32::cast_signed)),
            // RANGE_START_ADDR
            11 => give(to.cast(), range.base),
            // RANGE_SIZE
            12 => give(to.cast(), range.bytes as usize),
            _ => Err(code::INVALID_VALUE),
        }
    }
}

driver! {
    fn cuPointerGetAttribute(to: *mut c_void, which: u32, address: u64) {
        // SAFETY: the caller's.
        unsafe { attribute(to, which, address) }
    }

    fn cuMemGetAddressRange_v2(base: *mut u64, bytes: *mut usize, address: u64) {
        let range = range_at(address)?;
        // SAFETY: the caller's.
        unsafe {
            give(base, range.base)?;
            give(bytes, range.bytes as usize)
        }
    }
}
