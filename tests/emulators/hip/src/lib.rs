//! An emulated `libamdhip64.so`: HIP's C symbols over [`unisono_emulator`].
//!
//! HIP took over another vendor's interface, names and structs aside: what a stream, an event or memory
//! does is that emulator's code, and its codes are HIP's. What is here is what HIP has of its own: a
//! current device instead of contexts, kinds of copies and of memory, code objects in bundles, and what
//! its releases have changed. The box's `driver` is the release, as `hipRuntimeGetVersion` numbers it;
//! a box without an `architecture` has no device of this vendor.
#![allow(
    unsafe_code,
    reason = "C functions that take pointers, with the contracts of HIP"
)]
#![allow(non_snake_case, reason = "HIP's names")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the contracts are those of HIP's manual"
)]
#![allow(missing_docs, reason = "what functions do is said in HIP's manual")]

mod answer;
mod attribute;
mod copy;
mod device;
mod event;
mod graph;
mod launch;
mod memory;
mod module;
mod name;
mod stream;
