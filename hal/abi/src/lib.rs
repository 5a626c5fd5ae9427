//! The plugin contract in Rust: a mirror of `include/unisono_plugin.h`, which is normative.
//!
//! Names are the header's without `unisono_`, in Rust's case; a test compiles the header as C11 and
//! as C++17 and compares every offset and size with [`layout::ALL`]. Nothing here has behaviour:
//! plugins in Rust use `unisono-plugin`, hosts use `unisono-hal`.
#![no_std]

mod command;
mod cpu;
mod device;
mod dmabuf;
mod error;
mod event;
mod handle;
mod host;
pub mod layout;
mod link;
mod memory;
mod param;
mod plugin;
mod queue;

mod stream;

pub use command::*;
pub use cpu::*;
pub use device::*;
pub use dmabuf::*;
pub use error::*;
pub use event::*;
pub use handle::*;
pub use host::*;
pub use link::*;
pub use memory::*;
pub use param::*;
pub use plugin::*;
pub use queue::*;

pub use stream::*;
