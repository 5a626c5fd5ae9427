//! Streams: ordered queues of a device.

use core::ffi::c_void;

use crate::{Device, Error, QueueState, Sleep, Status, Stream, Waker};

use crate::layout::abi_struct;

abi_struct! {
    /// `unisono_stream_request`.
    pub struct StreamRequest = "unisono_stream_request" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// Zero.
        pub reserved: u32,
        /// Higher is sooner; 0 is usual
        pub priority: i64,
    }
}

abi_struct! {
    /// `unisono_stream_table`.
    pub struct StreamTable = "unisono_stream_table" {
        /// Bytes of this struct, as its maker knows it.
        pub struct_size: u32,
        /// Zero.
        pub reserved: u32,
        /// See `unisono_plugin.h`.
        pub create: Option<unsafe extern "C" fn(device: Device, request: *const StreamRequest, out: *mut Stream, error: *mut Error) -> Status>,
        /// See `unisono_plugin.h`.
        pub wrap: Option<unsafe extern "C" fn(device: Device, native: u64, out: *mut Stream, error: *mut Error) -> Status>,
        /// Must be idle or aborted
        pub destroy: Option<unsafe extern "C" fn(stream: Stream)>,
        /// See `unisono_plugin.h`.
        pub native: Option<unsafe extern "C" fn(stream: Stream) -> u64>,
        /// Takes the first *accepted of `count` commands, copies them, never blocks.
        pub submit: Option<unsafe extern "C" fn(stream: Stream, commands: *const c_void, bytes: u64, count: u32, accepted: *mut u32, error: *mut Error) -> Status>,
        /// Make progress on this thread for about `budget` bytes of moving; report the state. A negative status means the queue failed: it stays failed and takes no more commands.
        pub poll: Option<unsafe extern "C" fn(stream: Stream, budget: u64, state: *mut QueueState, error: *mut Error) -> Status>,
        /// Prepare to sleep in one of the ways `allowed` (bits). After it answers other than READY, what makes progress possible will end that sleep.
        pub arm: Option<unsafe extern "C" fn(stream: Stream, allowed: u32, waker: *const Waker, sleep: *mut Sleep, error: *mut Error) -> Status>,
        /// See `unisono_plugin.h`.
        pub disarm: Option<unsafe extern "C" fn(stream: Stream)>,
        /// See `unisono_plugin.h`.
        pub query: Option<unsafe extern "C" fn(stream: Stream, state: *mut QueueState) -> Status>,
        /// Drop what has not started; what has started ends soon (its waits were released).
        pub abort: Option<unsafe extern "C" fn(stream: Stream)>,
        /// 0 if the stream is recording no graph now. Else a number, since 1.5 of the recording: the same for streams that record into one graph, as one has joined the other's recording by an event, and another for another recording. Such a stream also records RECORD and WAIT_EVENT. 1, which is no recording's number: it records, and nobody can tell which.
        pub capturing: Option<unsafe extern "C" fn(stream: Stream) -> u32>,
    }
}
