//! What plugins report of their devices and links in the same way.

use unisono_plugin::{DeviceId, DeviceInfo, EventSides, LinkInfo, LinkType, Scope, Side};

/// Who does what of events: the device by the runtime, the host's signal by the plugin.
pub const EVENTS: EventSides = EventSides {
    device_signal: Side::Native,
    device_wait: Side::Native,
    host_signal: Side::Emulated,
    host_query: Side::Native,
};

/// What a device's memory carries where nobody says, read and written.
const LOCAL: u64 = 400_000_000_000;

/// A pair's link of its own.
#[must_use]
pub fn mapped_link(
    (from, to): (DeviceId, DeviceId),
    kind: &str,
    bytes_per_second: u64,
    latency_ns: u64,
) -> LinkInfo {
    LinkInfo {
        link_type: LinkType::Mapped,
        scope: Scope::Pair,
        shared: 0,
        from,
        to,
        kind: kind.to_owned(),
        bytes_per_second,
        read_bytes_per_second: 0,
        latency_ns,
        rail: 0,
    }
}

/// The link of two ranks on one device: its own memory, read and written.
#[must_use]
pub fn local_link(info: &DeviceInfo, latency_ns: u64) -> LinkInfo {
    let rate = match info.reduce_bytes_per_second {
        0 => LOCAL,
        // That reads twice and writes once.
        reduced => reduced * 3 / 2,
    };
    mapped_link((info.id, info.id), "local", rate, latency_ns)
}

/// The NUMA node of a slot, from the system.
#[must_use]
pub fn numa_of(pci: &str) -> Option<u32> {
    let path = format!("/sys/bus/pci/devices/{pci}/numa_node");
    let text = std::fs::read_to_string(path).ok()?;
    text.trim().parse::<i32>().ok()?.try_into().ok()
}

/// Queues of a device that are left for streams: as many as a variable of the vendor's or its default
/// says, less the plugin's own.
#[must_use]
pub fn queues_from(variable: &str, default: u32) -> u32 {
    let given = std::env::var(variable).ok();
    let given = given.and_then(|text| text.parse().ok());
    given.unwrap_or(default).clamp(2, 32) - 1
}
