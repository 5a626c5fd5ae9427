//! How a socket that said hello gets from the shared listener to the link that it is for.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Listener;
use crate::net::{Interest, Polled, Poller};
use crate::wire::Hello;

/// Arrivals that a link keeps at once; the oldest goes when another comes.
const ARRIVALS_MAX: usize = 32;

/// The link that a hello is for, as its acceptor knows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) channel: u64,
    /// The acceptor's rank: several ranks may be threads of one process.
    pub(crate) here: u32,
    /// The dialer's rank.
    pub(crate) there: u32,
}

impl Key {
    pub(crate) const fn of(hello: &Hello) -> Self {
        Self {
            channel: hello.channel,
            here: hello.to,
            there: hello.from,
        }
    }
}

/// A socket that said hello, not authenticated yet.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) fd: OwnedFd,
    pub(crate) hello: Hello,
}

/// Where a link's arrivals wait for its next poll. Any thread may deliver.
#[derive(Debug)]
pub(crate) struct Mailbox {
    arrivals: Mutex<VecDeque<(Polled, Hello)>>,
    poller: Arc<Poller>,
    closed: AtomicBool,
}

impl Mailbox {
    /// A mailbox that wakes `poller` when something arrives.
    pub(crate) fn new(poller: Arc<Poller>) -> Self {
        Self {
            arrivals: Mutex::default(),
            poller,
            closed: AtomicBool::new(false),
        }
    }

    /// Leaves a socket here, or gives it back if the link wants no more. The socket is writable, so
    /// that watching it for that ends the sleep of the link's thread.
    pub(crate) fn deliver(&self, arrival: Arrival) -> Result<(), Arrival> {
        if self.closed.load(Ordering::Acquire) {
            return Err(arrival);
        }
        let mut socket = Polled::new(arrival.fd, Arc::clone(&self.poller));
        // Should that fail, the link's next poll finds it all the same.
        let _ = socket.watch(Interest::Write, u64::MAX);
        let mut arrivals = self.lock();
        if arrivals.len() >= ARRIVALS_MAX {
            arrivals.pop_front();
        }
        arrivals.push_back((socket, arrival.hello));
        Ok(())
    }

    /// The next arrival.
    pub(crate) fn collect(&self) -> Option<Arrival> {
        let (socket, hello) = self.lock().pop_front()?;
        let fd = socket.into_fd().ok()?;
        Some(Arrival { fd, hello })
    }

    /// Wants no more, and drops what is here.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Polled, Hello)>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A mailbox's place in the listener's directory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(super) listener: Weak<Listener>,
    pub(super) key: Key,
    pub(crate) mailbox: Arc<Mailbox>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.mailbox.close();
        if let Some(listener) = self.listener.upgrade() {
            listener.forget(self.key, &self.mailbox);
        }
    }
}
