//! How ranks that know only their own number come to know all others.
//!
//! 1. The ranks of a node meet at its *leader*, the first of them to take a name in the node's abstract namespace.
//! 2. Each leader sends one small message to the *root*, which answers once all are there: each node learns the
//!    addresses and keys of its ranks' neighbours at distances 1, 2, 4 and so on.
//! 3. Over connections to these neighbours everything else is exchanged in O(log n) rounds, by
//!    [`Control::all_gather`](crate::Control::all_gather).
//!
//! Whatever is wrong (missing ranks, a rank twice, different sizes or versions) is found where the ranks are
//! counted, and told to everyone who is there.

pub(crate) mod address;
mod leader;
mod member;
pub(crate) mod message;
mod node;
mod roll;
pub(crate) mod root;

pub(crate) use message::{read_entry, write_entry};
pub(crate) use node::{Met, NoUplink, Node, Uplink, meet};
