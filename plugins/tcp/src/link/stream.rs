//! A connection's bytes: over the socket itself, or encrypted over it.
#![allow(unsafe_code, reason = "passes addresses on to the kernel or to TLS")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::net::{self, Interest, Piece, Polled, Poller, discard_input};
use crate::setup::Authenticated;
use crate::tls::Session;

/// A proved socket in the link's set.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Polled,
    tls: Option<Box<Session>>,
}

impl Stream {
    pub(crate) fn new(authenticated: Authenticated, poller: &Arc<Poller>) -> Self {
        Self {
            socket: Polled::new(authenticated.fd, Arc::clone(poller)),
            tls: authenticated.tls,
        }
    }

    /// Sends what goes now; see [`net::send`] and [`Session::send`].
    ///
    /// # Errors
    /// `WouldBlock` if nothing does; else the connection is gone.
    ///
    /// # Safety
    /// Each piece is readable memory of its length. After `WouldBlock` or a part, the next call
    /// begins with the same bytes that this one did not send.
    pub(crate) unsafe fn send(&mut self, pieces: &mut [Piece]) -> io::Result<usize> {
        let fd = self.socket.fd().as_fd();
        match &mut self.tls {
            // SAFETY: by the caller's promise.
            None => unsafe { net::send(fd, pieces) },
            // SAFETY: by the caller's promise.
            Some(tls) => unsafe { tls.send(fd, pieces) },
        }
    }

    /// Receives what is there now; see [`net::receive`] and [`Session::receive`].
    ///
    /// # Errors
    /// `WouldBlock` if nothing is; else the connection is gone.
    ///
    /// # Safety
    /// Each piece is writable memory of its length.
    pub(crate) unsafe fn receive(&mut self, pieces: &mut [Piece]) -> io::Result<usize> {
        let fd = self.socket.fd().as_fd();
        match &mut self.tls {
            // SAFETY: by the caller's promise.
            None => unsafe { net::receive(fd, pieces) },
            // SAFETY: by the caller's promise.
            Some(tls) => unsafe { tls.receive(fd, pieces) },
        }
    }

    /// Whether a part of what was to be sent is on its way: nothing else can be sent before it.
    pub(crate) fn owes(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.owes())
    }

    /// Whether there is something to receive that watching the socket would not tell of.
    pub(crate) fn holds_input(&mut self) -> bool {
        self.tls.as_mut().is_some_and(|tls| tls.holds_input())
    }

    /// Whether bytes go out encrypted: from memory of the session's.
    pub(crate) const fn encrypts(&self) -> bool {
        self.tls.is_some()
    }

    /// The socket.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.fd().as_fd()
    }

    /// Watches the socket.
    pub(crate) fn watch(&mut self, interest: Interest, key: u64) -> io::Result<()> {
        self.socket.watch(interest, key)
    }

    /// Leaves nothing unread that would turn the connection's end into a reset.
    pub(crate) fn discard_input(&self) {
        discard_input(self.socket.fd().as_fd());
    }
}
