//! Posted links over RDMA: RoCE, and InfiniBand, by the verbs of rdma-core.
//!
//! A put is a write by the sender's device into the peer's window: no CPU copies its bytes. What raises
//! its flag comes behind them on the same reliable connection, as an immediate or a short message, and
//! the receiving CPU adds one to the flag when it polls. Long puts are striped over several queue pairs
//! and rails.
//!
//! **Without RDMA** the plugin loads, and says what is missing when it is used: libibverbs is opened at
//! run time.
//!
//! **Memory.** Windows are registered as long as they are exported. A source in a window goes as it
//! lies; any other is copied to registered staging if it is short, else registered for the one put.
//! Nothing else is ever kept registered, so no registration can be stale.
//!
//! **Strangers.** Queue pairs come up over the communicator's authenticated channel, and both ends sign
//! what they agree on. Past that RDMA trusts its fabric: who can forge packets on it can write windows.
//!
//! **Death.** A queue pair whose packets are not acknowledged is dead; so is one that is silent and does
//! not answer a probe. Its lane moves to another rail, or comes up again, and sends again what the peer
//! has not received. If that takes longer than `recovery`, the link fails and names rank and rails.
//!
//! **Sleep.** A link sleeps on a descriptor ([`arm`](unisono_plugin::Link::arm)): that of its completion
//! queues. The plugin has no threads.

mod link;
mod memory;
mod nic;
mod params;
mod plugin;
#[doc(hidden)]
pub mod sys;
mod verbs;
mod wire;

pub use link::{Control, RoceLink};
pub use params::PARAMS;
pub use plugin::{RoceInstance, RocePlugin};

unisono_plugin::plugin!(RocePlugin);
