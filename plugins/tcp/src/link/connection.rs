//! One of a link's connections: both directions, and its place in the link's set.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::broken::Broken;
use super::incoming::{Incoming, Landed};
use super::outbox::Outbox;
use super::outgoing::Outgoing;
use crate::net::{Interest, Options, Polled, Poller, discard_input};
use crate::setup::Authenticated;

/// A connection that both ends have proved.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Polled,
    /// The other end, for messages.
    pub(crate) name: String,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    /// Whether the peer may still say something.
    pub(crate) open: bool,
}

impl Connection {
    pub(crate) fn new(
        authenticated: Authenticated,
        options: &Options,
        poller: &Arc<Poller>,
    ) -> io::Result<Self> {
        options.after(&authenticated.fd)?;
        Ok(Self {
            socket: Polled::new(authenticated.fd, Arc::clone(poller)),
            name: authenticated.name,
            incoming: Incoming::new(),
            outgoing: Outgoing::default(),
            open: true,
        })
    }

    /// Sends what the kernel takes; see [`Outgoing::flush`].
    pub(crate) fn flush(
        &mut self,
        place: (usize, usize),
        outbox: &mut Outbox,
        budget: u64,
    ) -> io::Result<u64> {
        let fd = self.socket.fd().as_fd();
        self.outgoing.flush(fd, place, outbox, budget)
    }

    /// Takes what has come; see [`Incoming::pull`].
    pub(crate) fn pull(
        &mut self,
        landed: &mut Landed<'_>,
        budget: u64,
    ) -> Result<(u64, bool), Broken> {
        if !self.open {
            return Ok((0, false));
        }
        self.incoming.pull(self.socket.fd().as_fd(), landed, budget)
    }

    /// Watches for what can make it go on.
    pub(crate) fn watch(&mut self, key: u64) -> io::Result<()> {
        let read = self.open && !self.incoming.is_held();
        let interest = Interest::of(read, self.outgoing.is_blocked());
        self.socket.watch(interest, key)
    }

    /// The last word, and nothing left unread that would turn it into a reset.
    pub(crate) fn end(&mut self, sequence: u64, aborted: bool) {
        self.outgoing
            .say_goodbye(self.socket.fd().as_fd(), sequence, aborted);
        discard_input(self.socket.fd().as_fd());
    }
}
