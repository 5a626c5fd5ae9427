//! Attributes of devices, by the numbers that they have had since ROCm 5.

use unisono_emulator::{BoxFile, Capability};

/// The value of an attribute that the emulator knows.
pub fn value(facts: &BoxFile, device: u32, which: u32) -> Option<i32> {
    let (domain, bus) = facts.bus_of(device);
    Some(match which {
        // ComputeCapabilityMajor, Minor
        23 => facts.generation[0] as i32,
        61 => facts.generation[1] as i32,
        // MaxThreadsPerBlock
        56 => 1024,
        // MemoryBusWidth, MemoryClockRate: 8192 bits at 1.3 GHz.
        59 => 8192,
        60 => 1_300_000,
        // MultiprocessorCount
        63 => 4,
        // PciBusId, PciDeviceId, PciDomainID
        67 => bus as i32,
        68 => 0,
        69 => domain as i32,
        // WarpSize
        87 => 64,
        // CanUseStreamWaitValue
        10_013 => i32::from(facts.has(Capability::StreamMemory)),
        _ => return None,
    })
}
