//! The C side: tables of shims, each of which checks its pointers, calls the trait, and lets no
//! panic out.
#![allow(
    unsafe_code,
    reason = "the boundary: raw handles and the host's pointers"
)]

pub mod cpu;
mod device;
pub mod dmabuf;
mod event;
mod guard;
mod handle;
mod instance;
mod link;
mod memory;
mod plugin;
mod stream;
mod structs;

pub(crate) use handle::EventHandle;
pub use plugin::query;
pub(crate) use structs::{bytes, text};
