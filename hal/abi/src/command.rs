//! The commands that streams and links take.

use core::ffi::c_void;

use crate::Event;
use crate::layout::abi_struct;

/// Kinds of commands.
pub mod command_kind {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const COPY: u16 = 1;
    pub const REDUCE: u16 = 2;
    pub const SIGNAL: u16 = 3;
    pub const WAIT: u16 = 4;
    pub const PUT: u16 = 5;
    pub const RECORD: u16 = 6;
    pub const WAIT_EVENT: u16 = 7;
    pub const SCALE: u16 = 8;
    pub const CALL: u16 = 9;
    pub const READ: u16 = 10;
}

/// Flag of SIGNAL and PUT: write words; of WAIT: compare them.
pub const CMD_WORDS: u32 = 1;
/// Flag of COPY, REDUCE and SCALE: a hint that `dst` is not read again soon.
pub const CMD_STREAMING: u32 = 2;
/// A put that signals no flag of the peer.
pub const NO_WINDOW: u32 = 0xffff_ffff;
/// A flag this far ahead of its counter is an abort ([`ABORT_STEP`] is what is added).
pub const ABORT_AHEAD: u64 = 1 << 61;
/// What the owner of a flag adds to it to end every wait on it.
pub const ABORT_STEP: u64 = 1 << 62;

/// Data types.
pub mod dtype {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const I8: u16 = 1;
    pub const U8: u16 = 2;
    pub const I16: u16 = 3;
    pub const U16: u16 = 4;
    pub const I32: u16 = 5;
    pub const U32: u16 = 6;
    pub const I64: u16 = 7;
    pub const U64: u16 = 8;
    pub const F16: u16 = 9;
    pub const BF16: u16 = 10;
    pub const F32: u16 = 11;
    pub const F64: u16 = 12;
    pub const F8E4M3FN: u16 = 13;
    pub const F8E5M2: u16 = 14;
}

/// Reductions.
pub mod reduction {
    #![allow(missing_docs, reason = "named and described in unisono_plugin.h")]
    pub const SUM: u16 = 1;
    pub const PROD: u16 = 2;
    pub const MIN: u16 = 3;
    pub const MAX: u16 = 4;
    pub const AND: u16 = 5;
    pub const OR: u16 = 6;
    pub const XOR: u16 = 7;
}

abi_struct! {
    /// `unisono_flag_line`.
    pub struct FlagLine = "unisono_flag_line" {
        /// Atomic
        pub counter: u64,
        /// See `unisono_plugin.h`.
        pub words: [u64; 3],
        /// The host's own
        pub reserved: [u64; 4],
    }
}

abi_struct! {
    /// `unisono_counter`.
    pub struct Counter = "unisono_counter" {
        /// See `unisono_plugin.h`.
        pub value: u64,
        /// See `unisono_plugin.h`.
        pub seen: u64,
    }
}

abi_struct! {
    /// `unisono_command`.
    pub struct Command = "unisono_command" {
        /// See `unisono_plugin.h`.
        pub kind: u16,
        /// See `unisono_plugin.h`.
        pub size: u16,
        /// See `unisono_plugin.h`.
        pub flags: u32,
    }
}

abi_struct! {
    /// `unisono_command_copy`.
    pub struct CommandCopy = "unisono_command_copy" {
        /// See `unisono_plugin.h`.
        pub head: Command,
        /// See `unisono_plugin.h`.
        pub dst: u64,
        /// See `unisono_plugin.h`.
        pub src: u64,
        /// See `unisono_plugin.h`.
        pub bytes: u64,
        /// At least 1
        pub repeat: u64,
        /// See `unisono_plugin.h`.
        pub dst_stride: u64,
        /// See `unisono_plugin.h`.
        pub src_stride: u64,
    }
}

abi_struct! {
    /// `unisono_command_reduce`.
    pub struct CommandReduce = "unisono_command_reduce" {
        /// See `unisono_plugin.h`.
        pub head: Command,
        /// See `unisono_plugin.h`.
        pub dst: u64,
        /// See `unisono_plugin.h`.
        pub a: u64,
        /// See `unisono_plugin.h`.
        pub b: u64,
        /// Of one piece
        pub elements: u64,
        /// See `unisono_plugin.h`.
        pub repeat: u64,
        /// Bytes
        pub dst_stride: u64,
        /// Bytes
        pub a_stride: u64,
        /// Bytes
        pub b_stride: u64,
        /// See `unisono_plugin.h`.
        pub dtype: u16,
        /// See `unisono_plugin.h`.
        pub reduction: u16,
        /// See `unisono_plugin.h`.
        pub divisor: u32,
    }
}

abi_struct! {
    /// `unisono_command_signal`.
    pub struct CommandSignal = "unisono_command_signal" {
        /// See `unisono_plugin.h`.
        pub head: Command,
        /// Unisono_flag_line, local or imported
        pub flag: u64,
        /// Unisono_counter, this side's own
        pub counter: u64,
        /// The bell of the process that waits, 0 if none
        pub bell: u64,
        /// See `unisono_plugin.h`.
        pub words: [u64; 3],
    }
}

abi_struct! {
    /// `unisono_command_wait`.
    pub struct CommandWait = "unisono_command_wait" {
        /// See `unisono_plugin.h`.
        pub head: Command,
        /// Memory that the waiting process owns; a CPU's may be imported
        pub flag: u64,
        /// See `unisono_plugin.h`.
        pub counter: u64,
        /// With CMD_WORDS: a difference is ERR_MISMATCH
        pub words: [u64; 3],
    }
}

abi_struct! {
    /// `unisono_command_put`.
    pub struct CommandPut = "unisono_command_put" {
        /// See `unisono_plugin.h`.
        pub head: Command,
        /// See `unisono_plugin.h`.
        pub src: u64,
        /// See `unisono_plugin.h`.
        pub bytes: u64,
        /// See `unisono_plugin.h`.
        pub repeat: u64,
        /// See `unisono_plugin.h`.
        pub src_stride: u64,
        /// See `unisono_plugin.h`.
        pub dst_offset: u64,
        /// See `unisono_plugin.h`.
        pub signal_offset: u64,
        /// See `unisono_plugin.h`.
        pub dst_window: u32,
        /// See `unisono_plugin.h`.
        pub signal_window: u32,
        /// Both 0 if nobody waits
        pub done_flag: u64,
        /// Both 0 if nobody waits
        pub done_counter: u64,
        /// See `unisono_plugin.h`.
        pub words: [u64; 3],
    }
}

abi_struct! {
    /// `unisono_command_event`.
    pub struct CommandEvent = "unisono_command_event" {
        /// See `unisono_plugin.h`.
        pub head: Command,
        /// See `unisono_plugin.h`.
        pub event: Event,
    }
}

abi_struct! {
    /// `unisono_command_scale`, since 1.2.
    pub struct CommandScale = "unisono_command_scale" {
        /// See `unisono_plugin.h`.
        pub head: Command,
        /// See `unisono_plugin.h`.
        pub dst: u64,
        /// See `unisono_plugin.h`.
        pub src: u64,
        /// Of one piece
        pub elements: u64,
        /// At least 1
        pub repeat: u64,
        /// Bytes
        pub dst_stride: u64,
        /// Bytes
        pub src_stride: u64,
        /// One element in the first bytes, zero after it
        pub factor: [u8; 8],
        /// See `unisono_plugin.h`.
        pub dtype: u16,
        /// Zero.
        pub reserved: [u16; 3],
    }
}

/// `unisono_combine`: `dst[i] = a[i] combined with b[i]`.
pub type Combine = unsafe extern "C" fn(
    context: *mut c_void,
    dst: *mut c_void,
    a: *const c_void,
    b: *const c_void,
    elements: u64,
);

abi_struct! {
    /// `unisono_command_call`, since 1.2.
    pub struct CommandCall = "unisono_command_call" {
        /// See `unisono_plugin.h`.
        pub head: Command,
        /// A [`Combine`]
        pub function: u64,
        /// See `unisono_plugin.h`.
        pub context: u64,
        /// See `unisono_plugin.h`.
        pub dst: u64,
        /// See `unisono_plugin.h`.
        pub a: u64,
        /// See `unisono_plugin.h`.
        pub b: u64,
        /// See `unisono_plugin.h`.
        pub elements: u64,
        /// At least 1
        pub element_bytes: u64,
    }
}

abi_struct! {
    /// `unisono_command_read`, since 1.7.
    pub struct CommandRead = "unisono_command_read" {
        /// See `unisono_plugin.h`.
        pub head: Command,
        /// The base of UNISONO_MEMORY_PROCESS, this process's own or imported
        pub process: u64,
        /// Address of a uint64_t in memory of this process
        pub base: u64,
        /// Added to it, modulo 2^64
        pub offset: u64,
        /// See `unisono_plugin.h`.
        pub dst: u64,
        /// See `unisono_plugin.h`.
        pub bytes: u64,
    }
}
