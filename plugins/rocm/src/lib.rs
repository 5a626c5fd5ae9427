//! The rocm plugin of unisono: AMD's devices through HIP, opened at run time.
//!
//! Functions are looked up one by one in the runtime's library ([`api`]), and none whose structs have
//! changed between releases: devices are asked by attributes, addresses by single facts. The thread's
//! current device is set around each call and put back, so that callers find their own as they left it.
//!
//! Devices, streams, memory and events are `unisono-plugin-accelerator`'s over [`RocmRuntime`]; links
//! come from the management library, or from the runtime ([`topology`]). `plugins/rocm/so` makes the
//! shared library.
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the overview names the modules that do the work"
)]

mod api;
mod block;
mod device;
mod error;
mod facts;
mod foreign;
mod graph;
mod handles;
mod kernels;
mod management;
mod operate;
mod params;
mod places;
mod plugin;
mod runtime;
mod topology;

pub use plugin::{RocmInstance, RocmPlugin};
pub use runtime::RocmRuntime;

unisono_plugin::plugin!(RocmPlugin);
