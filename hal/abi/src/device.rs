//! Devices and instances.

use core::ffi::{c_char, c_void};

use crate::{Device, Error, Instance, InstanceInfo, Status, Str};

use crate::layout::abi_struct;

/// Kinds of devices.
pub mod device_kind {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const CPU: u32 = 1;
    pub const GPU: u32 = 2;
    pub const NPU: u32 = 3;
    pub const NIC: u32 = 4;
    pub const OTHER: u32 = 5;
}

/// Bits: how a device's memory can be reached.
pub mod reach {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const HOST: u64 = 1;
    pub const PROCESS: u64 = 2;
    pub const PEER: u64 = 4;
    pub const DMABUF: u64 = 8;
}

/// Bits: what a device's streams can do.
pub mod stream_can {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const POLLED: u64 = 1;
    pub const CHECKS_WORDS: u64 = 2;
    pub const CAPTURE: u64 = 4;
    pub const RINGS: u64 = 8;
}

/// How a side of an event is provided.
pub mod side {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const ABSENT: u32 = 0;
    pub const NATIVE: u32 = 1;
    pub const EMULATED: u32 = 2;
    pub const DEVICE_SIGNAL_SHIFT: u32 = 0;
    pub const DEVICE_WAIT_SHIFT: u32 = 2;
    pub const HOST_SIGNAL_SHIFT: u32 = 4;
    pub const HOST_QUERY_SHIFT: u32 = 6;
}

/// Where memory lies.
pub mod place {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const DEVICE: u32 = 1;
    pub const HOST: u32 = 2;
    pub const IMPORTED: u32 = 3;
}

abi_struct! {
    /// `unisono_device_info`.
    pub struct DeviceInfo = "unisono_device_info" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// UNISONO_DEVICE_*
        pub kind: u32,
        /// Opaque, stable on this node, the same in every process
        pub id: [u8; 16],
        /// NUL-terminated
        pub name: [c_char; 64],
        /// "0000:17:00.0", empty if none: an attribute, never an identity
        pub pci: [c_char; 16],
        /// NUMA node, -1 if unknown
        pub numa: i32,
        /// Independent hardware queues; lanes a device never exceed it
        pub queues: u32,
        /// See `unisono_plugin.h`.
        pub memory_bytes: u64,
        /// UNISONO_REACH_*
        pub reach: u64,
        /// UNISONO_STREAM_*
        pub streams: u64,
        /// Rate of one REDUCE, result bytes; 0 if unknown
        pub reduce_bytes_per_second: u64,
        /// See `unisono_plugin.h`.
        pub event_sides: u32,
        /// 0 device, 1 process, 2 host
        pub event_reach: u32,
    }
}

abi_struct! {
    /// `unisono_support_query`.
    pub struct SupportQuery = "unisono_support_query" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// UNISONO_CMD_*
        pub command: u32,
        /// 0 where none
        pub dtype: u32,
        /// 0 where none
        pub reduction: u32,
        /// UNISONO_PLACE_*
        pub source: u32,
        /// UNISONO_PLACE_*
        pub destination: u32,
    }
}

abi_struct! {
    /// `unisono_instance_table`.
    pub struct InstanceTable = "unisono_instance_table" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// Zero.
        pub reserved: u32,
        /// May block (opens drivers). ERR_NO_DRIVER where the vendor's library is missing.
        pub create: Option<unsafe extern "C" fn(info: *const InstanceInfo, out: *mut Instance, error: *mut Error) -> Status>,
        /// See `unisono_plugin.h`.
        pub destroy: Option<unsafe extern "C" fn(instance: Instance)>,
        /// Writes at most cap entries, *count is how many there are.
        pub devices: Option<unsafe extern "C" fn(instance: Instance, out: *mut DeviceInfo, cap: u32, count: *mut u32, error: *mut Error) -> Status>,
        /// An optional table by name, NULL if the plugin has none.
        pub get_interface: Option<unsafe extern "C" fn(instance: Instance, id: Str) -> *const c_void>,
    }
}

abi_struct! {
    /// `unisono_device_table`.
    pub struct DeviceTable = "unisono_device_table" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// Zero.
        pub reserved: u32,
        /// See `unisono_plugin.h`.
        pub open: Option<unsafe extern "C" fn(instance: Instance, index: u32, out: *mut Device, error: *mut Error) -> Status>,
        /// See `unisono_plugin.h`.
        pub close: Option<unsafe extern "C" fn(device: Device)>,
        /// OK or ERR_UNSUPPORTED; asked when a plan is made, never discovered in submit.
        pub supports: Option<unsafe extern "C" fn(device: Device, query: *const SupportQuery) -> Status>,
    }
}
