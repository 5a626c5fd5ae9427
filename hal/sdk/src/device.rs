//! Devices: what they are, what they can do, and what they make.

use unisono_abi::{device_kind, place, side};

use crate::{
    Error, Event, HostRange, Memory, MemoryRequest, MemoryView, NoEvent, NoMemory, NoStream,
    Result, Stream,
};

/// Sixteen opaque bytes: stable on this node and the same in every process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub [u8; 16]);

/// Kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DeviceKind {
    /// A processor.
    Cpu = device_kind::CPU,
    /// A graphics processor.
    Gpu = device_kind::GPU,
    /// A neural processor.
    Npu = device_kind::NPU,
    /// A network card.
    Nic = device_kind::NIC,
    /// Anything else.
    Other = device_kind::OTHER,
}

/// How a device provides a side of its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Side {
    /// Not at all.
    #[default]
    Absent = side::ABSENT,
    /// By itself.
    Native = side::NATIVE,
    /// With the host's help.
    Emulated = side::EMULATED,
}

/// The four sides of a device's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventSides {
    /// RECORD.
    pub device_signal: Side,
    /// WAIT_EVENT.
    pub device_wait: Side,
    /// [`Event::host_signal`].
    pub host_signal: Side,
    /// [`Event::host_query`].
    pub host_query: Side,
}

impl EventSides {
    pub(crate) const fn raw(self) -> u32 {
        self.device_signal as u32
            | (self.device_wait as u32) << 2
            | (self.host_signal as u32) << 4
            | (self.host_query as u32) << 6
    }
}

/// What a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// What kind.
    pub kind: DeviceKind,
    /// Its identity.
    pub id: DeviceId,
    /// Its name; the host gets the first 63 bytes.
    pub name: String,
    /// "0000:17:00.0", empty if it has none.
    pub pci: String,
    /// Its NUMA node.
    pub numa: Option<u32>,
    /// Independent hardware queues.
    pub queues: u32,
    /// Its memory.
    pub memory_bytes: u64,
    /// Bits of [`abi::reach`](crate::abi::reach).
    pub reach: u64,
    /// Bits of [`abi::stream_can`](crate::abi::stream_can).
    pub streams: u64,
    /// Rate of one REDUCE in bytes of result, 0 if unknown.
    pub reduce_bytes_per_second: u64,
    /// What its events can do.
    pub events: EventSides,
    /// How far its events reach: 0 device, 1 process, 2 host.
    pub event_reach: u32,
}

/// Where memory lies, as seen from a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Place {
    /// On the device.
    Device = place::DEVICE,
    /// In host memory.
    Host = place::HOST,
    /// On another device or in another process.
    Imported = place::IMPORTED,
}

impl Place {
    pub(crate) const fn parse(raw: u32) -> Option<Self> {
        Some(match raw {
            place::DEVICE => Self::Device,
            place::HOST => Self::Host,
            place::IMPORTED => Self::Imported,
            _ => return None,
        })
    }
}

/// A question about one command: can the device do it?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SupportQuery {
    /// One of [`abi::command_kind`](crate::abi::command_kind).
    pub command: u16,
    /// One of [`abi::dtype`](crate::abi::dtype), 0 where there is none.
    pub dtype: u16,
    /// One of [`abi::reduction`](crate::abi::reduction), 0 where there is none.
    pub reduction: u16,
    /// Where it reads; `None` if it matters not, or is a place that this crate does not know.
    pub source: Option<Place>,
    /// Where it writes; as above.
    pub destination: Option<Place>,
}

/// An opened device. Any thread may call, at any time; dropping it closes it.
pub trait Device: Send + Sync + 'static {
    /// Whether the plugin has devices.
    const PRESENT: bool = true;
    /// Its memory, [`NoMemory`] if it has none.
    type Memory: Memory;
    /// Its streams, [`NoStream`] if it has none.
    type Stream: Stream<Event = Self::Event>;
    /// Its events, [`NoEvent`] if it has none.
    type Event: Event;

    /// Whether its streams can do a command. Asked when a plan is made.
    fn supports(&self, query: &SupportQuery) -> bool;

    /// Zeroed memory. May block.
    ///
    /// # Errors
    /// Out of memory; unsupported kinds.
    fn alloc(&self, request: &MemoryRequest) -> Result<Self::Memory> {
        Err(Error::unsupported(format!(
            "this device has no memory of kind {:?}",
            request.kind
        )))
    }

    /// Makes existing host memory, which the caller keeps alive, fast to use. May block.
    ///
    /// # Errors
    /// Unsupported unless written.
    fn register_host(&self, range: HostRange) -> Result<Self::Memory> {
        Err(Error::unsupported(format!(
            "cannot register host memory at {:#x}",
            range.address
        )))
    }

    /// Takes device memory that the caller owns and keeps alive.
    ///
    /// # Errors
    /// Unsupported unless written.
    fn wrap_memory(&self, base: u64, bytes: u64) -> Result<Self::Memory> {
        Err(Error::unsupported(format!(
            "cannot wrap {bytes} bytes at {base:#x}"
        )))
    }

    /// What lies at an address; `None` if it is not this plugin's.
    ///
    /// # Errors
    /// Unsupported unless written.
    fn query_memory(&self, address: u64) -> Result<Option<MemoryView>> {
        Err(Error::unsupported(format!(
            "cannot tell what lies at {address:#x}"
        )))
    }

    /// Maps what another process, or this one, exported. May block.
    ///
    /// # Errors
    /// Unsupported unless written; invalid if what was mapped is not what was exported.
    fn import_memory(&self, description: &[u8]) -> Result<Self::Memory> {
        Err(Error::unsupported(format!(
            "this device imports no memory ({} bytes of description)",
            description.len()
        )))
    }

    /// Makes a NIC's finished writes to this device's memory visible to it. Never blocks.
    ///
    /// # Errors
    /// What the driver says; unsupported where nothing makes them visible, so that no NIC is to write there.
    fn flush_remote_writes(&self) -> Result<()> {
        Err(Error::unsupported(
            "this device has no flush of remote writes",
        ))
    }

    /// A new stream. Higher priority is sooner, 0 is usual.
    ///
    /// # Errors
    /// Unsupported unless written.
    fn create_stream(&self, priority: i64) -> Result<Self::Stream> {
        Err(Error::unsupported(format!(
            "this device has no streams (priority {priority})"
        )))
    }

    /// Takes a stream of the vendor's, which the caller owns and keeps alive.
    ///
    /// # Errors
    /// Unsupported unless written.
    fn wrap_stream(&self, native: u64) -> Result<Self::Stream> {
        Err(Error::unsupported(format!(
            "cannot wrap a native stream ({native:#x})"
        )))
    }

    /// A new event, not complete.
    ///
    /// # Errors
    /// Unsupported unless written.
    fn create_event(&self) -> Result<Self::Event> {
        Err(Error::unsupported("this device has no events"))
    }

    /// Takes an event of the vendor's, which the caller owns and keeps alive.
    ///
    /// # Errors
    /// Unsupported unless written.
    fn wrap_event(&self, native: u64) -> Result<Self::Event> {
        Err(Error::unsupported(format!(
            "cannot wrap a native event ({native:#x})"
        )))
    }
}

/// For plugins without devices.
#[derive(Clone, Copy, Debug)]
pub enum NoDevice {}

impl Device for NoDevice {
    const PRESENT: bool = false;
    type Memory = NoMemory;
    type Stream = NoStream;
    type Event = NoEvent;

    fn supports(&self, _: &SupportQuery) -> bool {
        match *self {}
    }
}
