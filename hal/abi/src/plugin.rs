//! The static record that a plugin answers its query with.

use core::ffi::c_char;

use crate::{
    DeviceTable, EventTable, InstanceTable, LinkTable, MemoryTable, Param, Str, StreamTable,
};

use crate::layout::abi_struct;

/// Sanitizers that a binary is built with.
pub mod sanitizer {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const NONE: u32 = 0;
    pub const ADDRESS: u32 = 1;
    pub const THREAD: u32 = 2;
    pub const MEMORY: u32 = 3;
}

/// "UNISON" in memory, little-endian.
pub const MAGIC: u64 = 0x4e4f_5349_4e55;
/// The major version: must match.
pub const ABI_MAJOR: u16 = 1;
/// The minor version of this crate.
pub const ABI_MINOR: u16 = 9;
/// The one symbol that a plugin exports.
pub const QUERY_SYMBOL: &str = "unisono_plugin_query";
/// The type of that symbol.
pub type QueryFn = unsafe extern "C" fn(host_major: u32, host_minor: u32) -> *const Plugin;

abi_struct! {
    /// `unisono_layout_entry`.
    pub struct LayoutEntry = "unisono_layout_entry" {
        /// NUL-terminated
        pub struct_name: *const c_char,
        /// See `unisono_plugin.h`.
        pub field: *const c_char,
        /// See `unisono_plugin.h`.
        pub offset: u32,
        /// See `unisono_plugin.h`.
        pub size: u32,
    }
}

abi_struct! {
    /// `unisono_plugin`.
    pub struct Plugin = "unisono_plugin" {
        /// See `unisono_plugin.h`.
        pub magic: u64,
        /// See `unisono_plugin.h`.
        pub abi_major: u16,
        /// See `unisono_plugin.h`.
        pub abi_minor: u16,
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// "host", "tcp"; [a-z0-9_-]{1,32}
        pub name: Str,
        /// Of the plugin
        pub version: Str,
        /// See `unisono_plugin.h`.
        pub vendor: Str,
        /// Of the binary, for reports; may be empty
        pub build_id: Str,
        /// Reserved for required behaviour: a bit the host does not know is refused
        pub features: u64,
        /// UNISONO_SANITIZER_*
        pub sanitizer: u32,
        /// See `unisono_plugin.h`.
        pub param_count: u32,
        /// See `unisono_plugin.h`.
        pub params: *const Param,
        /// Include/unisono_plugin_layout.h makes it
        pub layout: *const LayoutEntry,
        /// See `unisono_plugin.h`.
        pub layout_count: u32,
        /// See `unisono_plugin.h`.
        pub reserved0: u32,
        /// Mandatory: create, destroy, devices
        pub instance: *const InstanceTable,
        /// Mandatory for plugins with devices: open, close
        pub device: *const DeviceTable,
        /// See `unisono_plugin.h`.
        pub memory: *const MemoryTable,
        /// See `unisono_plugin.h`.
        pub stream: *const StreamTable,
        /// See `unisono_plugin.h`.
        pub event: *const EventTable,
        /// See `unisono_plugin.h`.
        pub link: *const LinkTable,
        /// Zero.
        pub reserved: [u64; 8],
    }
}
