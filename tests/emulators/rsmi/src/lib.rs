//! An emulated `librocm_smi64.so`: what the rocm plugin asks of the management library.
//!
//! Devices are those of the box file, in an order of their own, as the real library's need not be the
//! runtime's; lanes as it lists them, without those that are dead. Rates are given for pairs with a lane
//! between them, in megabytes a second, as the real one does.
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
const INVALID_ARGS: u32 = 1;
const NOT_SUPPORTED: u32 = 2;
const INPUT_OUT_OF_BOUNDS: u32 = 7;
const INIT_ERROR: u32 = 8;

/// Kinds of links.
const PCIE: u32 = 1;
const XGMI: u32 = 2;
/// Weights of ways: one link between devices, more, through the host.
const WEIGHT_NEAR: u64 = 15;
const WEIGHT_FAR: u64 = 30;
const WEIGHT_HOST: u64 = 40;

/// How often the library was started.
static USERS: AtomicU32 = AtomicU32::new(0);

fn machine() -> Result<&'static Machine, u32> {
    if USERS.load(Ordering::Acquire) == 0 {
        return Err(INIT_ERROR);
    }
    unisono_emulator::machine().map_err(|_| INIT_ERROR)
}

/// The runtime's number of a device: the library counts from the other end.
fn device(index: u32) -> Result<u32, u32> {
    let devices = machine()?.facts.devices;
    devices.checked_sub(index + 1).ok_or(INPUT_OUT_OF_BOUNDS)
}

fn code(result: Result<(), u32>) -> u32 {
    result.err().unwrap_or(SUCCESS)
}

unsafe fn give<T>(to: *mut T, value: T) -> Result<(), u32> {
    if to.is_null() {
        return Err(INVALID_ARGS);
    }
    // SAFETY: the caller's.
    unsafe { to.write(value) };
    Ok(())
}

/// Lanes between two devices.
fn lanes(from: u32, to: u32) -> Result<u64, u32> {
    Ok(machine()?.facts.lanes_between(from, to))
}

/// Whether there is a way over lanes at all.
fn joined(from: u32, to: u32) -> Result<bool, u32> {
    Ok(machine()?.facts.is_joined(from, to))
}

/// As the library's manual says; so for all here.
#[unsafe(no_mangle)]
pub extern "C" fn rsmi_init(flags: u64) -> u32 {
    let started = unisono_emulator::machine();
    let there = started.is_ok_and(|machine| {
        machine.facts.has(Capability::Management) && machine.facts.architecture.is_some()
    });
    if !there {
        return INIT_ERROR;
    }
    if flags != 0 {
        return INVALID_ARGS;
    }
    USERS.fetch_add(1, Ordering::AcqRel);
    SUCCESS
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub extern "C" fn rsmi_shut_down() -> u32 {
    let less = |users: u32| users.checked_sub(1);
    let fewer = USERS.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less);
    code(fewer.map(|_| ()).map_err(|_| INIT_ERROR))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn rsmi_num_monitor_devices(count: *mut u32) -> u32 {
    // SAFETY: the caller's.
    code(machine().and_then(|machine| unsafe { give(count, machine.facts.devices) }))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn rsmi_dev_pci_id_get(index: u32, to: *mut u64) -> u32 {
    code(device(index).and_then(|device| {
        let (domain, bus) = machine()?.facts.bus_of(device);
        // SAFETY: the caller's.
        unsafe { give(to, u64::from(domain) << 32 | u64::from(bus) << 8) }
    }))
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "the library's manual")]
pub unsafe extern "C" fn rsmi_topo_get_link_type(
    from: u32,
    to: u32,
    hops: *mut u64,
    kind: *mut u32,
) -> u32 {
    code((|| {
        let (from, to) = (device(from)?, device(to)?);
        let joined = joined(from, to)?;
        if !machine()?.facts.has(Capability::LinkTypes) {
            return Err(NOT_SUPPORTED);
        }
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
pub unsafe extern "C" fn rsmi_topo_get_link_weight(from: u32, to: u32, weight: *mut u64) -> u32 {
    code((|| {
        let (from, to) = (device(from)?, device(to)?);
        let found = match (lanes(from, to)?, joined(from, to)?) {
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
pub unsafe extern "C" fn rsmi_minmax_bandwidth_get(
    from: u32,
    to: u32,
    least: *mut u64,
    most: *mut u64,
) -> u32 {
    code((|| {
        let lanes = lanes(device(from)?, device(to)?)?;
        if lanes == 0 {
            return Err(NOT_SUPPORTED);
        }
        let lane = machine()?.facts.fabric.lane_bytes_per_second / 1_000_000;
        // SAFETY: the caller's.
        unsafe {
            give(least, lane)?;
            give(most, lane * lanes)
        }
    })())
}
