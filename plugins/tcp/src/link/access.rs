//! How a link comes by its connections: one end dials, the other accepts, for as long as it lives.

use std::sync::Arc;
use std::time::Instant;

use unisono_plugin::Channel;

use crate::net::{Interest, Polled, Poller};
use crate::setup::{Acceptor, Authenticated, Dialer, Listener, Timer};

/// Keys in the link's set: only that something is ready matters.
const KEY: u64 = u64::MAX;

/// The end that dials, or the one that accepts.
#[derive(Debug)]
pub(crate) enum End {
    Dialer(Dialer),
    Acceptor(Acceptor),
}

/// An end, and what wakes it.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) end: End,
    pub(crate) listener: Arc<Listener>,
    pub(crate) poller: Arc<Poller>,
    ready: Vec<Authenticated>,
    /// The shared listener's set within ours.
    door: Polled<Arc<Poller>>,
    timer: Timer,
}

impl Access {
    pub(crate) fn new(
        end: End,
        listener: Arc<Listener>,
        poller: Arc<Poller>,
    ) -> std::io::Result<Self> {
        let door = Polled::new(Arc::clone(listener.poller()), Arc::clone(&poller));
        let timer = Timer::new(Arc::clone(&poller), KEY)?;
        Ok(Self {
            end,
            listener,
            poller,
            ready: Vec::new(),
            door,
            timer,
        })
    }

    /// Goes on; the connections that stand now.
    pub(crate) fn advance(&mut self, channel: &Channel, peer: u32) -> Vec<Authenticated> {
        match &mut self.end {
            End::Dialer(dialer) => {
                dialer.advance(self.listener.options(), &self.poller, &mut self.ready);
            }
            End::Acceptor(acceptor) => {
                self.listener.tend();
                acceptor.advance(channel, peer, &self.listener, &self.poller, &mut self.ready);
            }
        }
        std::mem::take(&mut self.ready)
    }

    /// Watches for all that it waits for, and for the moment when the link must act even so.
    pub(crate) fn arm(&mut self, limit: Option<Instant>) -> std::io::Result<()> {
        let next = match &mut self.end {
            End::Dialer(dialer) => dialer.arm(KEY)?,
            End::Acceptor(acceptor) => {
                self.door.watch(Interest::Read, KEY)?;
                acceptor.arm(KEY)?
            }
        };
        match next.into_iter().chain(limit).min() {
            Some(when) => self.timer.set(when),
            None => self.timer.stop(),
        }
    }
}
