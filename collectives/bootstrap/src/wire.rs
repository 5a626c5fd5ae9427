//! Bytes between two processes: sockets, handshakes, frames.

pub(crate) mod socket;
