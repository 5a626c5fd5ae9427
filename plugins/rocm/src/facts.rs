//! What the runtime says of its devices.
#![allow(unsafe_code, reason = "calls the runtime")]

use std::ffi::{CStr, c_char};

use unisono_plugin::abi::{reach, stream_can};
use unisono_plugin::{DeviceId, DeviceInfo, DeviceKind, Result};
use unisono_plugin_accelerator::{EVENTS, numa_of, queues_from};

use crate::api::{Api, SUCCESS};
use crate::error::check;

/// Attributes, by the numbers that they have had since ROCm 5.
const MEMORY_BUS_WIDTH: u32 = 59;
const MEMORY_CLOCK_RATE: u32 = 60;
const MULTIPROCESSOR_COUNT: u32 = 63;

/// Hardware queues that the runtime gives a process, unless the environment says otherwise.
const QUEUES: u32 = 4;

/// What is asked of a device once.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The runtime's number of it, in this process.
    pub(crate) device: i32,
    pub(crate) info: DeviceInfo,
    /// Compute units.
    pub(crate) processors: u32,
}

/// Fixed text of the runtime's.
fn text(
    api: &Api,
    call: &str,
    fill: unsafe extern "C" fn(*mut c_char, i32, i32) -> u32,
    device: i32,
) -> Result<String> {
    let mut room = [0 as c_char; 256];
    // SAFETY: as much room as is said; NUL-terminated by the runtime, and here in any case.
    let code = unsafe { fill(room.as_mut_ptr(), room.len() as i32 - 1, device) };
    check(api, call, code)?;
    room[room.len() - 1] = 0;
    // SAFETY: terminated above.
    let text = unsafe { CStr::from_ptr(room.as_ptr()) };
    Ok(text.to_string_lossy().into_owned())
}

/// An attribute, 0 if this runtime does not know it.
fn attribute(api: &Api, which: u32, device: i32) -> u32 {
    let mut value = 0;
    // SAFETY: writes a number.
    let code = unsafe { (api.device_attribute)(&raw mut value, which, device) };
    if code == SUCCESS {
        u32::try_from(value).unwrap_or(0)
    } else {
        0
    }
}

/// All devices, in the runtime's order.
pub(crate) fn all(api: &Api) -> Result<Vec<Facts>> {
    let mut count = 0;
    // SAFETY: writes a number.
    let code = unsafe { (api.device_count)(&raw mut count) };
    check(api, "hipGetDeviceCount", code)?;
    let found: Result<Vec<Facts>> = (0..count)
        .map(|device| facts(api, device, 0..count))
        .collect();
    let mut found = found?;
    // Old runtimes give parts of one board one slot, too: then their order tells them apart, and
    // processes agree if they see the same devices.
    for index in 1..found.len() {
        let (before, rest) = found.split_at_mut(index);
        let facts = &mut rest[0];
        while before.iter().any(|other| other.info.id == facts.info.id) {
            facts.info.id.0[15] = facts.info.id.0[15].wrapping_add(1);
        }
    }
    Ok(found)
}

/// Whether one device can access another's memory.
pub(crate) fn can_access(api: &Api, from: i32, to: i32) -> bool {
    let mut can = 0;
    // SAFETY: writes a number.
    let code = unsafe { (api.can_access_peer)(&raw mut can, from, to) };
    code == SUCCESS && can != 0
}

/// What the runtime tells devices apart by; nothing but zeros if it does not.
fn uuid(api: &Api, device: i32) -> [u8; 16] {
    let mut uuid = [0; 16];
    // SAFETY: writes 16 bytes.
    let code = api
        .device_uuid
        .map(|ask| unsafe { ask(&raw mut uuid, device) });
    if code == Some(SUCCESS) { uuid } else { [0; 16] }
}

/// A device's identity: of the runtime's, which parts of one board may share, and of its slot. Processes
/// that see other devices agree on it.
fn identity(mut uuid: [u8; 16], pci: &str) -> DeviceId {
    for (to, from) in uuid.iter_mut().zip(pci.bytes()) {
        *to ^= from;
    }
    DeviceId(uuid)
}

fn facts(api: &Api, device: i32, mut all: std::ops::Range<i32>) -> Result<Facts> {
    let get = |which| attribute(api, which, device);
    let name = text(api, "hipDeviceGetName", api.device_name, device)?;
    let pci = text(api, "hipDeviceGetPCIBusId", api.device_pci, device)?.to_ascii_lowercase();
    let mut memory = 0;
    // SAFETY: writes a number.
    let code = unsafe { (api.device_memory)(&raw mut memory, device) };
    check(api, "hipDeviceTotalMem", code)?;
    let peers = all.any(|other| other != device && can_access(api, device, other));
    let reached = reach::PROCESS | if peers { reach::PEER } else { 0 };
    // Two transfers a clock, read twice and written once.
    let memory_rate =
        u64::from(get(MEMORY_CLOCK_RATE)) * 2000 * u64::from(get(MEMORY_BUS_WIDTH)) / 8;
    Ok(Facts {
        device,
        processors: get(MULTIPROCESSOR_COUNT),
        info: DeviceInfo {
            kind: DeviceKind::Gpu,
            id: identity(uuid(api, device), &pci),
            numa: numa_of(&pci),
            name,
            pci,
            queues: queues_from("GPU_MAX_HW_QUEUES", QUEUES),
            memory_bytes: memory as u64,
            reach: reached,
            streams: stream_can::CHECKS_WORDS | stream_can::CAPTURE,
            reduce_bytes_per_second: memory_rate / 3,
            events: EVENTS,
            event_reach: 1,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing but the part itself counts: neither which others are seen nor in what order.
    #[test]
    fn parts_of_one_board_are_told_apart_by_their_slots() {
        let board = *b"4af01b6e57e0ab12";
        let parts = ["0000:1b:00.0", "0000:1b:00.1"].map(|pci| identity(board, pci));
        assert_ne!(parts[0], parts[1]);
        assert_ne!(parts[0], identity(*b"4af01b6e57e0ab13", "0000:1b:00.0"));
        assert_eq!(&identity([0; 16], "0000:1b:00.0").0[..12], b"0000:1b:00.0");
    }
}
