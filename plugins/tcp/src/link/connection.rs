//! One of a link's connections: both directions, and its place in the link's set.
//!
//! What a connection was to bring outlives its socket: another takes its place, and goes on where both
//! ends say that the one before it ended.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use super::broken::Broken;
use super::incoming::{Incoming, Landed};
use super::order::Order;
use super::outbox::Outbox;
use super::outgoing::Outgoing;
use super::put::Place;
use super::spread::Rail;
use super::stream::Stream;
use super::trouble::Trouble;
use crate::net::{Heard, Interest, Options, Poller, Silence, local_ip, unsent};
use crate::setup::Authenticated;
use crate::wire::Frame;

/// A connection that both ends have proved.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    /// The other end, for messages.
    pub(crate) name: String,
    /// Of all that were tried in its place, the newest that stands.
    pub(crate) generation: u16,
    /// Which of the peer's addresses it goes to; known to the dialer alone.
    pub(crate) target: usize,
    lasting: bool,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    /// Whether the peer may still say something.
    pub(crate) open: bool,
    /// Why it needs another in its place, if it does.
    pub(crate) trouble: Option<Trouble>,
    /// Bytes that went over it and those before it in its place, both ways.
    pub(crate) carried: u64,
    silence: Silence,
}

impl Connection {
    pub(crate) fn new(
        authenticated: Authenticated,
        options: &Options,
        poller: &Arc<Poller>,
    ) -> io::Result<Self> {
        options.after(&authenticated.fd)?;
        Ok(Self {
            name: authenticated.name.clone(),
            generation: authenticated.generation,
            target: authenticated.target,
            lasting: authenticated.lasting,
            incoming: Incoming::new(authenticated.lasting),
            outgoing: Outgoing::new(authenticated.lasting),
            stream: Stream::new(authenticated, poller),
            open: true,
            trouble: None,
            carried: 0,
            silence: Silence::default(),
        })
    }

    /// Takes a new socket in place of the old one, which is read no further: both ends go on where
    /// they say that it ended.
    pub(crate) fn replace(
        &mut self,
        by: Authenticated,
        options: &Options,
        poller: &Arc<Poller>,
        order: &mut Order,
    ) -> io::Result<()> {
        options.after(&by.fd)?;
        // The old socket is closed here, before this end says what it has.
        (self.generation, self.target) = (by.generation, by.target);
        self.lasting = by.lasting;
        self.name.clone_from(&by.name);
        self.stream = Stream::new(by, poller);
        let received = self.incoming.restart(order, self.lasting);
        self.outgoing.restart(received, self.lasting);
        (self.open, self.silence) = (true, Silence::default());
        Ok(())
    }

    /// Sends what the kernel takes; see [`Outgoing::flush`].
    pub(crate) fn flush(
        &mut self,
        place: Place,
        outbox: &mut Outbox,
        budget: u64,
    ) -> io::Result<u64> {
        if !self.open {
            return Ok(0);
        }
        if outbox.has_for(place)
            && let Some(received) = self.incoming.acknowledge_along()
        {
            self.outgoing.say(&Frame::Ack { received });
        }
        let sent = self
            .outgoing
            .flush(&mut self.stream, place, outbox, budget)?;
        self.carried += sent;
        Ok(sent)
    }

    /// Sends a few short puts; see [`Outgoing::send_short`].
    pub(crate) fn send_short(&mut self, place: Place, outbox: &mut Outbox) -> io::Result<u64> {
        if !self.open {
            return Ok(0);
        }
        let sent = self.outgoing.send_short(&mut self.stream, place, outbox)?;
        self.carried += sent;
        Ok(sent)
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
        let pulled = self.incoming.pull(&mut self.stream, landed, budget);
        if let Some(received) = self.incoming.acknowledge() {
            self.outgoing.say(&Frame::Ack { received });
        }
        if let Ok((bytes, _)) = &pulled {
            self.carried += bytes;
        }
        pulled
    }

    /// How long the path has been silent; nothing, if the connection is over.
    pub(crate) fn look(&mut self, now: Instant) -> Option<Heard> {
        self.open.then(|| self.silence.look(self.stream.fd(), now))
    }

    /// Counts silence afresh.
    pub(crate) fn forget_silence(&mut self) {
        self.silence = Silence::default();
    }

    /// This end's address.
    pub(crate) fn here(&self) -> Option<IpAddr> {
        local_ip(self.stream.fd())
    }

    /// The other end's address, without its port: a rail leads there.
    pub(crate) fn host(&self) -> &str {
        self.name.rsplit_once(':').map_or("", |(host, _)| host)
    }

    /// Whether it can carry what waits.
    pub(crate) const fn is_well(&self) -> bool {
        self.open && self.trouble.is_none()
    }

    /// Whether no other can take its place: what was on it is nowhere else.
    pub(crate) const fn is_irreplaceable(&self) -> bool {
        self.lasting && self.outgoing.is_going()
    }

    /// What is known of it, for a put that several rails share.
    pub(crate) fn rail(&self, now: Instant) -> Rail {
        let pace = self.outgoing.pace();
        Rail {
            is_well: self.is_well() && self.outgoing.is_going(),
            rate: pace.rate(),
            at_most: pace.at_most(now),
            under_way: pace.under_way(),
            is_old: pace.is_old(now),
        }
    }

    /// Watches for what can make it go on.
    pub(crate) fn watch(&mut self, key: u64) -> io::Result<()> {
        let read = self.open && !self.incoming.is_held();
        let interest = Interest::of(read, self.open && self.outgoing.is_blocked());
        self.stream.watch(interest, key)
    }

    /// Watches for nothing until [`watch`](Self::watch) is called.
    pub(crate) fn watch_no_more(&mut self) {
        // One that can't leave the set stays in it, as before.
        let _ = self.stream.watch(Interest::Nothing, 0);
    }

    /// Whether there is something to take that watching would not tell of.
    pub(crate) fn holds_input(&mut self) -> bool {
        self.open && !self.incoming.is_held() && self.stream.holds_input()
    }

    /// Whether the kernel still has bytes to send of which nothing is kept. What comes in meanwhile is for nobody.
    pub(crate) fn holds_back(&self) -> bool {
        if !self.lasting || !self.open {
            return false;
        }
        self.stream.discard_input();
        unsent(self.stream.fd()) > 0
    }

    /// The last word, and nothing left unread that would turn it into a reset.
    pub(crate) fn end(&mut self, sequence: u64, aborted: bool) {
        self.outgoing
            .say_goodbye(&mut self.stream, sequence, aborted);
        self.stream.discard_input();
    }
}
