//! What streams and links have in common: state and sleep.

use crate::layout::abi_struct;

/// States of a queue.
pub mod queue_state {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const IDLE: u32 = 0;
    pub const READY: u32 = 1;
    pub const WAITING: u32 = 2;
    pub const CONNECTING: u32 = 3;
    pub const FAILED: u32 = 4;
}

/// Ways to sleep (bits; READY means: do not).
pub mod sleep {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const READY: u32 = 0;
    pub const FUTEX: u32 = 1;
    pub const FD: u32 = 2;
    pub const WAKER: u32 = 4;
}

abi_struct! {
    /// `unisono_queue_state`.
    pub struct QueueState = "unisono_queue_state" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// See `unisono_plugin.h`.
        pub state: u32,
        /// Commands, since the queue was made
        pub accepted: u64,
        /// See `unisono_plugin.h`.
        pub completed: u64,
        /// 1 if this poll made progress
        pub moved: u32,
        /// Zero.
        pub reserved: u32,
    }
}

abi_struct! {
    /// `unisono_sleep`.
    pub struct Sleep = "unisono_sleep" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// See `unisono_plugin.h`.
        pub how: u32,
        /// See `unisono_plugin.h`.
        pub futex: u64,
        /// See `unisono_plugin.h`.
        pub futex_value: u32,
        /// See `unisono_plugin.h`.
        pub fd: i32,
        /// See `unisono_plugin.h`.
        pub fd_events: u32,
        /// Zero.
        pub reserved: u32,
    }
}
