//! A link whose connections stand: turns of sending and receiving.

use std::io;

use unisono_plugin::{LinkStatistics, Result};

use super::broken::Broken;
use super::connecting::Connected;
use super::connection::Connection;
use super::farewell::{self, Farewell};
use super::incoming::Landed;
use super::order::Order;
use super::outbox::Outbox;
use super::window::Windows;
use crate::setup::Registration;

/// Bytes that one connection moves each way in one turn: then it is the next one's.
const TURN_BYTES: u64 = 1 << 20;
/// Polls between two looks at connections from which nothing is awaited.
const GLANCE: u32 = 16;
/// Polls between two looks at the shared listener.
const TEND: u32 = 1 << 13;

/// All connections, and the order in which puts land.
#[derive(Debug)]
pub(crate) struct Established {
    peer: u32,
    connections: Vec<Connection>,
    order: Order,
    polls: u32,
    /// Refuses who asks for this link again.
    _registration: Option<Registration>,
}

/// What the link lends for a turn.
pub(crate) struct Desk<'a> {
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) windows: &'a Windows,
    pub(crate) statistics: &'a mut LinkStatistics,
}

/// What a turn did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    pub(crate) bytes: u64,
    pub(crate) moved: bool,
    /// Whether another turn can do more at once.
    pub(crate) more: bool,
}

impl Established {
    pub(crate) fn new(peer: u32, connected: Connected) -> Self {
        Self {
            peer,
            connections: connected.connections,
            order: Order::default(),
            polls: 0,
            _registration: connected.registration,
        }
    }

    /// Counts polls; true now and then.
    pub(crate) fn is_time_to_tend(&mut self) -> bool {
        self.polls = self.polls.wrapping_add(1);
        self.polls.is_multiple_of(TEND)
    }

    /// The next poll asks every connection.
    pub(crate) fn wake(&mut self) {
        self.polls = self.polls.next_multiple_of(GLANCE).wrapping_sub(1);
        for connection in &mut self.connections {
            connection.incoming.wake();
            connection.outgoing.wake();
        }
    }

    /// Sends and receives on each connection once.
    ///
    /// # Errors
    /// The link can't go on.
    pub(crate) fn turn(&mut self, desk: &mut Desk<'_>, budget: u64) -> Result<Turn> {
        let budget = budget.min(TURN_BYTES);
        let mut turn = Turn {
            moved: desk.outbox.advance()?,
            ..Turn::default()
        };
        if !desk.outbox.is_empty() {
            self.send(desk, budget, &mut turn)?;
        }
        self.receive(desk, budget, &mut turn)?;
        turn.moved |= turn.bytes > 0;
        Ok(turn)
    }

    fn send(&mut self, desk: &mut Desk<'_>, budget: u64, turn: &mut Turn) -> Result<()> {
        let count = self.connections.len();
        for at in 0..count {
            let Connection { outgoing, .. } = &self.connections[at];
            if at > 0 && !outgoing.is_blocked() && !desk.outbox.has_unclaimed() {
                continue;
            }
            match self.connections[at].flush((at, count), desk.outbox, budget) {
                Ok(sent) => {
                    turn.bytes += sent;
                    turn.more |= sent >= budget;
                }
                Err(error) => return Err(self.lost(at, &Broken::System(error), desk)),
            }
        }
        turn.more |= desk.outbox.advance()? && desk.outbox.has_unclaimed();
        Ok(())
    }

    fn receive(&mut self, desk: &mut Desk<'_>, budget: u64, turn: &mut Turn) -> Result<()> {
        let glance = self.polls.is_multiple_of(GLANCE);
        let mut received = 0;
        for at in 0..self.connections.len() {
            let awaited = at == 0 || glance || self.order.is_waiting();
            let incoming = &mut self.connections[at].incoming;
            if !awaited || !incoming.is_due() {
                continue;
            }
            match self.pull(at, desk, budget) {
                Ok((bytes, more)) => {
                    received += bytes;
                    turn.more |= more;
                }
                Err(broken) => self.part(at, &broken, desk)?,
            }
            if let Some(word) = self.connections[at].incoming.goodbye()
                && word.aborted
            {
                return Err(farewell::gave_up(self.peer, &self.connections[at].name));
            }
        }
        turn.bytes += received;
        // What landed may let another connection go on, or raise the flag that the queue's head
        // waits for.
        turn.more |= received > 0 && (!desk.outbox.is_empty() || self.can_release());
        Ok(())
    }

    fn pull(&mut self, at: usize, desk: &mut Desk<'_>, budget: u64) -> Result<(u64, bool), Broken> {
        let mut landed = Landed {
            windows: desk.windows,
            order: &mut self.order,
            bytes: &mut desk.statistics.bytes_received,
            puts: &mut desk.statistics.puts_received,
        };
        self.connections[at].pull(&mut landed, budget)
    }

    /// A connection has come to its end: as announced, or the link is lost.
    fn part(&mut self, at: usize, broken: &Broken, desk: &mut Desk<'_>) -> Result<()> {
        let connection = &mut self.connections[at];
        let announced = connection.incoming.goodbye().is_some();
        if announced && !matches!(broken, Broken::Protocol(_)) {
            connection.open = false;
            return Ok(());
        }
        Err(self.lost(at, broken, desk))
    }

    /// Why the link is lost: if the peer said on any connection that it gave up, then that.
    fn lost(&mut self, at: usize, broken: &Broken, desk: &mut Desk<'_>) -> unisono_plugin::Error {
        if !matches!(broken, Broken::Protocol(_)) {
            for other in 0..self.connections.len() {
                let _ = self.pull(other, desk, TURN_BYTES);
                let connection = &self.connections[other];
                match connection.incoming.goodbye() {
                    Some(word) if word.aborted => {
                        return farewell::gave_up(self.peer, &connection.name);
                    }
                    _ => {}
                }
            }
        }
        let whose = Farewell {
            peer: self.peer,
            name: &self.connections[at].name,
            connection: at,
            connections: self.connections.len(),
        };
        whose.lost(broken)
    }

    /// Whether the peer has said goodbye on every connection and all that it sent has landed.
    ///
    /// # Errors
    /// It has, but something of what it sent is missing.
    pub(crate) fn is_ended(&self) -> Result<bool> {
        if self.connections.iter().any(|c| c.open) {
            return Ok(false);
        }
        let said = self
            .connections
            .iter()
            .filter_map(|c| c.incoming.goodbye())
            .map(|word| word.sequence)
            .max();
        if said != Some(self.order.next()) || self.order.is_waiting() {
            return Err(farewell::cut_short(self.peer));
        }
        Ok(true)
    }

    /// Watches every connection for what can make it go on; false if something can already.
    pub(crate) fn arm(&mut self, outbox: &Outbox) -> io::Result<bool> {
        let free = self
            .connections
            .first()
            .is_some_and(|c| !c.outgoing.is_blocked());
        if (outbox.has_unclaimed() && free) || self.can_release() {
            return Ok(false);
        }
        for (key, connection) in (0..).zip(&mut self.connections) {
            connection.watch(key)?;
        }
        Ok(true)
    }

    fn can_release(&self) -> bool {
        self.connections
            .iter()
            .any(|c| c.incoming.is_releasable(&self.order))
    }

    /// Says goodbye on every connection.
    pub(crate) fn end(&mut self, sequence: u64, aborted: bool) {
        for connection in &mut self.connections {
            connection.end(sequence, aborted);
        }
    }
}
