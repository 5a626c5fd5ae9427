//! What devices are.

use std::ffi::c_char;

use crate::answer::{Answer, driver, give};
use crate::attribute;
use crate::code;
use crate::context::{current, device, machine};

/// Writes text, cut to the room and NUL-terminated.
unsafe fn write_text(to: *mut c_char, room: i32, text: &str) -> Answer {
    let room = usize::try_from(room).map_err(|_| code::INVALID_VALUE)?;
    if to.is_null() || room == 0 {
        return Err(code::INVALID_VALUE);
    }
    let len = text.len().min(room - 1);
    // SAFETY: the caller says that `to` has `room` bytes; `len` is less.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, len);
        to.add(len).write(0);
    }
    Ok(())
}

driver! {
    fn cuDeviceGetCount(count: *mut i32) {
        // SAFETY: the caller's.
        unsafe { give(count, machine()?.facts.devices.cast_signed()) }
    }

    fn cuDeviceGet(found: *mut i32, ordinal: i32) {
        let device = device(ordinal)?;
        // SAFETY: the caller's.
        unsafe { give(found, device.index.cast_signed()) }
    }

    fn cuDeviceGetName(name: *mut c_char, room: i32, index: i32) {
        device(index)?;
        // SAFETY: the caller's.
        unsafe { write_text(name, room, &machine()?.facts.model) }
    }

    /// The same in every process of a machine.
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], index: i32) {
        let device = device(index)?;
        let mut bytes = *b"emulated-device\0";
        bytes[15] = device.index as u8;
        // SAFETY: the caller's.
        unsafe { give(uuid, bytes) }
    }

    fn cuDeviceTotalMem_v2(bytes: *mut usize, index: i32) {
        device(index)?;
        // SAFETY: the caller's.
        unsafe { give(bytes, machine()?.facts.memory_bytes as usize) }
    }

    fn cuDeviceGetPCIBusId(text: *mut c_char, room: i32, index: i32) {
        let (domain, bus) = machine()?.facts.bus_of(device(index)?.index);
        // SAFETY: the caller's.
        unsafe { write_text(text, room, &format!("{domain:04X}:{bus:02X}:00.0")) }
    }

    fn cuDeviceGetAttribute(value: *mut i32, which: u32, index: i32) {
        let found = attribute::value(&machine()?.facts, device(index)?.index, which);
        // SAFETY: the caller's.
        unsafe { give(value, found.ok_or(code::INVALID_VALUE)?) }
    }

    fn cuDeviceGetP2PAttribute(value: *mut i32, which: u32, from: i32, to: i32) {
        let (from, to) = (device(from)?, device(to)?);
        if from.index == to.index {
            return Err(code::INVALID_DEVICE);
        }
        let found = attribute::between(&machine()?.facts, from.index, to.index, which);
        // SAFETY: the caller's.
        unsafe { give(value, found.ok_or(code::INVALID_VALUE)?) }
    }

    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let (device, all) = (current()?, machine()?.facts.memory_bytes);
        // SAFETY: the caller's.
        unsafe {
            give(free, (all - device.used()) as usize)?;
            give(total, all as usize)
        }
    }
}
