//! An emulated `libnvidia-ml.so.1`: what the cuda plugin asks of the management library.
//!
//! Devices are those of the box file, by their bus addresses; lanes as it lists them, with those that
//! are dead inactive. A lane that ends at a switch names a bus address where there is no device.
#![allow(
    unsafe_code,
    reason = "C functions that take pointers, with the contracts of the library"
)]
#![allow(non_snake_case, reason = "the library's names")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the contracts are those of the library's manual"
)]

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicI32, Ordering};

use unisono_emulator::{Capability, End, Machine};

const SUCCESS: u32 = 0;
const UNINITIALIZED: u32 = 1;
const INVALID_ARGUMENT: u32 = 2;
const NOT_SUPPORTED: u32 = 3;
const NOT_FOUND: u32 = 6;
const INSUFFICIENT_SIZE: u32 = 7;
const DRIVER_NOT_LOADED: u32 = 9;

/// How often the library was initialised.
static USERS: AtomicI32 = AtomicI32::new(0);

/// Devices are handles with this bit.
const HANDLE: u64 = 0x7ace_d000_0000;

/// `nvmlPciInfo_t`.
#[repr(C)]
pub struct PciInfo {
    legacy: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    pci_device: u32,
    subsystem: u32,
    text: [u8; 32],
}

fn machine() -> Result<&'static Machine, u32> {
    if USERS.load(Ordering::Acquire) <= 0 {
        return Err(UNINITIALIZED);
    }
    unisono_emulator::machine().map_err(|_| DRIVER_NOT_LOADED)
}

fn index(device: u64) -> Result<u32, u32> {
    let index = u32::try_from(device.wrapping_sub(HANDLE)).map_err(|_| INVALID_ARGUMENT)?;
    let there = index < machine()?.facts.devices;
    there.then_some(index).ok_or(INVALID_ARGUMENT)
}

fn code(result: Result<(), u32>) -> u32 {
    result.err().unwrap_or(SUCCESS)
}

unsafe fn give<T>(to: *mut T, value: T) -> Result<(), u32> {
    if to.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the caller's.
    unsafe { to.write(value) };
    Ok(())
}

fn lane(device: u64, link: u32) -> Result<unisono_emulator::Lane, u32> {
    let lanes = machine()?.facts.lanes_of(index(device)?);
    if lanes.is_empty() {
        return Err(NOT_SUPPORTED);
    }
    lanes.get(link as usize).copied().ok_or(INVALID_ARGUMENT)
}

fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    let len = text.len().min(N - 1);
    out[..len].copy_from_slice(&text.as_bytes()[..len]);
    out
}

fn init() -> Result<(), u32> {
    let machine = unisono_emulator::machine().map_err(|_| DRIVER_NOT_LOADED)?;
    if !machine.facts.has(Capability::Management) {
        return Err(DRIVER_NOT_LOADED);
    }
    USERS.fetch_add(1, Ordering::AcqRel);
    Ok(())
}

/// As the library's manual says; so for all here.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> u32 {
    code(init())
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub extern "C" fn nvmlInitWithFlags(_flags: u32) -> u32 {
    code(init())
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub extern "C" fn nvmlShutdown() -> u32 {
    let less = |users: i32| (users > 0).then_some(users - 1);
    let fewer = USERS.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
    code(fewer.map(|_| ()).map_err(|_| UNINITIALIZED))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub extern "C" fn nvmlErrorString(error: u32) -> *const c_char {
    let text: &CStr = match error {
        SUCCESS => c"The operation was successful",
        NOT_SUPPORTED => c"The requested operation is not available on target device",
        NOT_FOUND => c"A query to find an object was unsuccessful",
        DRIVER_NOT_LOADED => c"The driver is not loaded",
        _ => c"An error of the emulated library",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, room: u32) -> u32 {
    code(machine().and_then(|machine| {
        let name = machine.facts.driver_name.as_bytes();
        if to.is_null() || name.len() >= room as usize {
            return Err(INSUFFICIENT_SIZE);
        }
        // SAFETY: the caller says that there are `room` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(name.as_ptr().cast(), to, name.len());
            to.add(name.len()).write(0);
        }
        Ok(())
    }))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut u32) -> u32 {
    // SAFETY: the caller's.
    code(machine().and_then(|machine| unsafe { give(count, machine.facts.devices) }))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(
    bus: *const c_char,
    device: *mut u64,
) -> u32 {
    code(machine().and_then(|machine| {
        if bus.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: the caller passes terminated text.
        let wanted = unsafe { CStr::from_ptr(bus) }.to_string_lossy();
        let parse = |text: &str| {
            let mut parts = text.split(':');
            let number = |part: Option<&str>| u32::from_str_radix(part?, 16).ok();
            Some((number(parts.next())?, number(parts.next())?))
        };
        let wanted = parse(&wanted).ok_or(INVALID_ARGUMENT)?;
        let found = (0..machine.facts.devices).find(|d| machine.facts.bus_of(*d) == wanted);
        let found = HANDLE + u64::from(found.ok_or(NOT_FOUND)?);
        // SAFETY: the caller's.
        unsafe { give(device, found) }
    }))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn nvmlDeviceGetNvLinkState(device: u64, link: u32, on: *mut u32) -> u32 {
    // SAFETY: the caller's.
    code(lane(device, link).and_then(|lane| unsafe { give(on, u32::from(lane.up)) }))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn nvmlDeviceGetNvLinkVersion(device: u64, link: u32, to: *mut u32) -> u32 {
    code(lane(device, link).and_then(|_| {
        let version = machine()?.facts.fabric.version;
        // SAFETY: the caller's.
        unsafe { give(to, version) }
    }))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn nvmlDeviceGetNvLinkRemotePciInfo_v2(
    device: u64,
    link: u32,
    to: *mut PciInfo,
) -> u32 {
    code(lane(device, link).and_then(|lane| {
        let facts = &machine()?.facts;
        let (domain, bus) = match lane.end {
            End::Device(other) => facts.bus_of(other),
            End::Switch(number) => (0, 0xc0 + number),
        };
        let long = format!("{domain:08X}:{bus:02X}:00.0");
        let short = format!("{domain:04X}:{bus:02X}:00.0");
        let info = PciInfo {
            legacy: text(&short),
            domain,
            bus,
            device: 0,
            pci_device: 0,
            subsystem: 0,
            text: text(&long),
        };
        // SAFETY: the caller's.
        unsafe { give(to, info) }
    }))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn nvmlDeviceGetMaxPcieLinkGeneration(device: u64, to: *mut u32) -> u32 {
    code(index(device).and_then(|_| {
        let generation = machine()?.facts.pcie.generation;
        // SAFETY: the caller's.
        unsafe { give(to, generation) }
    }))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn nvmlDeviceGetMaxPcieLinkWidth(device: u64, to: *mut u32) -> u32 {
    code(index(device).and_then(|_| {
        let lanes = machine()?.facts.pcie.lanes;
        // SAFETY: the caller's.
        unsafe { give(to, lanes) }
    }))
}
