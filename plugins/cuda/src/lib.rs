//! The cuda plugin of unisono: NVIDIA's devices through the driver API, opened at run time.
//!
//! Functions are looked up one by one in the driver's library ([`api`]): what is missing is an answer,
//! not a panic, and a driver newer than this plugin may answer codes that it does not know. Types and
//! constants are those of `cudarc`. The primary context of a device is used, pushed around each call and
//! popped again, so that callers find their own as they left it.
//!
//! Devices, streams, memory and events are `unisono-plugin-accelerator`'s over [`CudaRuntime`]; links
//! come from NVML ([`topology`]). `plugins/cuda/so` makes the shared library.
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the overview names the modules that do the work"
)]

mod api;
mod block;
mod context;
mod device;
mod error;
mod facts;
mod foreign;
mod graph;
mod kernels;
mod params;
mod plugin;
mod runtime;
mod topology;

pub use plugin::{CudaInstance, CudaPlugin};
pub use runtime::CudaRuntime;

unisono_plugin::plugin!(CudaPlugin);
