//! The system's side: interfaces, addresses, sockets and their options.

mod address;
mod bytes;
mod filter;
mod info;
mod interfaces;
mod node;
mod polled;
mod silence;
mod socket;
mod window;

pub(crate) use address::Address;
pub(crate) use bytes::{PIECES_MAX, Piece, receive, send};
pub(crate) use filter::Filter;
pub(crate) use info::unsent;
pub(crate) use interfaces::{Interface, interfaces, nic_bytes_per_second};
pub(crate) use node::{Node, this_node};
pub(crate) use polled::{Interest, Polled, Poller};
pub(crate) use silence::{Heard, Silence};
pub(crate) use socket::{Congestion, Options};
pub(crate) use socket::{
    accept, connect, connected, discard_input, is_within_machine, listen, local_ip, peer_name,
};
