//! Memory: allocation, registration, export and import.

use core::ffi::c_void;

use crate::{Device, Error, Memory, Status};

use crate::layout::abi_struct;

/// What memory is for.
pub mod memory_kind {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const DATA: u32 = 1;
    pub const SIGNAL: u32 = 2;
    pub const BELL: u32 = 3;
    pub const STAGING: u32 = 4;
    pub const PROCESS: u32 = 5;
}

/// Bits of a request.
pub mod memory_flag {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const EXPORTABLE: u64 = 1;
    pub const LAZY: u64 = 2;
}

/// Ways to export memory.
pub mod export {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const PROCESS: u32 = 1;
    pub const DMABUF: u32 = 2;
}

/// Bytes of an exported description or address, at most.
pub const EXPORT_MAX: usize = 256;

abi_struct! {
    /// `unisono_memory_request`.
    pub struct MemoryRequest = "unisono_memory_request" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// UNISONO_MEMORY_DATA...
        pub kind: u32,
        /// See `unisono_plugin.h`.
        pub bytes: u64,
        /// A power of two; 0 means 64
        pub align: u64,
        /// UNISONO_MEMORY_EXPORTABLE, ..._LAZY
        pub flags: u64,
    }
}

abi_struct! {
    /// `unisono_memory_view`.
    pub struct MemoryView = "unisono_memory_view" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// UNISONO_PLACE_*, as seen from the device that was asked
        pub place: u32,
        /// Address for commands on this device
        pub base: u64,
        /// Address for the CPU, 0 if it cannot load and store it
        pub host: u64,
        /// See `unisono_plugin.h`.
        pub bytes: u64,
        /// The vendor's allocation id: another one at the same address differs
        pub generation: u64,
        /// Id of the device that it belongs to
        pub device: [u8; 16],
    }
}

abi_struct! {
    /// `unisono_memory_table`.
    pub struct MemoryTable = "unisono_memory_table" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// Zero.
        pub reserved: u32,
        /// Zeroed memory. May block.
        pub alloc: Option<unsafe extern "C" fn(device: Device, request: *const MemoryRequest, out: *mut Memory, view: *mut MemoryView, error: *mut Error) -> Status>,
        /// Frees, deregisters, unwraps or unmaps, by how the handle was made. May block.
        pub free: Option<unsafe extern "C" fn(memory: Memory)>,
        /// Make existing host memory fast to use for this device. May block.
        pub register_host: Option<unsafe extern "C" fn(device: Device, ptr: *mut c_void, bytes: u64, out: *mut Memory, view: *mut MemoryView, error: *mut Error) -> Status>,
        /// Take device memory that the caller owns and keeps alive.
        pub wrap: Option<unsafe extern "C" fn(device: Device, base: u64, bytes: u64, out: *mut Memory, view: *mut MemoryView, error: *mut Error) -> Status>,
        /// What lies at an address: AGAIN if it is not this plugin's.
        pub query: Option<unsafe extern "C" fn(device: Device, address: u64, view: *mut MemoryView, error: *mut Error) -> Status>,
        /// A description that another process's device can import; *len <= UNISONO_EXPORT_MAX.
        pub export_memory: Option<unsafe extern "C" fn(memory: Memory, how: u32, out: *mut c_void, cap: u64, len: *mut u64, error: *mut Error) -> Status>,
        /// Map it. Proves that what was mapped is what was exported, and that it cannot shrink. In the exporting process it gives the exporter's own address. May block.
        pub import_memory: Option<unsafe extern "C" fn(device: Device, description: *const c_void, len: u64, out: *mut Memory, view: *mut MemoryView, error: *mut Error) -> Status>,
        /// Make a NIC's finished writes to this device's memory visible to it, before the host or the stream looks at a flag that came with them.
        pub flush_remote_writes: Option<unsafe extern "C" fn(device: Device, error: *mut Error) -> Status>,
    }
}
