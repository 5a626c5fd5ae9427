//! Posted links between machines over plain Ethernet.
//!
//! An instance has one listener, shared by all links of the process. A link is a few connections to
//! one peer; a put goes over them in stripes, straight from its source to the kernel and, at the
//! other end, from the kernel straight into the window. Its signal follows when it and all puts
//! before it have landed. Only host memory: devices stage through it.
//!
//! **Strangers.** Both ends prove the handshake's transcript with the communicator's keys before a
//! byte of a put is taken. Whoever can't is dropped and counted, bounded in number, bytes and time,
//! and never harms a link.
//!
//! **Encryption.** With `encrypt` the links speak TLS 1.3 between exactly the two ends that proved
//! themselves (`tls`). Without it, who can read or change packets on the path can do so unseen.
//!
//! **Sleep.** A link sleeps on a descriptor ([`arm`](unisono_plugin::Link::arm)); a host that can't
//! wait for one is told not to sleep. The plugin has no threads, so it never calls a waker.
//!
//! **Rails.** A connection that is lost is made anew, by another of the networks that both ends share
//! if there is one, and goes on where both say that it ended (`link/upkeep.rs`). One within a machine ends
//! with its processes alone: nothing of it is kept, and without it the link fails.
//!
//! **Death.** A peer that closes or resets all connections is gone, and the error names its rank. One
//! that answers no probe for `keepalive`, brings nothing back for `rail_timeout` while bytes are under
//! way, or takes nothing for `stall_timeout`, is looked for by every way for `recovery`. A peer whose
//! forked child still holds copies of the sockets looks alive from here: descriptors are closed on exec,
//! but a child that never calls exec keeps them. That a rank died is for the control channel to say; the
//! host then aborts the link.

mod link;
mod memory;
mod net;
mod params;
mod plugin;
mod setup;
mod tls;
mod wire;

pub use link::{Control, TcpLink};
pub use params::PARAMS;
pub use plugin::{TcpInstance, TcpPlugin};

unisono_plugin::plugin!(TcpPlugin);
