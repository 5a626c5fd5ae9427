//! An emulated `libcuda.so.1`: the driver API's C symbols over [`unisono_emulator`].
//!
//! It has the functions that the cuda plugin and its tests need, with the checks that the real driver
//! makes, and the ones that the real driver leaves to a crash: a handle that is none, memory that was
//! freed, a thread without a context. What a function does is said in the driver API's own manual; what
//! is said here is only where the emulation is narrower.
//!
//! Other vendors' interfaces are much like this one. Their emulators call the functions here, and add
//! what is their own.
#![allow(
    unsafe_code,
    reason = "C functions that take pointers, with the contracts of the driver API"
)]
#![allow(non_snake_case, reason = "the driver API's names")]
#![allow(
    missing_docs,
    reason = "what the driver API's functions and codes are is said in its manual"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "the contracts are those of the driver API's manual"
)]

pub mod answer;
mod attribute;
pub mod calls;
pub mod code;
pub mod context;
pub mod copy;
mod device;
pub mod event;
mod export;
pub mod graph;
pub mod handle;
pub mod host;
pub mod ipc;
mod launch;
pub mod memory;
pub mod pointer;
pub mod stream;
pub mod stream_memory;
mod virtual_memory;
