//! From addresses to authenticated connections: the listener that all links of a process share, the
//! dialing end, the accepting end, and the handshake between them.
//!
//! Nothing here blocks and nothing has a thread: links drive it from their `poll`.

mod acceptor;
mod dialer;
mod handshake;
mod listener;
mod mailbox;
mod stranger;
mod timer;

pub(crate) use acceptor::Acceptor;
pub(crate) use dialer::{Call, Dialer};
pub(crate) use handshake::Refusal;
pub(crate) use listener::Listener;
pub(crate) use mailbox::{Key, Mailbox, Registration};
pub(crate) use timer::Timer;

use std::os::fd::OwnedFd;
use std::time::Duration;

/// A stranger, or an end that has not proved itself yet, may take this long from its first byte to
/// its proof.
pub(crate) const PROOF_TIME: Duration = Duration::from_secs(5);

/// An authenticated connection.
#[derive(Debug)]
pub(crate) struct Authenticated {
    pub(crate) fd: OwnedFd,
    /// Its number among the link's connections.
    pub(crate) index: u16,
    /// The other end, for messages.
    pub(crate) name: String,
}
