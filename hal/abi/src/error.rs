//! Status codes and the error record.

use core::ffi::c_char;

use crate::layout::abi_struct;

/// `unisono_status`.
pub type Status = i32;

/// `unisono_status` values.
pub mod status {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    use super::Status;
    pub const OK: Status = 0;
    pub const AGAIN: Status = 1;
    pub const INVALID: Status = -1;
    pub const UNSUPPORTED: Status = -2;
    pub const OUT_OF_MEMORY: Status = -3;
    pub const DEVICE: Status = -4;
    pub const LINK: Status = -5;
    pub const PEER: Status = -6;
    pub const TIMEOUT: Status = -7;
    pub const ABORTED: Status = -8;
    pub const MISMATCH: Status = -9;
    pub const AUTH: Status = -10;
    pub const NO_DRIVER: Status = -11;
    pub const INTERNAL: Status = -12;
    pub const POISONED: Status = -13;
}

abi_struct! {
    /// `unisono_error`.
    pub struct Error = "unisono_error" {
        /// Set by the caller
        pub struct_size: u32,
        /// The same as the returned status
        pub status: i32,
        /// The vendor's own code, errno for the system; 0 if none
        pub vendor_code: i64,
        /// MISMATCH: the words that were found
        pub words: [u64; 3],
        /// UTF-8, NUL-terminated, cut if longer
        pub message: [c_char; 232],
    }
}

abi_struct! {
    /// `unisono_str`.
    pub struct Str = "unisono_str" {
        /// See `unisono_plugin.h`.
        pub ptr: *const c_char,
        /// See `unisono_plugin.h`.
        pub len: u64,
    }
}
