//! What the runtime says of its devices.
#![allow(unsafe_code, reason = "calls the runtime")]

use unisono_plugin::abi::reach;
use unisono_plugin::{DeviceId, DeviceInfo, DeviceKind, Result};
use unisono_plugin_accelerator::EVENTS;

use crate::api::{self, Api};
use crate::error::check;

/// Streams of a device run apart from each other: as many lanes as anybody asks for.
const QUEUES: u32 = 64;

/// What is asked of a device once.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// Its number in this process.
    pub(crate) device: i32,
    pub(crate) info: DeviceInfo,
    /// What it is called: "Ascend910B2".
    pub(crate) model: String,
}

/// All devices, in the runtime's order.
pub(crate) fn all(api: &Api) -> Result<Vec<Facts>> {
    let mut count = 0;
    // SAFETY: writes a number.
    check("aclrtGetDeviceCount", unsafe {
        (api.device_count)(&raw mut count)
    })?;
    let count = i32::try_from(count).unwrap_or(0);
    let peers = |device| (0..count).any(|other| other != device && can_access(api, device, other));
    Ok((0..count)
        .map(|device| facts(api, device, peers(device)))
        .collect())
}

/// Whether one device can access another's memory.
pub(crate) fn can_access(api: &Api, from: i32, to: i32) -> bool {
    let mut can = 0;
    // SAFETY: writes a number.
    let code = unsafe { (api.can_access_peer)(&raw mut can, from, to) };
    code == 0 && can != 0
}

fn facts(api: &Api, device: i32, peers: bool) -> Facts {
    let model = api::model().unwrap_or_else(|| "Ascend".to_owned());
    let physical = physical(api, device);
    let mut id = *b"ascend-npu\0\0\0\0\0\0";
    id[12..].copy_from_slice(&physical.to_le_bytes());
    Facts {
        device,
        info: DeviceInfo {
            kind: DeviceKind::Npu,
            id: DeviceId(id),
            name: model.clone(),
            numa: None,
            // Devices behind the vendor's own bus have none.
            pci: String::new(),
            queues: QUEUES,
            memory_bytes: memory(&model),
            reach: reach::PROCESS | if peers { reach::PEER } else { 0 },
            streams: 0,
            reduce_bytes_per_second: rate(&model) / 3,
            events: EVENTS,
            event_reach: 1,
        },
        model,
    }
}

/// A device's memory, from its data sheet: the runtime tells only whoever makes a device its own, which
/// takes memory of each.
fn memory(model: &str) -> u64 {
    if is_first_generation(model) {
        32 << 30
    } else {
        64 << 30
    }
}

/// What a device's memory carries, from its data sheet.
fn rate(model: &str) -> u64 {
    if is_first_generation(model) {
        1_200_000_000_000
    } else {
        1_600_000_000_000
    }
}

/// The models before A2: "Ascend910", "Ascend910A", "Ascend910ProB", and "Ascend910B" without a digit.
pub(crate) fn is_first_generation(model: &str) -> bool {
    let Some(rest) = model.strip_prefix("Ascend910") else {
        return false;
    };
    let later = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    !(rest.starts_with('_') || rest.strip_prefix('B').is_some_and(later))
}

/// The device's number on its machine, which processes that see only some of the devices agree on.
fn physical(api: &Api, device: i32) -> u32 {
    let mut physical = device;
    if let Some(ask) = api.physical_device {
        // SAFETY: writes a number.
        if unsafe { ask(device, &raw mut physical) } == 0 {
            return physical.unsigned_abs();
        }
    }
    visible(
        std::env::var("ASCEND_RT_VISIBLE_DEVICES").ok().as_deref(),
        device,
    )
}

/// The n-th of the devices that the environment names.
fn visible(named: Option<&str>, device: i32) -> u32 {
    let number = device.unsigned_abs();
    let of = |text: &str| text.split(',').nth(number as usize)?.trim().parse().ok();
    named.and_then(of).unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_are_told_by_their_names() {
        for first in [
            "Ascend910",
            "Ascend910A",
            "Ascend910ProA",
            "Ascend910B",
            "Ascend910PremiumA",
        ] {
            assert!(is_first_generation(first), "{first}");
        }
        for later in [
            "Ascend910B1",
            "Ascend910B4-1",
            "Ascend910_9391",
            "Ascend310P3",
            "",
        ] {
            assert!(!is_first_generation(later), "{later}");
        }
    }

    #[test]
    fn the_environment_numbers_devices_anew() {
        assert_eq!(visible(None, 3), 3);
        assert_eq!(visible(Some("4, 6"), 1), 6);
        assert_eq!(visible(Some("4,6"), 2), 2);
        assert_eq!(visible(Some("all"), 0), 0);
    }
}
