//! An emulated `libascendcl.so`: AscendCL's C symbols over [`unisono_emulator`].
//!
//! What streams and memory do is the other emulators' code; what is here is what this runtime has of
//! its own: directions of copies that must be right, host memory that is registered with one device at
//! a time, events of several kinds, notifies, reductions, keys for memory with a list of processes that
//! may import it. It is narrower than the real one where that leaves something undefined.
//!
//! A box whose `model` does not begin with `Ascend` has no device of this vendor.
#![allow(
    unsafe_code,
    reason = "C functions that take pointers, with the contracts of AscendCL"
)]
#![allow(non_snake_case, reason = "AscendCL's names")]
#![allow(
    missing_docs,
    clippy::missing_safety_doc,
    reason = "what AscendCL's functions are is said in its manual"
)]

mod answer;
mod context;
mod copy;
mod event;
mod fold;
mod host;
mod ipc;
mod memory;
mod notify;
mod stream;
mod topology;
mod value;
