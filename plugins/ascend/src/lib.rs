//! The ascend plugin of unisono: Huawei's devices through AscendCL, opened at run time.
//!
//! Functions are looked up one by one in the runtime's library ([`api`]); what is missing is an answer.
//! A thread's current context is set around each call and set back behind it.
//!
//! Devices, streams, memory and events are `unisono-plugin-accelerator`'s over [`AscendRuntime`]. What
//! this runtime has not is made up for here:
//!
//! - streams that cannot write host memory or wait for it, as on the first generation, have an
//!   [`attendant`]: a thread that stores what they would write, and opens a notify where they wait;
//! - host memory that a device cannot reach is copied by the same thread;
//! - reductions are the runtime's where it has them ([`fold`]), else the processor's ([`work`]).
//!
//! Everything known of the runtime comes from its maker's public manual and from permissively licensed
//! programs that call it: see `vendor-docs/ascend.md`. `plugins/ascend/so` makes the shared library.
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the overview names the modules that do the work"
)]

mod api;
mod attendant;
mod block;
mod context;
mod device;
mod door;
mod error;
mod facts;
mod fold;
mod lane;
mod params;
mod places;
mod plugin;
mod runtime;
mod topology;
mod work;

pub use plugin::{AscendInstance, AscendPlugin};
pub use runtime::AscendRuntime;

unisono_plugin::plugin!(AscendPlugin);
