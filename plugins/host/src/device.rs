//! The CPU as a device.

use std::fs;
use std::sync::Arc;

use unisono_plugin::abi::{command_kind, reach, reduction, stream_can};
use unisono_plugin::{
    Device, DeviceId, DeviceInfo, DeviceKind, EventSides, HostRange, MemoryRequest, MemoryView,
    Result, Side, SupportQuery,
};

use crate::config::Config;
use crate::event::HostEvent;
use crate::fork;
use crate::memory::HostMemory;
use crate::stream::HostStream;

/// The one device of this plugin.
#[derive(Debug)]
pub struct HostDevice {
    config: Arc<Config>,
    id: DeviceId,
}

impl HostDevice {
    pub(crate) fn open(config: Arc<Config>) -> Result<Self> {
        fork::check()?;
        Ok(Self {
            config,
            id: id(&cpu_name()),
        })
    }
}

/// What the device is.
pub(crate) fn info(config: &Config) -> DeviceInfo {
    let name = cpu_name();
    DeviceInfo {
        kind: DeviceKind::Cpu,
        id: id(&name),
        name,
        pci: String::new(),
        numa: None,
        queues: 64,
        memory_bytes: memory_bytes(),
        reach: reach::HOST | reach::PROCESS | reach::PEER,
        streams: stream_can::POLLED | stream_can::CHECKS_WORDS | stream_can::RINGS,
        reduce_bytes_per_second: config.reduce_bandwidth,
        events: EventSides {
            device_signal: Side::Native,
            device_wait: Side::Native,
            host_signal: Side::Native,
            host_query: Side::Native,
        },
        event_reach: 1,
    }
}

/// The same in every process of a node, and over its restarts: FNV-1a of what the CPU is.
fn id(name: &str) -> DeviceId {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = b"unisono host cpu\0".iter().chain(name.as_bytes());
    let hash = bytes.fold(OFFSET, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(PRIME)
    });
    DeviceId(hash.to_be_bytes())
}

/// "model name" of `/proc/cpuinfo`, which not every architecture has.
fn cpu_name() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "model name").then(|| value.trim().to_owned())
    });
    model.unwrap_or_else(|| format!("{} CPU", std::env::consts::ARCH))
}

/// Installed memory, 0 if the system does not say.
fn memory_bytes() -> u64 {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = total.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

impl Device for HostDevice {
    type Memory = HostMemory;
    type Stream = HostStream;
    type Event = HostEvent;

    fn supports(&self, query: &SupportQuery) -> bool {
        match query.command {
            command_kind::REDUCE => self.config.kernel(query.dtype, query.reduction).is_some(),
            command_kind::SCALE => self.config.kernel(query.dtype, reduction::PROD).is_some(),
            command_kind::COPY
            | command_kind::CALL
            | command_kind::READ
            | command_kind::SIGNAL
            | command_kind::WAIT
            | command_kind::RECORD
            | command_kind::WAIT_EVENT => true,
            _ => false,
        }
    }

    fn alloc(&self, request: &MemoryRequest) -> Result<HostMemory> {
        HostMemory::alloc(request, self.id)
    }

    fn register_host(&self, range: HostRange) -> Result<HostMemory> {
        HostMemory::borrow(range, self.id)
    }

    fn wrap_memory(&self, base: u64, bytes: u64) -> Result<HostMemory> {
        HostMemory::borrow(
            HostRange {
                address: base,
                bytes,
            },
            self.id,
        )
    }

    fn query_memory(&self, address: u64) -> Result<Option<MemoryView>> {
        HostMemory::query(address)
    }

    fn import_memory(&self, description: &[u8]) -> Result<HostMemory> {
        HostMemory::import(description, self.id)
    }

    /// A NIC's writes to host memory are visible to the CPU in order: nothing is left to do.
    fn flush_remote_writes(&self) -> Result<()> {
        fork::check()
    }

    /// Streams run where they are polled: priority means nothing.
    fn create_stream(&self, _: i64) -> Result<HostStream> {
        HostStream::new(Arc::clone(&self.config))
    }

    fn create_event(&self) -> Result<HostEvent> {
        fork::check()?;
        Ok(HostEvent::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_depends_on_the_cpu_alone() {
        assert_eq!(id("a"), id("a"));
        assert_ne!(id("a"), id("b"));
    }

    #[test]
    fn the_system_tells_its_memory() {
        assert!(memory_bytes() > 1 << 20);
        assert!(!cpu_name().is_empty());
    }

    #[test]
    fn it_supports_what_it_can_do() {
        let device = HostDevice::open(Arc::new(Config::for_tests())).unwrap();
        let query = |command, dtype, reduction| {
            device.supports(&SupportQuery {
                command,
                dtype,
                reduction,
                source: None,
                destination: None,
            })
        };
        assert!(query(command_kind::COPY, 0, 0));
        assert!(query(command_kind::REDUCE, 11, 1));
        assert!(!query(command_kind::REDUCE, 11, 7), "xor of floats");
        assert!(!query(command_kind::REDUCE, 99, 1));
        assert!(!query(command_kind::PUT, 0, 0));
        assert!(query(command_kind::SCALE, 9, 0) && !query(command_kind::SCALE, 99, 0));
        assert!(query(command_kind::CALL, 0, 0));
        assert!(query(command_kind::READ, 0, 0));
    }
}
