//! An emulated `libcuda.so.1`: the driver API's C symbols over [`unisono_emulator`].
//!
//! It has the functions that the cuda plugin and its tests need, with the checks that the real driver
//! makes, and the ones that the real driver leaves to a crash: a handle that is none, memory that was
//! freed, a thread without a context. What a function does is said in the driver API's own manual; what
//! is said here is only where the emulation is narrower.
#![allow(
    unsafe_code,
    reason = "C functions that take pointers, with the contracts of the driver API"
)]
#![allow(non_snake_case, reason = "the driver API's names")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the contracts are those of the driver API's manual"
)]

mod answer;
mod attribute;
mod code;
mod context;
mod copy;
mod device;
mod event;
mod export;
mod graph;
mod handle;
mod host;
mod ipc;
mod launch;
mod memory;
mod pointer;
mod stream;
mod stream_memory;
mod virtual_memory;
