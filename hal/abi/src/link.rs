//! Links: reports, and posted links.

use core::ffi::{c_char, c_void};

use crate::{Channel, Error, Instance, Link, QueueState, Sleep, Status, Waker};

use crate::layout::abi_struct;

/// Types of links.
pub mod link_type {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const MAPPED: u32 = 1;
    pub const POSTED: u32 = 2;
}

/// Scopes of links.
pub mod scope {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const NODE: u32 = 1;
    pub const NETWORK: u32 = 2;
    pub const PAIR: u32 = 3;
}

abi_struct! {
    /// `unisono_link_info`.
    pub struct LinkInfo = "unisono_link_info" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// UNISONO_LINK_*
        pub link_type: u32,
        /// UNISONO_SCOPE_*
        pub scope: u32,
        /// Links with the same number, not 0, share one capacity
        pub shared: u32,
        /// Device id; for NODE and NETWORK: any device of this plugin if all zero
        pub from: [u8; 16],
        /// See `unisono_plugin.h`.
        pub to: [u8; 16],
        /// "shm", "tcp", as in the cluster file
        pub kind: [c_char; 16],
        /// From -> to; of a mapped link: as `from` writes it
        pub bytes_per_second: u64,
        /// See `unisono_plugin.h`.
        pub latency_ns: u64,
        /// Since 1.1: 0 if there are no rails
        pub rail: u32,
        /// Zero.
        pub reserved: u32,
        /// Since 1.6, of a mapped link: the same bytes as `to` reads them, where that is faster; else 0
        pub read_bytes_per_second: u64,
    }
}

abi_struct! {
    /// `unisono_link_request`.
    pub struct LinkRequest = "unisono_link_request" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// Rank in the channel
        pub peer: u32,
        /// Id of the local device that the link serves, of any plugin
        pub device: [u8; 16],
        /// See `unisono_plugin.h`.
        pub channel: *const Channel,
        /// What the peer's `address` gave
        pub peer_address: *const c_void,
        /// See `unisono_plugin.h`.
        pub peer_address_len: u64,
    }
}

abi_struct! {
    /// `unisono_link_statistics`.
    pub struct LinkStatistics = "unisono_link_statistics" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// See `unisono_plugin.h`.
        pub connections: u32,
        /// See `unisono_plugin.h`.
        pub bytes_sent: u64,
        /// See `unisono_plugin.h`.
        pub bytes_received: u64,
        /// See `unisono_plugin.h`.
        pub puts_sent: u64,
        /// See `unisono_plugin.h`.
        pub puts_received: u64,
        /// Strangers dropped by this instance
        pub refused: u64,
        /// Since 1.3: connections that were lost and made anew, by any path
        pub recovered: u64,
    }
}

abi_struct! {
    /// `unisono_link_table`.
    pub struct LinkTable = "unisono_link_table" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// Zero.
        pub reserved: u32,
        /// See `unisono_plugin.h`.
        pub report: Option<unsafe extern "C" fn(instance: Instance, out: *mut LinkInfo, cap: u32, count: *mut u32, error: *mut Error) -> Status>,
        /// Where peers of posted links reach this instance; *len <= UNISONO_EXPORT_MAX.
        pub address: Option<unsafe extern "C" fn(instance: Instance, out: *mut c_void, cap: u64, len: *mut u64, error: *mut Error) -> Status>,
        /// Both ends call it; it returns at once, poll connects. The lower rank dials.
        pub create: Option<unsafe extern "C" fn(instance: Instance, request: *const LinkRequest, out: *mut Link, error: *mut Error) -> Status>,
        /// See `unisono_plugin.h`.
        pub destroy: Option<unsafe extern "C" fn(link: Link)>,
        /// Let the peer write [ptr, ptr+bytes) as window `id`; the token goes to the peer's import_window by the control channel. Memory stays the caller's, and alive.
        pub export_window: Option<unsafe extern "C" fn(link: Link, id: u32, ptr: u64, bytes: u64, token: *mut c_void, cap: u64, len: *mut u64, error: *mut Error) -> Status>,
        /// See `unisono_plugin.h`.
        pub import_window: Option<unsafe extern "C" fn(link: Link, id: u32, token: *const c_void, len: u64, error: *mut Error) -> Status>,
        /// See `unisono_plugin.h`.
        pub close_window: Option<unsafe extern "C" fn(link: Link, id: u32, error: *mut Error) -> Status>,
        /// As for streams. poll also receives: the peer's puts land in the windows.
        pub submit: Option<unsafe extern "C" fn(link: Link, commands: *const c_void, bytes: u64, count: u32, accepted: *mut u32, error: *mut Error) -> Status>,
        /// See `unisono_plugin.h`.
        pub poll: Option<unsafe extern "C" fn(link: Link, budget: u64, state: *mut QueueState, error: *mut Error) -> Status>,
        /// See `unisono_plugin.h`.
        pub arm: Option<unsafe extern "C" fn(link: Link, allowed: u32, waker: *const Waker, sleep: *mut Sleep, error: *mut Error) -> Status>,
        /// See `unisono_plugin.h`.
        pub disarm: Option<unsafe extern "C" fn(link: Link)>,
        /// See `unisono_plugin.h`.
        pub query: Option<unsafe extern "C" fn(link: Link, state: *mut QueueState) -> Status>,
        /// See `unisono_plugin.h`.
        pub abort: Option<unsafe extern "C" fn(link: Link)>,
        /// Since 1.1
        pub statistics: Option<unsafe extern "C" fn(link: Link, out: *mut LinkStatistics) -> Status>,
        /// Since 1.8
        pub land: Option<unsafe extern "C" fn(link: Link, window: u32, offset: u64, bytes: u64, to: u64, flag: u64, value: u64, after_flag: u64, after_value: u64, error: *mut Error) -> Status>,
    }
}
