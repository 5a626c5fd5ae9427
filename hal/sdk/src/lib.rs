//! What a plugin in Rust implements: traits for the parts of `include/unisono_plugin.h`.
//!
//! A plugin implements [`Plugin`] and [`Instance`], and of [`Device`], [`Memory`], [`Stream`],
//! [`Event`] and [`Link`] what it has; for the rest it names [`NoDevice`], [`NoLink`] and so on, and
//! the host sees no such table. Every method that a plugin need not have answers
//! [`Status::Unsupported`] unless it is written.
//!
//! This crate makes the C tables of it: it checks pointers for NULL and batches for sense, writes
//! errors to the caller's struct, respects `struct_size`, and catches panics. A panic becomes
//! `ERR_INTERNAL` and poisons the instance: all later calls on it and on what it made answer
//! `ERR_POISONED`; only what lets go (`destroy`, `free`, `abort`, `disarm`) still runs.
//!
//! Thread rules are Rust's: what the header marks `[any]` takes `&self` of a `Sync` type, what it
//! marks `[handle]` takes `&mut self`. A queue's `query` and `abort` may come while another thread
//! is in `poll`; they go to its [`QueueControl`].
//!
//! One crate holds a plugin's code and its static entry, another makes the shared library of it:
//!
//! ```
//! # use unisono_plugin::{Device, DeviceInfo, Context, Instance, NoDevice, NoLink, Plugin, Result};
//! pub struct Nothing;
//! impl Plugin for Nothing {
//!     type Instance = Self;
//!     const NAME: &'static str = "nothing";
//!     const VERSION: &'static str = "0.1.0";
//!     const VENDOR: &'static str = "example";
//!     fn create(_: Context<'_>) -> Result<Self> {
//!         Ok(Self)
//!     }
//! }
//! impl Instance for Nothing {
//!     type Device = NoDevice;
//!     type Link = NoLink;
//! }
//! unisono_plugin::plugin!(Nothing); // a `query` to link statically
//! // In the cdylib crate: unisono_plugin::export_plugin!(nothing::Nothing);
//! ```

mod batch;
mod channel;
mod cpu;
mod device;
mod dmabuf;
mod error;
mod event;
mod host;
mod instance;
mod link;
mod macros;
mod memory;
mod pack;
mod param;
mod plugin;
mod queue;
mod raw;
mod recording;
mod stream;
mod thread;
mod waker;

pub use batch::{Batch, Command, Commands, Kinds};
pub use channel::{Channel, SIGNATURE};
pub use cpu::{Combiner, CpuInstance, cpu_interface};
pub use device::{
    Device, DeviceId, DeviceInfo, DeviceKind, EventSides, NoDevice, Place, Side, SupportQuery,
};
pub use dmabuf::{Dmabuf, DmabufInstance, Flush, dmabuf_interface};
pub use error::{Error, Result, Status};
pub use event::{Event, NoEvent};
pub use host::{Host, Level};
pub use instance::{Context, Instance};
pub use link::{Landing, Link, LinkInfo, LinkRequest, LinkStatistics, LinkType, NoLink, Scope};
pub use memory::{
    HostRange, Memory, MemoryExport, MemoryKind, MemoryRequest, MemoryView, NoMemory,
};
pub use pack::Pack;
pub use param::{Param, Params};
pub use plugin::Plugin;
pub use queue::{QueueControl, QueuePhase, QueueState, Sleep, SleepWays};
pub use raw::query;
pub use recording::Recording;
pub use stream::{NoStream, Stream};
pub use thread::{spawn_quiet, without_signals};
/// The contract itself: commands, flag lines and the bits that this crate does not wrap.
pub use unisono_abi as abi;
pub use waker::Waker;
