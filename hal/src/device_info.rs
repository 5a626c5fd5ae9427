//! What a device is and can do, parsed once from what its plugin reports.

use std::fmt;

use unisono_abi as abi;

use crate::error::text;

/// 16 opaque bytes that name a device on its node, the same in every process.
pub type DeviceId = [u8; 16];

/// A device, as its plugin describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its index in its plugin, for [`Instance::open`](crate::Instance::open).
    pub index: u32,
    /// Its identity.
    pub id: DeviceId,
    /// What it is.
    pub kind: DeviceKind,
    /// Its model or name.
    pub name: String,
    /// Its PCI address (`0000:17:00.0`), empty if it has none. An attribute, never an identity.
    pub pci: String,
    /// Its NUMA node.
    pub numa: Option<u32>,
    /// Independent hardware queues: a process uses no more lanes on it, in all communicators.
    pub queues: u32,
    /// Its memory in bytes, 0 if unknown.
    pub memory_bytes: u64,
    /// How its memory can be reached: bits of [`unisono_abi::reach`].
    pub reach: u64,
    /// What its streams can do: bits of [`unisono_abi::stream_can`].
    pub streams: u64,
    /// Result bytes a second of one reduction, 0 if unknown.
    pub reduce_bytes_per_second: u64,
    /// How the sides of its events are provided.
    pub events: EventSides,
    /// Where its events reach.
    pub event_reach: EventReach,
}

/// Kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// The processor of this machine.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// A neural processor.
    Npu,
    /// A network card.
    Nic,
    /// Something else, or a kind that this host does not know.
    Other,
}

/// How one side of an event is provided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Not at all.
    Absent,
    /// By the device.
    Native,
    /// By the plugin's host code.
    Emulated,
}

/// The four sides of a device's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSides {
    /// A stream completes it.
    pub device_signal: Side,
    /// A stream waits for it.
    pub device_wait: Side,
    /// The host completes it.
    pub host_signal: Side,
    /// The host asks whether it is complete.
    pub host_query: Side,
}

/// How far an event can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventReach {
    /// By the streams of its device.
    Device,
    /// By the devices of this process.
    Process,
    /// By the processes of this host.
    Host,
}

impl DeviceInfo {
    pub(crate) fn from_raw(index: u32, raw: &abi::DeviceInfo) -> Self {
        Self {
            index,
            id: raw.id,
            kind: match raw.kind {
                abi::device_kind::CPU => DeviceKind::Cpu,
                abi::device_kind::GPU => DeviceKind::Gpu,
                abi::device_kind::NPU => DeviceKind::Npu,
                abi::device_kind::NIC => DeviceKind::Nic,
                _ => DeviceKind::Other,
            },
            name: text(&raw.name),
            pci: text(&raw.pci),
            numa: u32::try_from(raw.numa).ok(),
            queues: raw.queues,
            memory_bytes: raw.memory_bytes,
            reach: raw.reach,
            streams: raw.streams,
            reduce_bytes_per_second: raw.reduce_bytes_per_second,
            events: EventSides::from_raw(raw.event_sides),
            event_reach: match raw.event_reach {
                2 => EventReach::Host,
                1 => EventReach::Process,
                _ => EventReach::Device,
            },
        }
    }

    /// Whether the device has every one of these bits of [`unisono_abi::reach`].
    #[must_use]
    pub const fn reaches(&self, bits: u64) -> bool {
        self.reach & bits == bits
    }

    /// Whether its streams have every one of these bits of [`unisono_abi::stream_can`].
    #[must_use]
    pub const fn streams_can(&self, bits: u64) -> bool {
        self.streams & bits == bits
    }
}

impl EventSides {
    const fn from_raw(sides: u32) -> Self {
        const fn side(bits: u32) -> Side {
            match bits & 3 {
                abi::side::NATIVE => Side::Native,
                abi::side::EMULATED => Side::Emulated,
                _ => Side::Absent,
            }
        }
        // The shifts of UNISONO_EVENT_*_SHIFT.
        Self {
            device_signal: side(sides),
            device_wait: side(sides >> 2),
            host_signal: side(sides >> 4),
            host_query: side(sides >> 6),
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Npu => "npu",
            Self::Nic => "nic",
            Self::Other => "other",
        })
    }
}
