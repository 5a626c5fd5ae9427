//! What the host may do by itself on devices that are the CPU.

use core::ffi::c_void;

use crate::{Combine, CommandReduce, Instance, Status};

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
        /// What a REDUCE of this type and reduction does with one run of elements, undivided and with the same bits: a
        /// function, and the context that it is called with. Anything but OK: there is none. Since 1.9.
        pub combiner: Option<unsafe extern "C" fn(instance: Instance, dtype: u16, reduction: u16, function: *mut Option<Combine>, context: *mut *mut c_void) -> Status>,
    }
}
