//! The host plugin of unisono: the CPU as a device, shared memory as a link.
//!
//! It is the default, and the fastest path between two processes of a node: streams run where they
//! are polled ([`HostStream`]), memory is shared by sealed memory files ([`HostMemory`]), a sleeping process
//! is woken by its bell, and bytes are moved and reduced by the kernels of [`unisono_copy`] and
//! [`reduce`], vectorised for the CPU at hand.
//!
//! All of it is reached through [`query`], as by any other plugin; the kernels are public for
//! benchmarks. `plugins/host/so` makes the shared library.

mod bell;
mod config;
pub mod cpu;
mod device;
mod event;
mod fork;
mod memory;
mod plugin;
pub mod reduce;
mod stream;

pub use device::HostDevice;
pub use event::HostEvent;
pub use memory::HostMemory;
pub use plugin::{HostInstance, HostPlugin};
pub use stream::{HostStream, HostStreamControl};

unisono_plugin::plugin!(HostPlugin);
