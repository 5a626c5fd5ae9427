//! Links between devices: NVLink and NVSwitch as the management library tells them, else PCIe.

use std::sync::OnceLock;

use libloading::os::unix::Library;
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use unisono_plugin::{DeviceId, LinkInfo, without_signals};
use unisono_plugin_accelerator::{local_link, mapped_link, open_library};

use crate::api::Api;
use crate::facts::{Facts, can_access};

/// Lanes that a device can have.
const LANES: u32 = 18;
/// What a small message takes: a write over the link, and the flag in host memory.
const NVLINK_LATENCY: u64 = 2_000;
const PCIE_LATENCY: u64 = 3_000;
const LOCAL_LATENCY: u64 = 1_500;

/// What the management library says of one device.
#[derive(Debug, Default)]
struct Lanes {
    /// Lanes to each other device, by its number, with what one carries.
    direct: Vec<(usize, u64)>,
    /// What the lanes to switches carry, together.
    switched: u64,
    /// What the way to the host carries.
    pcie: u64,
}

/// The links of all pairs that can access each other; and why they are guessed, if they are.
pub(crate) fn links(api: &Api, devices: &[Facts], ask: bool) -> (Vec<LinkInfo>, Option<String>) {
    let (lanes, why) = match ask.then(|| lanes(devices)) {
        Some(Ok(lanes)) => (lanes, None),
        Some(Err(error)) => (Vec::new(), Some(error.to_string())),
        None => (Vec::new(), None),
    };
    let mut links = Vec::new();
    for (from, a) in devices.iter().enumerate() {
        links.push(local_link(&a.info, LOCAL_LATENCY));
        for (to, b) in devices.iter().enumerate() {
            if from != to && can_access(api, a.device, b.device) {
                links.push(link(&lanes, (from, a.info.id), (to, b.info.id)));
            }
        }
    }
    (links, why)
}

/// The best link of a pair.
fn link(lanes: &[Lanes], (from, a): (usize, DeviceId), (to, b): (usize, DeviceId)) -> LinkInfo {
    let none = Lanes::default();
    let (near, far) = (
        lanes.get(from).unwrap_or(&none),
        lanes.get(to).unwrap_or(&none),
    );
    let of_pair = near.direct.iter().filter(|(other, _)| *other == to);
    let direct: u64 = of_pair.map(|(_, rate)| rate).sum();
    if direct > 0 {
        return mapped_link((a, b), "nvlink", direct, NVLINK_LATENCY);
    }
    // What leaves a device for all others shares its lanes, or its slot.
    let shared = from as u32 + 1;
    let switched = near.switched.min(far.switched);
    if switched > 0 {
        return LinkInfo {
            shared,
            ..mapped_link((a, b), "nvlink", switched, NVLINK_LATENCY)
        };
    }
    let rate = near.pcie.min(far.pcie);
    let rate = if rate == 0 { pcie(4, 16) } else { rate };
    LinkInfo {
        shared,
        ..mapped_link((a, b), "pcie", rate, PCIE_LATENCY)
    }
}

/// What a PCIe slot carries each way, after the protocol.
fn pcie(generation: u32, lanes: u32) -> u64 {
    let lane = match generation {
        0..=3 => 750_000_000,
        4 => 1_500_000_000,
        5 => 3_100_000_000,
        _ => 6_200_000_000,
    };
    lane * u64::from(lanes)
}

/// What a lane of an NVLink generation carries each way.
const fn nvlink(version: u32) -> u64 {
    match version {
        0 | 1 => 20_000_000_000,
        2..=4 => 25_000_000_000,
        _ => 50_000_000_000,
    }
}

/// Loads the management library for good: each time that it is loaded anew it keeps a descriptor for as long as the process
/// lives (an eventfd of its first `nvmlInit`; driver 580).
fn keep_loaded() {
    static KEPT: OnceLock<Option<Library>> = OnceLock::new();
    // Where it is not, `Nvml::init` says so.
    let _ = KEPT.get_or_init(|| open_library(&["libnvidia-ml.so.1", "libnvidia-ml.so"]).ok());
}

fn lanes(devices: &[Facts]) -> Result<Vec<Lanes>, NvmlError> {
    keep_loaded();
    let nvml = without_signals(Nvml::init)?;
    devices
        .iter()
        .map(|facts| {
            let device = nvml.device_by_pci_bus_id(facts.info.pci.as_str())?;
            let slot = (
                device.max_pcie_link_gen().unwrap_or(4),
                device.max_pcie_link_width().unwrap_or(16),
            );
            let mut found = Lanes {
                pcie: pcie(slot.0, slot.1),
                ..Lanes::default()
            };
            for index in 0..LANES {
                let lane = device.link_wrapper_for(index);
                // Past the last lane, and on devices without any, the library says so by an error.
                if !lane.is_active().unwrap_or(false) {
                    continue;
                }
                let rate = nvlink(lane.version().unwrap_or(3));
                let end = lane.remote_pci_info().ok();
                let end = end.and_then(|pci| same_slot(devices, &pci.bus_id));
                match end {
                    Some(other) => found.direct.push((other, rate)),
                    // What is no device of this process is a switch: devices that are hidden from it
                    // cannot be told apart, and the driver then allows no access either.
                    None => found.switched += rate,
                }
            }
            Ok(found)
        })
        .collect()
}

/// The device in a slot. The management library writes eight digits of domain, the driver four.
fn same_slot(devices: &[Facts], bus: &str) -> Option<usize> {
    let bus = bus.to_ascii_lowercase();
    let short = |text: &str| {
        let (domain, rest) = text.split_once(':')?;
        Some((u32::from_str_radix(domain, 16).ok()?, rest.to_owned()))
    };
    let wanted = short(&bus)?;
    devices
        .iter()
        .position(|facts| short(&facts.info.pci) == Some(wanted.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> DeviceId {
        DeviceId([n; 16])
    }

    #[test]
    fn a_dead_lane_narrows_its_link() {
        let lanes = [
            Lanes {
                direct: vec![(1, 25), (1, 25)],
                ..Lanes::default()
            },
            Lanes {
                direct: vec![(0, 25)],
                ..Lanes::default()
            },
        ];
        assert_eq!(link(&lanes, (0, id(0)), (1, id(1))).bytes_per_second, 50);
        assert_eq!(link(&lanes, (1, id(1)), (0, id(0))).bytes_per_second, 25);
    }

    #[test]
    fn through_a_switch_the_narrower_end_counts_and_is_shared() {
        let lane = |switched| Lanes {
            switched,
            ..Lanes::default()
        };
        let lanes = [lane(450), lane(425), lane(450)];
        let there = link(&lanes, (0, id(0)), (1, id(1)));
        let back = link(&lanes, (1, id(1)), (2, id(2)));
        assert_eq!((there.bytes_per_second, back.bytes_per_second), (425, 425));
        assert_eq!((there.shared, back.shared), (1, 2));
        assert_eq!(there.kind, "nvlink");
    }

    #[test]
    fn without_lanes_it_is_pcie() {
        let found = link(&[], (0, id(0)), (1, id(1)));
        assert_eq!(
            (found.kind.as_str(), found.bytes_per_second),
            ("pcie", 24_000_000_000)
        );
    }
}
