//! All connections of one rank, root or leader: accepted, dialled, proven, read, written and closed without blocking.
//!
//! Whoever owns a hub calls [`Hub::turn`] when [`Hub::descriptor`] is readable or [`Hub::next_deadline`] has come.

mod drive;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{BootstrapError, Result};
use crate::report::{StrayKind, Strays};

use super::acceptor::{Accepted, HANDSHAKE_LIMIT, Listener, Unproven};
use super::connection::{Connection, Stage};
use super::handshake::{Credentials, Handshake, Keys, Purpose};
use super::poller::{Poller, Ready, Token};
use super::socket;
use drive::{Failure, advance};

/// How long the system may take to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);
/// How many connections are accepted a turn, so that a flood of them leaves time for the others.
const ACCEPTS_A_TURN: usize = 64;
/// How much is read of one connection a turn, in bytes.
const READ_A_TURN: usize = 1 << 20;
/// How long no connection is accepted after descriptors ran out.
const BREATHER: Duration = Duration::from_millis(100);

/// What a turn brought.
#[derive(Debug)]
pub(crate) enum HubEvent {
    /// A connection proved itself.
    Opened {
        token: Token,
        rank: u32,
        outgoing: bool,
    },
    /// A frame came in.
    Frame { token: Token, body: Vec<u8> },
    /// A connection that was open, or that this side dialled, is gone.
    Closed { token: Token, end: End },
    /// Another descriptor that is watched has become readable.
    Watched { token: Token },
}

/// Why a connection is gone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The other side does not know this rank yet; it is worth trying again at once.
    Later,
    /// The other side closed, or never was.
    Lost(String),
}

/// See the module.
pub(crate) struct Hub {
    poller: Poller,
    me: Credentials,
    place: &'static str,
    connections: HashMap<Token, Connection>,
    listeners: HashMap<Token, Listener>,
    watched: HashMap<Token, OwnedFd>,
    unproven: Unproven,
    dialling: Vec<Token>,
    breather: Option<Instant>,
    pub(crate) strays: Strays,
}

impl Hub {
    /// A hub that shows `me`; `place` names it in log lines.
    pub(crate) fn new(me: Credentials, place: &'static str) -> Result<Hub> {
        Ok(Hub {
            poller: Poller::new()?,
            me,
            place,
            connections: HashMap::new(),
            listeners: HashMap::new(),
            watched: HashMap::new(),
            unproven: Unproven::default(),
            dialling: Vec::new(),
            breather: None,
            strays: Strays::default(),
        })
    }

    /// Readable when a turn has something to do.
    pub(crate) fn descriptor(&self) -> Arc<OwnedFd> {
        self.poller.descriptor()
    }

    /// Accepts connections from here on.
    pub(crate) fn listen(&mut self, listener: Listener) -> Result<()> {
        let token = self
            .poller
            .add(&listener, true, false)
            .map_err(|e| BootstrapError::io("watching a listener", e))?;
        self.listeners.insert(token, listener);
        Ok(())
    }

    /// Tells when a descriptor becomes readable; it is then forgotten and closed.
    pub(crate) fn watch(&mut self, fd: OwnedFd) -> std::io::Result<Token> {
        let token = self.poller.add(&fd, true, false)?;
        self.watched.insert(token, fd);
        Ok(token)
    }

    /// Begins to connect to an address; [`HubEvent::Opened`] or [`HubEvent::Closed`] follows.
    pub(crate) fn dial(
        &mut self,
        address: SocketAddr,
        purpose: Purpose,
        target: u32,
    ) -> Result<Token> {
        let socket = socket::connect(address)
            .map_err(|e| BootstrapError::io(format!("connecting to {address}"), e))?;
        self.begin(socket, address.to_string(), purpose, target)
    }

    /// The same over a Unix socket that is connected already.
    pub(crate) fn adopt(
        &mut self,
        socket: OwnedFd,
        place: String,
        purpose: Purpose,
        target: u32,
    ) -> Result<Token> {
        self.begin(socket, place, purpose, target)
    }

    fn begin(
        &mut self,
        socket: OwnedFd,
        place: String,
        purpose: Purpose,
        target: u32,
    ) -> Result<Token> {
        let (handshake, hello) = Handshake::client(&self.me, purpose, target)?;
        let mut connection = Connection::new(socket, Stage::Connecting(handshake), place, true);
        connection.push(hello.into());
        connection.interest = connection.wants();
        let token = self
            .poller
            .add(&connection, connection.interest.0, connection.interest.1);
        let token = token.map_err(|e| BootstrapError::io("watching a connection", e))?;
        self.connections.insert(token, connection);
        self.dialling.push(token);
        Ok(token)
    }

    /// Queues a frame, and writes what the system takes at once. A connection that is gone swallows it; its end is
    /// told by [`HubEvent::Closed`].
    pub(crate) fn send(&mut self, token: Token, frame: Arc<[u8]>) {
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.push(frame);
            // A failure shows again when the connection is read, and is told there.
            let _ = if connection.is_open() {
                connection.flush()
            } else {
                Ok(())
            };
            self.renew(token);
        }
    }

    /// Bytes that wait to be written to a connection.
    pub(crate) fn queued(&self, token: Token) -> usize {
        self.connections.get(&token).map_or(0, Connection::queued)
    }

    /// Where a connection comes from or goes to.
    pub(crate) fn place(&self, token: Token) -> String {
        self.connections
            .get(&token)
            .map_or_else(|| "a closed connection".to_owned(), |c| c.place.clone())
    }

    /// Stops or resumes reading a connection.
    pub(crate) fn pause(&mut self, token: Token, paused: bool) {
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.paused = paused;
            self.renew(token);
        }
    }

    /// Closes a connection, without an event.
    pub(crate) fn close(&mut self, token: Token) {
        self.unproven.remove(token);
        self.dialling.retain(|&dialling| dialling != token);
        if let Some(connection) = self.connections.remove(&token) {
            self.poller.remove(&connection);
            connection.shut();
        }
    }

    /// Forgets a watched descriptor.
    pub(crate) fn unwatch(&mut self, token: Token) {
        if let Some(fd) = self.watched.remove(&token) {
            self.poller.remove(&fd);
        }
    }

    /// Closes everything, for both sides. A mere drop closes this process's copies only, as befits a forked child.
    pub(crate) fn shut_down(&mut self) {
        let tokens: Vec<Token> = self.connections.keys().copied().collect();
        tokens.into_iter().for_each(|token| self.close(token));
        for (_, listener) in self.listeners.drain() {
            self.poller.remove(&listener);
        }
        let watched: Vec<Token> = self.watched.keys().copied().collect();
        watched.into_iter().for_each(|token| self.unwatch(token));
        self.strays.log_summary(self.place);
        self.strays = Strays::default();
    }

    /// When a turn is due though nothing is readable.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let dialling = self
            .dialling
            .iter()
            .filter_map(|token| self.connections.get(token))
            .map(limit)
            .min();
        [self.unproven.next_deadline(), dialling, self.breather]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does what can be done now.
    pub(crate) fn turn(&mut self, now: Instant, keys: Keys<'_>) -> Result<Vec<HubEvent>> {
        let mut events = Vec::new();
        for Ready {
            token,
            readable,
            writable,
        } in self.poller.ready()?
        {
            if self.listeners.contains_key(&token) {
                self.accept(token, now, keys, &mut events);
            } else if self.watched.contains_key(&token) {
                self.unwatch(token);
                events.push(HubEvent::Watched { token });
            } else {
                self.drive(token, readable, writable, keys, &mut events);
            }
        }
        self.expire(now, &mut events);
        Ok(events)
    }

    fn expire(&mut self, now: Instant, events: &mut Vec<HubEvent>) {
        while let Some(token) = self.unproven.overdue(now) {
            self.stray(token, StrayKind::Silent);
        }
        let due = |token: &Token| {
            self.connections
                .get(token)
                .is_some_and(|connection| limit(connection) <= now)
        };
        let overdue: Vec<Token> = self.dialling.iter().copied().filter(due).collect();
        for token in overdue {
            let why = match self
                .connections
                .get(&token)
                .map(|connection| &connection.stage)
            {
                Some(Stage::Connecting(_)) => "no answer".to_owned(),
                _ => "it accepted and did not finish the handshake".to_owned(),
            };
            self.close(token);
            events.push(HubEvent::Closed {
                token,
                end: End::Lost(why),
            });
        }
        if self.breather.is_some_and(|until| until <= now) {
            self.breather = None;
            for (&token, listener) in &self.listeners {
                // It was added by this hub, so changing it cannot fail for good.
                let _ = self.poller.change(listener, token, true, false);
            }
        }
    }

    fn accept(
        &mut self,
        listener: Token,
        now: Instant,
        keys: Keys<'_>,
        events: &mut Vec<HubEvent>,
    ) {
        for _ in 0..ACCEPTS_A_TURN {
            let Some(source) = self.listeners.get(&listener) else {
                return;
            };
            match source.accept() {
                Accepted::None => return,
                Accepted::WrongUser(place) => {
                    self.strays.note(StrayKind::WrongUser, self.place, &place)
                }
                Accepted::Exhausted => {
                    match self.unproven.oldest() {
                        Some(oldest) => self.stray(oldest, StrayKind::Crowded),
                        None => {
                            // Level-triggered, so it would wake us again and again.
                            let _ = self.poller.change(source, listener, false, false);
                            self.breather = Some(now + BREATHER);
                        }
                    }
                    return;
                }
                Accepted::Connection(socket, place) => {
                    let mut connection =
                        Connection::new(socket, Stage::Shaking(Handshake::server()), place, false);
                    connection.interest = connection.wants();
                    let Ok(token) =
                        self.poller
                            .add(&connection, connection.interest.0, connection.interest.1)
                    else {
                        return;
                    };
                    self.connections.insert(token, connection);
                    if let Some(oldest) = self.unproven.add(token, now) {
                        self.stray(oldest, StrayKind::Crowded);
                    }
                    // Its hello is often here already, and the sooner it is proven the less can push it out.
                    self.drive(token, true, false, keys, events);
                }
            }
        }
    }

    /// Drops a connection that is not proven to be the job's.
    fn stray(&mut self, token: Token, kind: StrayKind) {
        let place = self.place(token);
        self.strays.note(kind, self.place, &place);
        self.close(token);
    }

    /// Sets what the poller waits for to what the connection wants.
    fn renew(&mut self, token: Token) {
        if let Some(connection) = self.connections.get_mut(&token) {
            let wants = connection.wants();
            if wants != connection.interest
                && self
                    .poller
                    .change(&*connection, token, wants.0, wants.1)
                    .is_ok()
            {
                connection.interest = wants;
            }
        }
    }

    fn drive(
        &mut self,
        token: Token,
        readable: bool,
        writable: bool,
        keys: Keys<'_>,
        events: &mut Vec<HubEvent>,
    ) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        let was_known = connection.outgoing || connection.is_open();
        match advance(
            connection, &self.me, readable, writable, keys, token, events,
        ) {
            Ok(()) => {
                if connection.is_open() {
                    self.unproven.remove(token);
                    self.dialling.retain(|&dialling| dialling != token);
                }
                self.renew(token);
            }
            Err(Failure::Lost(why)) if was_known || connection.is_open() => {
                self.close(token);
                events.push(HubEvent::Closed {
                    token,
                    end: End::Lost(why),
                });
            }
            Err(Failure::Lost(_)) => self.stray(token, StrayKind::Closed),
            Err(Failure::Stray(_, why)) if was_known => {
                self.close(token);
                events.push(HubEvent::Closed {
                    token,
                    end: End::Lost(why),
                });
            }
            Err(Failure::Stray(kind, _)) => self.stray(token, kind),
            Err(Failure::Later) => {
                self.close(token);
                if was_known {
                    events.push(HubEvent::Closed {
                        token,
                        end: End::Later,
                    });
                }
            }
        }
    }
}

/// When a connection that this side dialled must be further.
fn limit(connection: &Connection) -> Instant {
    match connection.stage {
        Stage::Connecting(_) => connection.since + CONNECT_LIMIT,
        _ => connection.since + HANDSHAKE_LIMIT,
    }
}

impl Hub {
    /// Whether every byte for open connections was handed to the system.
    pub(crate) fn is_flushed(&self) -> bool {
        self.connections
            .values()
            .all(|connection| !connection.is_open() || connection.queued() == 0)
    }

    /// Sleeps until something is ready or `limit` has passed.
    pub(crate) fn sleep(&self, limit: Duration) {
        let limit = self.next_deadline().map_or(limit, |at| {
            limit.min(at.saturating_duration_since(Instant::now()))
        });
        sleep_on(&[self.poller.descriptor().as_fd()], limit);
    }
}

/// Sleeps until one of `fds` is readable, a signal comes, or `limit` has passed.
pub(crate) fn sleep_on(fds: &[std::os::fd::BorrowedFd<'_>], limit: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut set: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN))
        .collect();
    let limit = Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: limit.subsec_nanos().into(),
    };
    // An interruption is as good as an early wake: every caller looks again.
    let _ = poll(&mut set, Some(&limit));
}
