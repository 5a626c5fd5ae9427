//! What the host offers to plugins: logging, wakers, the authenticated channel.

use core::ffi::c_void;

use crate::{Status, Str};

use crate::layout::abi_struct;

/// Log levels.
pub mod level {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const ERROR: u32 = 1;
    pub const WARN: u32 = 2;
    pub const INFO: u32 = 3;
    pub const DEBUG: u32 = 4;
    pub const TRACE: u32 = 5;
}

abi_struct! {
    /// `unisono_log_record`.
    pub struct LogRecord = "unisono_log_record" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// See `unisono_plugin.h`.
        pub level: u32,
        /// The part of the plugin that speaks
        pub target: Str,
        /// See `unisono_plugin.h`.
        pub file: Str,
        /// See `unisono_plugin.h`.
        pub line: u32,
        /// Zero.
        pub reserved: u32,
        /// See `unisono_plugin.h`.
        pub message: Str,
    }
}

abi_struct! {
    /// `unisono_host`.
    pub struct Host = "unisono_host" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// Zero.
        pub reserved: u32,
        /// See `unisono_plugin.h`.
        pub context: *mut c_void,
        /// Records above this level need not be made
        pub log_level: Option<unsafe extern "C" fn(context: *mut c_void) -> u32>,
        /// See `unisono_plugin.h`.
        pub log: Option<unsafe extern "C" fn(context: *mut c_void, record: *const LogRecord)>,
    }
}

abi_struct! {
    /// `unisono_waker`.
    pub struct Waker = "unisono_waker" {
        /// See `unisono_plugin.h`.
        pub wake: Option<unsafe extern "C" fn(context: *mut c_void)>,
        /// See `unisono_plugin.h`.
        pub context: *mut c_void,
    }
}

abi_struct! {
    /// `unisono_channel`.
    pub struct Channel = "unisono_channel" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// This process's rank in the communicator
        pub rank: u32,
        /// Ranks in the communicator
        pub size: u32,
        /// Zero.
        pub reserved: u32,
        /// The same on all ranks, unique in the job
        pub id: u64,
        /// See `unisono_plugin.h`.
        pub context: *mut c_void,
        /// Sign a transcript as this rank.
        pub prove: Option<unsafe extern "C" fn(context: *mut c_void, transcript: *const c_void, len: u64, signature: *mut u8) -> Status>,
        /// OK if `rank` signed the transcript, else ERR_AUTH.
        pub verify: Option<unsafe extern "C" fn(context: *mut c_void, rank: u32, transcript: *const c_void, len: u64, signature: *const u8) -> Status>,
        /// Send at most 64 KiB to a rank, reliable and in order for one (tag, pair).
        pub send: Option<unsafe extern "C" fn(context: *mut c_void, rank: u32, tag: u64, data: *const c_void, len: u64) -> Status>,
        /// The next message: AGAIN if none has come. If it is longer than cap, ERR_INVALID, *len is set and the message stays.
        pub recv: Option<unsafe extern "C" fn(context: *mut c_void, rank: u32, tag: u64, data: *mut c_void, cap: u64, len: *mut u64) -> Status>,
    }
}
