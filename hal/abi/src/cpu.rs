//! What the host may do by itself on devices that are the CPU.

use crate::{CommandReduce, Instance, Status};

use crate::layout::abi_struct;

/// The name of the optional table [`CpuTable`].
pub const CPU_INTERFACE: &str = "unisono.cpu";

abi_struct! {
    /// `unisono_cpu_table`. Since 1.2.
    pub struct CpuTable = "unisono_cpu_table" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// Zero.
        pub reserved: u32,
        /// After flags were raised: wakes whom SIGNALs with these bells would wake.
        pub ring: Option<unsafe extern "C" fn(instance: Instance, bells: *const u64, count: u32)>,
        /// What a REDUCE does, with the same bits. Anything but OK: nothing was done.
        pub reduce: Option<unsafe extern "C" fn(instance: Instance, command: *const CommandReduce) -> Status>,
    }
}
