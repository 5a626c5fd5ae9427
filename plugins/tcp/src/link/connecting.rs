//! A link on its way to its connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use unisono_plugin::{Channel, Error, Result, Status};

use super::connection::Connection;
use crate::net::{Interest, Polled, Poller};
use crate::setup::{Acceptor, Authenticated, Dialer, Listener, Registration, Timer};

/// Keys in the link's set: only that something is ready matters.
const KEY: u64 = 0;

/// What both ends need.
#[derive(Debug)]
pub(crate) struct Connecting {
    end: End,
    ready: Vec<Authenticated>,
    /// Found by index; the newest wins, as the dialer knows which of them stands.
    found: Vec<Option<Authenticated>>,
    listener: Arc<Listener>,
    /// The shared listener's set within ours.
    door: Polled<Arc<Poller>>,
    poller: Arc<Poller>,
    timer: Timer,
    limit: Duration,
    deadline: Option<Instant>,
}

#[derive(Debug)]
pub(crate) enum End {
    Dialer(Dialer),
    Acceptor(Acceptor),
}

/// All connections of a link, in their order.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) connections: Vec<Connection>,
    /// Keeps refusing who asks for this link again.
    pub(crate) registration: Option<Registration>,
}

impl Connecting {
    pub(crate) fn new(
        end: End,
        listener: Arc<Listener>,
        poller: Arc<Poller>,
        limit: Duration,
    ) -> std::io::Result<Self> {
        let door = Polled::new(Arc::clone(listener.poller()), Arc::clone(&poller));
        Ok(Self {
            end,
            ready: Vec::new(),
            found: Vec::new(),
            listener,
            door,
            timer: Timer::new(Arc::clone(&poller), KEY)?,
            poller,
            limit,
            deadline: None,
        })
    }

    /// Goes on; `Some` once all connections stand.
    pub(crate) fn advance(&mut self, channel: &Channel, peer: u32) -> Result<Option<Connected>> {
        let deadline = *self
            .deadline
            .get_or_insert_with(|| Instant::now() + self.limit);
        let count = match &mut self.end {
            End::Dialer(dialer) => {
                dialer.advance(self.listener.options(), &self.poller, &mut self.ready);
                Some(dialer.connections())
            }
            End::Acceptor(acceptor) => {
                self.listener.tend();
                acceptor.advance(channel, peer, &self.listener, &self.poller, &mut self.ready);
                acceptor.count()
            }
        };
        for one in self.ready.drain(..) {
            let at = usize::from(one.index);
            if self.found.len() <= at {
                self.found.resize_with(at + 1, || None);
            }
            self.found[at] = Some(one);
        }
        let complete = self.found.len() == count.map_or(usize::MAX, usize::from)
            && self.found.iter().all(Option::is_some);
        if complete {
            return self.finish(peer).map(Some);
        }
        if Instant::now() >= deadline {
            return Err(self.too_late(peer));
        }
        Ok(None)
    }

    fn finish(&mut self, peer: u32) -> Result<Connected> {
        let connections = self
            .found
            .drain(..)
            .flatten()
            .map(|one| Connection::new(one, self.listener.options(), &self.poller))
            .collect::<std::io::Result<Vec<_>>>()
            .map_err(|error| {
                let what = format!("cannot set up a connection to rank {peer}");
                Error::system(Status::Link, &what, &error)
            })?;
        let registration = match &mut self.end {
            End::Dialer(_) => None,
            End::Acceptor(acceptor) => acceptor.finish(),
        };
        Ok(Connected {
            connections,
            registration,
        })
    }

    fn too_late(&self, peer: u32) -> Error {
        let stand = self.found.iter().flatten().count();
        let why = match &self.end {
            End::Dialer(dialer) => format!("dialling it: {}", dialer.last_problem()),
            End::Acceptor(_) => format!(
                "it has not dialled port {} here: is a firewall between?",
                self.listener.port()
            ),
        };
        Error::new(
            Status::Timeout,
            format!(
                "no link to rank {peer} within {:?} ({stand} connections stand); {why}",
                self.limit
            ),
        )
    }

    /// Watches for all that it waits for, and for the moment when it must act even so.
    pub(crate) fn arm(&mut self) -> std::io::Result<()> {
        let next = match &mut self.end {
            End::Dialer(dialer) => dialer.arm(KEY)?,
            End::Acceptor(acceptor) => {
                self.door.watch(Interest::Read, KEY)?;
                acceptor.arm(KEY)?
            }
        };
        let limit = self.deadline.unwrap_or_else(Instant::now);
        self.timer.set(next.map_or(limit, |n| n.min(limit)))
    }
}
