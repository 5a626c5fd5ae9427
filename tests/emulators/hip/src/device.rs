//! Devices, and which one is a thread's current.

use std::cell::Cell;
use std::ffi::c_char;
use std::sync::OnceLock;

use unisono_emulator::{BoxFile, End, Machine};
use unisono_emulator_cuda::answer::{Answer, give};
use unisono_emulator_cuda::code;
use unisono_emulator_cuda::context::{
    self, context_of, cuCtxEnablePeerAccess, cuCtxSetCurrent, cuDeviceCanAccessPeer,
    cuDevicePrimaryCtxRetain, cuInit,
};

use crate::answer::{from, hip};
use crate::attribute;

thread_local! {
    /// Every thread has a current device from the beginning: the first.
    static CURRENT: Cell<i32> = const { Cell::new(0) };
}

static STARTED: OnceLock<Answer> = OnceLock::new();

/// The machine: HIP starts itself with the first call.
pub fn machine() -> Answer<&'static Machine> {
    (*STARTED.get_or_init(|| {
        let machine = unisono_emulator::machine().map_err(|_| code::NO_DEVICE)?;
        if machine.facts.architecture.is_none() {
            return Err(code::NO_DEVICE);
        }
        // SAFETY: no flags; a device that there is, and room for its context.
        unsafe {
            from(cuInit(0))?;
            for device in 0..machine.facts.devices {
                let mut context = 0;
                from(cuDevicePrimaryCtxRetain(
                    &raw mut context,
                    device.cast_signed(),
                ))?;
            }
        }
        Ok(())
    }))?;
    context::machine()
}

/// Makes the thread's device the other interface's current one.
pub fn enter() -> Answer {
    machine()?;
    let device = context::device(CURRENT.get())?;
    // SAFETY: a context that is retained for ever.
    from(unsafe { cuCtxSetCurrent(context_of(device)) })
}

/// The release: 6 of ROCm 6.
pub fn release() -> Answer<u32> {
    Ok(machine()?.facts.driver / 10_000_000)
}

unsafe fn write_text(to: *mut c_char, room: i32, text: &str) -> Answer {
    let room = usize::try_from(room).map_err(|_| code::INVALID_VALUE)?;
    if to.is_null() || room <= text.len() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: the caller says that `to` has `room` bytes; the text and its end are no more.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, text.len());
        to.add(text.len()).write(0);
    }
    Ok(())
}

/// Links between two devices: the fewest one after another, over lanes that are up; none if there are
/// none.
fn hops(facts: &BoxFile, from: u32, to: u32) -> Option<u32> {
    let mut reached = vec![from];
    for hops in 1..=facts.devices {
        let neighbours = reached.iter().flat_map(|device| facts.lanes_of(*device));
        let neighbours = neighbours
            .filter(|lane| lane.up)
            .filter_map(|lane| match lane.end {
                End::Device(other) => Some(other),
                End::Switch(_) => None,
            });
        let mut next: Vec<u32> = neighbours.chain(reached.iter().copied()).collect();
        next.sort_unstable();
        next.dedup();
        if next.contains(&to) {
            return Some(hops);
        }
        reached = next;
    }
    None
}

hip! {
    plain fn hipInit(flags: u32) {
        machine()?;
        if flags == 0 { Ok(()) } else { Err(code::INVALID_VALUE) }
    }

    plain fn hipRuntimeGetVersion(version: *mut i32) {
        // SAFETY: the caller's.
        unsafe { give(version, machine()?.facts.driver.cast_signed()) }
    }

    plain fn hipGetDeviceCount(count: *mut i32) {
        // SAFETY: the caller's.
        unsafe { give(count, machine()?.facts.devices.cast_signed()) }
    }

    plain fn hipGetDevice(device: *mut i32) {
        machine()?;
        // SAFETY: the caller's.
        unsafe { give(device, CURRENT.get()) }
    }

    plain fn hipSetDevice(device: i32) {
        machine()?;
        context::device(device)?;
        CURRENT.set(device);
        Ok(())
    }

    plain fn hipDeviceGetName(name: *mut c_char, room: i32, device: i32) {
        let facts = &machine()?.facts;
        context::device(device)?;
        // SAFETY: the caller's.
        unsafe { write_text(name, room, &facts.model) }
    }

    /// The same in every process of a machine.
    plain fn hipDeviceGetUuid(uuid: *mut [u8; 16], device: i32) {
        machine()?;
        let mut bytes = *b"GPU-emulated-hip";
        bytes[15] = context::device(device)?.index as u8;
        // SAFETY: the caller's.
        unsafe { give(uuid, bytes) }
    }

    plain fn hipDeviceTotalMem(bytes: *mut usize, device: i32) {
        let all = machine()?.facts.memory_bytes;
        context::device(device)?;
        // SAFETY: the caller's.
        unsafe { give(bytes, all as usize) }
    }

    plain fn hipDeviceGetPCIBusId(text: *mut c_char, room: i32, device: i32) {
        let (domain, bus) = machine()?.facts.bus_of(context::device(device)?.index);
        // SAFETY: the caller's.
        unsafe { write_text(text, room, &format!("{domain:04x}:{bus:02x}:00.0")) }
    }

    plain fn hipDeviceGetAttribute(value: *mut i32, which: u32, device: i32) {
        let facts = &machine()?.facts;
        let found = attribute::value(facts, context::device(device)?.index, which);
        // SAFETY: the caller's.
        unsafe { give(value, found.ok_or(code::INVALID_VALUE)?) }
    }

    plain fn hipDeviceCanAccessPeer(can: *mut i32, from_device: i32, to: i32) {
        machine()?;
        // SAFETY: the caller's.
        from(unsafe { cuDeviceCanAccessPeer(can, from_device, to) })
    }

    current fn hipDeviceEnablePeerAccess(peer: i32, flags: u32) {
        let peer = context_of(context::device(peer)?);
        // SAFETY: a context that is retained for ever.
        from(unsafe { cuCtxEnablePeerAccess(peer, flags) })
    }

    /// Types: PCIe 2, xGMI 4.
    plain fn hipExtGetLinkTypeAndHopCount(a: i32, b: i32, kind: *mut u32, count: *mut u32) {
        let facts = &machine()?.facts;
        let (a, b) = (context::device(a)?.index, context::device(b)?.index);
        if a == b {
            return Err(code::INVALID_DEVICE);
        }
        let hops = hops(facts, a, b);
        // SAFETY: the caller's.
        unsafe {
            give(kind, if hops.is_some() { 4 } else { 2 })?;
            give(count, hops.unwrap_or(2))
        }
    }

    current fn hipMemGetInfo(free: *mut usize, total: *mut usize) {
        let (device, all) = (context::current()?, machine()?.facts.memory_bytes);
        // SAFETY: the caller's.
        unsafe {
            give(free, (all - device.used()) as usize)?;
            give(total, all as usize)
        }
    }

    /// Whether devices can be asked for their peers at all.
    plain fn hipDeviceGetP2PAttribute(value: *mut i32, which: u32, a: i32, b: i32) {
        let facts = &machine()?.facts;
        let (a, b) = (context::device(a)?.index, context::device(b)?.index);
        let near = hops(facts, a, b);
        let peer = facts.reaches(a, b);
        let found = match which {
            // PerformanceRank, AccessSupported, NativeAtomicSupported
            0 => i32::from(near != Some(1)),
            1 => i32::from(peer),
            2 => i32::from(peer && near.is_some()),
            _ => return Err(code::INVALID_VALUE),
        };
        // SAFETY: the caller's.
        unsafe { give(value, found) }
    }
}
