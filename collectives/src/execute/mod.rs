//! A plan becomes batches of commands on a stream and on links.
//!
//! [`Lane`] is the queue of one communicator: it *lowers* the oldest call's program into commands,
//! *submits* them in batches, *polls* its stream and links, and *retires* what is complete.

mod lane;
mod lower;
mod op;
mod peer;
mod place;

pub(crate) use lane::{Lane, OnFailure, State};
pub(crate) use op::{Op, PeerBuffers, Planned};
pub(crate) use peer::{Own, Peer, Posted, SIGNAL_WINDOW, SLOTS_WINDOW, Way};
