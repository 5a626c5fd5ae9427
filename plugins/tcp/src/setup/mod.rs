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

use crate::tls::Session;

/// A stranger, or an end that has not proved itself yet, may take this long from its first byte to
/// its proof.
pub(crate) const PROOF_TIME: Duration = Duration::from_secs(5);

/// When a path counts as lost, and how long another is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recovery {
    /// A path that brings nothing back for so long is lost.
    pub(crate) rail_timeout: Duration,
    /// Without another for so long the link fails.
    pub(crate) limit: Duration,
    /// As long a peer has where other connections are well.
    pub(crate) patience: Duration,
}

/// An authenticated connection.
#[derive(Debug)]
pub(crate) struct Authenticated {
    pub(crate) fd: OwnedFd,
    /// Its number among the link's connections.
    pub(crate) index: u16,
    /// How many there were in its place before.
    pub(crate) generation: u16,
    /// Which of the peer's addresses it goes to; known to the dialer alone.
    pub(crate) target: usize,
    /// Whether it lasts as long as both processes: neither end keeps anything to be sent again.
    pub(crate) lasting: bool,
    /// The other end, for messages.
    pub(crate) name: String,
    /// What encrypts it, if anything.
    pub(crate) tls: Option<Box<Session>>,
}
