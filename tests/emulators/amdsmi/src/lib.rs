//! An emulated `libamd_smi.so`: what the rocm plugin asks of it where rocm-smi is not.
//!
//! Devices are those of the box file, one in each of two sockets and so on, from the last to the first;
//! lanes as it lists them, without those that are dead. Rates are given for pairs with a lane between
//! them, in megabytes a second. The library's release goes by that of ROCm: before 7 its version begins
//! with a year.
#![allow(
    unsafe_code,
    reason = "C functions that take pointers, with the contracts of the library"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "the contracts are those of the library's manual"
)]

use std::sync::atomic::{AtomicU32, Ordering};

use unisono_emulator::{Capability, Machine};

const SUCCESS: u32 = 0;
const INVALID: u32 = 1;
const NOT_SUPPORTED: u32 = 2;
const OUT_OF_RESOURCES: u32 = 15;
const NOT_INITIALISED: u32 = 32;
const NO_SUCH_DEVICE: u32 = 31;

/// `AMDSMI_INIT_AMD_GPUS`.
const DEVICES: u64 = 2;
/// Kinds of links.
const PCIE: u32 = 1;
const XGMI: u32 = 2;
/// Weights of ways: one link between devices, more, through the host.
const WEIGHT_NEAR: u64 = 15;
const WEIGHT_FAR: u64 = 30;
const WEIGHT_HOST: u64 = 40;
const SOCKETS: u32 = 2;
/// Handles are no addresses.
const SOCKET: u64 = 0x50c_0000;
const DEVICE: u64 = 0xdef_0000;

/// How often the library was started.
static USERS: AtomicU32 = AtomicU32::new(0);

fn machine() -> Result<&'static Machine, u32> {
    if USERS.load(Ordering::Acquire) == 0 {
        return Err(NOT_INITIALISED);
    }
    unisono_emulator::machine().map_err(|_| NOT_INITIALISED)
}

/// The runtime's number of a device.
fn device(handle: u64) -> Result<u32, u32> {
    let index = u32::try_from(handle.wrapping_sub(DEVICE)).map_err(|_| INVALID)?;
    let there = index < machine()?.facts.devices;
    there.then_some(index).ok_or(INVALID)
}

fn code(result: Result<(), u32>) -> u32 {
    result.err().unwrap_or(SUCCESS)
}

unsafe fn give<T>(to: *mut T, value: T) -> Result<(), u32> {
    if to.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the caller's.
    unsafe { to.write(value) };
    Ok(())
}

/// How many there are; which, too, where there is room.
unsafe fn list(all: &[u64], count: *mut u32, to: *mut u64) -> Result<(), u32> {
    if count.is_null() {
        return Err(INVALID);
    }
    // SAFETY: the caller's: `count` elements of room, if there is any.
    unsafe {
        let room = count.read();
        count.write(all.len() as u32);
        if to.is_null() {
            return Ok(());
        }
        if (room as usize) < all.len() {
            return Err(OUT_OF_RESOURCES);
        }
        std::ptr::copy_nonoverlapping(all.as_ptr(), to, all.len());
    }
    Ok(())
}

/// As the library's manual says; so for all here.
#[unsafe(no_mangle)]
pub extern "C" fn amdsmi_init(flags: u64) -> u32 {
    let started = unisono_emulator::machine();
    let there = started.is_ok_and(|machine| {
        machine.facts.has(Capability::Management) && machine.facts.architecture.is_some()
    });
    if !there {
        return NO_SUCH_DEVICE;
    }
    if flags != DEVICES {
        return INVALID;
    }
    USERS.fetch_add(1, Ordering::AcqRel);
    SUCCESS
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub extern "C" fn amdsmi_shut_down() -> u32 {
    let less = |users: u32| users.checked_sub(1);
    let fewer = USERS.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
    code(fewer.map(|_| ()).map_err(|_| NOT_INITIALISED))
}

/// Three numbers and a text's address; four numbers while they began with the year.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_lib_version(to: *mut u32) -> u32 {
    code((|| {
        let release = machine()?.facts.driver / 10_000_000;
        let numbers: &[u32] = match release {
            ..6 => &[23, 1, 5, 0],
            6 => &[24, 6, 3, 0],
            7 => &[26, 0, 2],
            _ => &[20 + release, 0, 0],
        };
        for (at, number) in numbers.iter().enumerate() {
            // SAFETY: the caller's: room for the struct.
            unsafe { give(to.wrapping_add(at), *number) }?;
        }
        // SAFETY: as above; the text's address is aligned behind the numbers.
        unsafe {
            give(
                to.wrapping_add(4).cast::<*const u8>(),
                c"emulated".as_ptr().cast(),
            )
        }
    })())
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn amdsmi_get_socket_handles(count: *mut u32, to: *mut u64) -> u32 {
    let all: Vec<_> = (0..u64::from(SOCKETS)).map(|at| SOCKET + at).collect();
    // SAFETY: the caller's.
    code(machine().and_then(|_| unsafe { list(&all, count, to) }))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn amdsmi_get_processor_handles(
    socket: u64,
    count: *mut u32,
    to: *mut u64,
) -> u32 {
    code((|| {
        let socket = u32::try_from(socket.wrapping_sub(SOCKET)).map_err(|_| INVALID)?;
        if socket >= SOCKETS {
            return Err(INVALID);
        }
        let devices = (0..machine()?.facts.devices).rev();
        let own = devices.filter(|device| device % SOCKETS == socket);
        let all: Vec<_> = own.map(|device| DEVICE + u64::from(device)).collect();
        // SAFETY: the caller's.
        unsafe { list(&all, count, to) }
    })())
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn amdsmi_get_gpu_device_bdf(handle: u64, to: *mut u64) -> u32 {
    code(device(handle).and_then(|device| {
        let (domain, bus) = machine()?.facts.bus_of(device);
        // SAFETY: the caller's.
        unsafe { give(to, u64::from(domain) << 16 | u64::from(bus) << 8) }
    }))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn amdsmi_topo_get_link_type(
    from: u64,
    to: u64,
    hops: *mut u64,
    kind: *mut u32,
) -> u32 {
    code((|| {
        let (from, to) = (device(from)?, device(to)?);
        let facts = &machine()?.facts;
        if !facts.has(Capability::LinkTypes) {
            return Err(NOT_SUPPORTED);
        }
        let joined = facts.is_joined(from, to);
        // The real one says 1 of every way over lanes, however many they are.
        // SAFETY: the caller's.
        unsafe {
            give(hops, if joined { 1 } else { 2 })?;
            give(kind, if joined { XGMI } else { PCIE })
        }
    })())
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn amdsmi_topo_get_link_weight(from: u64, to: u64, weight: *mut u64) -> u32 {
    code((|| {
        let (from, to) = (device(from)?, device(to)?);
        let facts = &machine()?.facts;
        let found = match (facts.lanes_between(from, to), facts.is_joined(from, to)) {
            (1.., _) => WEIGHT_NEAR,
            (0, true) => WEIGHT_FAR,
            (0, false) => WEIGHT_HOST,
        };
        // SAFETY: the caller's.
        unsafe { give(weight, found) }
    })())
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn amdsmi_get_minmax_bandwidth_between_processors(
    from: u64,
    to: u64,
    least: *mut u64,
    most: *mut u64,
) -> u32 {
    code((|| {
        let facts = &machine()?.facts;
        let lanes = facts.lanes_between(device(from)?, device(to)?);
        if lanes == 0 {
            return Err(NOT_SUPPORTED);
        }
        let lane = facts.fabric.lane_bytes_per_second / 1_000_000;
        // SAFETY: the caller's.
        unsafe {
            give(least, lane)?;
            give(most, lane * lanes)
        }
    })())
}
