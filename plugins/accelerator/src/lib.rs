//! What plugins of accelerators have in common.
//!
//! Vendors' runtimes differ in names and in traps, not in shape: streams that take copies, kernels,
//! writes and waits; memory of the device, host memory that the device reaches, ways to share both. A
//! plugin says what its runtime does ([`Runtime`], one value a device) and gets the contract's devices,
//! memory, streams and events for it:
//!
//! - commands become calls of the runtime, with counters that are shadowed on the host (`stream`);
//! - a stream tells how far it came by writing a number to pinned memory ([`Line`]), so `poll` is a
//!   load, and a sleeper is woken by one thread for the whole process that looks at such numbers
//!   (`watcher`);
//! - flags and counters are host memory that every process can map, so that an abort can always release
//!   a wait (`memory`);
//! - batches that are repeated run as graphs of the runtime's (`stream/replay.rs`);
//! - native streams are kept and dealt out again: hardware has few independent queues, and a stream
//!   that waits holds up the others of its queue.
//!
//! Nothing here names a vendor.

mod description;
mod device;
mod event;
mod fork;
mod freed;
mod library;
mod lines;
mod mapping;
mod memory;
mod process;
mod proof;
mod regions;
mod report;
mod runtime;
mod state;
mod stream;
mod watcher;

pub use device::Accelerator;
pub use event::AcceleratorEvent;
pub use fork::check as check_fork;
pub use library::{library_path, open_library};
pub use lines::Line;
pub use memory::AcceleratorMemory;
pub use process::Process;
pub use report::{EVENTS, local_link, mapped_link, numa_of, queues_from};
pub use runtime::{
    Block, FlagCommand, FlagKernel, Foreign, MemoryOperation, NoGraph, Runtime, open_descriptor,
    start_time,
};
pub use stream::{AcceleratorStream, Step, StreamControl};
