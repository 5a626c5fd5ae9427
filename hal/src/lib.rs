//! The host's side of the plugin contract: find, check and load plugins, and hold what they make.
//!
//! - [`Loader`] finds a plugin's library in an ordered search path, checks the file before any of
//!   its code runs, and says every place it looked at when it fails ([`LoadError`]).
//! - [`Plugin`] is a plugin that was found sound. Its tables were copied once, with every hole
//!   filled by a stub that answers "unsupported", so calls need no checks.
//! - [`Instance`], [`Device`], [`Memory`], [`Stream`], [`Event`] and [`Link`] are safe handles.
//!   Each keeps alive what it was made from, so they may be dropped in any order.
//! - [`Batch`] packs commands; [`Queue`] is what streams and links have in common.
//! - [`probe`] asks a plugin in a child process, so that one that crashes cannot hurt the host.
//!
//! Who validates what: this crate checks everything that a plugin *answers* (handles, sizes,
//! states, texts) and every argument that it can check cheaply. Addresses in commands are the
//! caller's promise, made once at [`Batch::new`].
//!
//! Nothing here knows a plugin or a vendor by name. The contract is `include/unisono_plugin.h`.

mod batch;
mod channel;
mod check;
mod cpu;
mod device;
mod device_info;
mod dmabuf;
mod error;
mod event;
mod instance;
mod link;
mod link_info;
mod load;
mod log_sink;
mod memory;
mod memory_request;
mod name;
mod params;
mod plugin;
pub mod probe;
mod queue;
mod raw_queue;
mod recording;
mod status;
mod stream;
mod suggest;
mod tables;
mod version;
mod waker;

pub use batch::{Batch, Call, CopyPieces, Put, Read, Reduce, Scale};
pub use channel::{Channel, Received};
pub use check::Refusal;
pub use cpu::{Combiner, Cpu};
pub use device::{Device, Place, SupportQuery};
pub use device_info::{DeviceId, DeviceInfo, DeviceKind, EventReach, EventSides, Side};
pub use dmabuf::{Dmabufs, LinkedMemory};
pub use error::{Error, Result};
pub use event::Event;
pub use instance::Instance;
pub use link::{Landing, Link, LinkRequest, LinkStatistics};
pub use link_info::{LinkInfo, LinkType, Scope};
pub use load::{Failure, Found, LoadError, Loader, Manifest, Origin, SearchPath, Step};
pub use log_sink::{LogFacade, LogSink, PluginRecord};
pub use memory::{ExportKind, Memory, MemoryView};
pub use memory_request::{MemoryKind, MemoryRequest};
pub use params::{ParamKind, ParamSpec, ParamValue, ParamValues};
pub use plugin::{Facts, Function, Plugin, QueryFn};
pub use queue::{Aborter, Queue, QueueState, Sleep, SleepWays, State};
pub use recording::Recording;
pub use status::Status;
pub use stream::Stream;
pub use version::HostVersion;
pub use waker::Waker;
