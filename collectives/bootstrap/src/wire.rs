//! Bytes between two processes: sockets, handshakes, frames.

pub(crate) mod acceptor;
pub(crate) mod codec;
pub(crate) mod connection;
pub(crate) mod handshake;
pub(crate) mod hub;
pub(crate) mod poller;
pub(crate) mod socket;
