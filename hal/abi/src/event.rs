//! Events and their four sides.

use crate::{Device, Error, Event, Status};

use crate::layout::abi_struct;

abi_struct! {
    /// `unisono_event_table`.
    pub struct EventTable = "unisono_event_table" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// Zero.
        pub reserved: u32,
        /// See `unisono_plugin.h`.
        pub create: Option<unsafe extern "C" fn(device: Device, out: *mut Event, error: *mut Error) -> Status>,
        /// See `unisono_plugin.h`.
        pub wrap: Option<unsafe extern "C" fn(device: Device, native: u64, out: *mut Event, error: *mut Error) -> Status>,
        /// See `unisono_plugin.h`.
        pub destroy: Option<unsafe extern "C" fn(event: Event)>,
        /// See `unisono_plugin.h`.
        pub native: Option<unsafe extern "C" fn(event: Event) -> u64>,
        /// Complete it from the host: any thread, never blocks.
        pub host_signal: Option<unsafe extern "C" fn(event: Event, error: *mut Error) -> Status>,
        /// OK if complete, AGAIN if not. A new event, or one recorded again, is not complete.
        pub host_query: Option<unsafe extern "C" fn(event: Event, error: *mut Error) -> Status>,
    }
}
