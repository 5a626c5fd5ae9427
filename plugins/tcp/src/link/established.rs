//! A link whose connections stand: turns of sending and receiving.

use std::io;
use std::time::{Duration, Instant};

use unisono_plugin::{Host, LinkStatistics, Result};

use super::access::Access;
use super::broken::Broken;
use super::connecting::Connected;
use super::connection::Connection;
use super::elsewhere::Elsewhere;
use super::farewell::{self, Farewell};
use super::incoming::Landed;
use super::order::Order;
use super::outbox::Outbox;
use super::put::{Lines, Place};
use super::spread::{self, Rail};
use super::upkeep::Upkeep;
use super::window::Windows;
use crate::setup::Recovery;

/// Bytes that one connection moves each way in one turn: then it is the next one's.
const TURN_BYTES: u64 = 256 << 10;
/// Behind so few bytes sent nothing is looked for in the same turn, but for each [`GLANCE`]-th.
const SMALL: u64 = 64 << 10;
/// Polls between two looks at what is not awaited: connections, and what comes while this end sends.
const GLANCE: u32 = 16;
/// How long a link that leaves in order waits for a peer within the machine to read.
const LINGER: Duration = Duration::from_secs(2);
/// For so long connections are watched once the host is awake. A thread that sleeps on the set while another polls the link
/// arms it again sooner.
const WATCHED: Duration = Duration::from_millis(200);
/// Polls between two looks at the clock and at the shared listener.
const TEND: u32 = 1 << 10;
/// As long as a connection needs another in its place.
const TEND_OFTEN: u32 = 1 << 4;

/// All connections, and the order in which puts land.
#[derive(Debug)]
pub(crate) struct Established {
    pub(super) peer: u32,
    pub(super) connections: Vec<Connection>,
    pub(super) order: Order,
    pub(super) elsewhere: Elsewhere,
    pub(super) lines: Lines,
    /// Scratch space for what is known of each connection.
    shares: Vec<Rail>,
    polls: u32,
    /// Whether the host sleeps, or is about to.
    armed: bool,
    /// When it last prepared for that; none if no connection is watched since.
    armed_last: Option<Instant>,
    /// Whether the first connections have all begun.
    begun: bool,
    pub(super) access: Access,
    pub(super) upkeep: Upkeep,
}

/// Over what puts are striped.
pub(super) fn lines(connections: &[Connection]) -> Lines {
    Lines {
        count: connections.len(),
        rails: connections
            .windows(2)
            .any(|two| two[0].host() != two[1].host()),
    }
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
    pub(crate) fn new(peer: u32, connected: Connected, recovery: Recovery, host: Host) -> Self {
        let new = Self {
            peer,
            upkeep: Upkeep::new(connected.connections.len(), recovery, host),
            lines: lines(&connected.connections),
            connections: connected.connections,
            order: Order::default(),
            elsewhere: Elsewhere::default(),
            shares: Vec::new(),
            polls: 0,
            armed: false,
            armed_last: None,
            begun: false,
            access: connected.access,
        };
        new.say_rails("goes");
        new
    }

    /// Counts polls; true now and then, and often while a connection is missing.
    pub(crate) fn is_time_to_tend(&mut self) -> bool {
        self.polls = self.polls.wrapping_add(1);
        let is_missing = || self.connections.iter().any(|c| c.trouble.is_some());
        self.polls.is_multiple_of(TEND_OFTEN) && (self.polls.is_multiple_of(TEND) || is_missing())
    }

    /// Whether both ends have begun on every one of the first connections.
    pub(crate) fn has_begun(&mut self) -> bool {
        let begun = |c: &Connection| c.outgoing.is_going() && !c.outgoing.has_words();
        self.begun = self.begun || self.connections.iter().all(begun);
        self.begun
    }

    /// Whether bytes wait for the kernel to take them.
    pub(crate) fn is_blocked(&self) -> bool {
        self.connections.iter().any(|c| c.outgoing.is_blocked())
    }

    /// Whether bytes wait for the kernel, or for another connection in place of one that was lost: a link
    /// that is ended now would take them with it.
    pub(crate) fn owes(&self) -> bool {
        let owes = |c: &Connection| {
            c.outgoing.is_blocked() || (c.trouble.is_some() && c.outgoing.awaits_peer())
        };
        self.connections.iter().any(owes)
    }

    /// The host is awake: the next poll asks every connection.
    pub(crate) fn wake(&mut self) {
        self.armed = false;
        self.polls = (self.polls / TEND * TEND).wrapping_add(TEND - 1);
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
        let mut turn = Turn::default();
        if (!desk.outbox.is_empty() || self.is_blocked()) && !self.send_short(desk, &mut turn)? {
            turn.moved = desk.outbox.advance()?;
            self.send(desk, budget, &mut turn)?;
        }
        // What answers a small put is not there yet: who waits for it polls again. Who sends one after the other and waits
        // for nothing hears now and then what has landed.
        let glance = self.polls.is_multiple_of(GLANCE);
        if turn.bytes == 0 || turn.bytes > SMALL || turn.more || glance {
            self.receive(desk, budget, &mut turn)?;
        }
        turn.moved |= turn.bytes > 0;
        Ok(turn)
    }

    /// Sends a few short puts that are all there is to send; false if there is more, or something else.
    fn send_short(&mut self, desk: &mut Desk<'_>, turn: &mut Turn) -> Result<bool> {
        if self.lines.rails {
            return Ok(false);
        }
        let place = self.place(0, desk.outbox);
        match self.connections[0].send_short(place, desk.outbox) {
            Ok(sent) => {
                turn.bytes += sent;
                Ok(sent > 0)
            }
            Err(error) => {
                self.part(0, Broken::System(error), desk)?;
                Ok(true)
            }
        }
    }

    fn send(&mut self, desk: &mut Desk<'_>, budget: u64, turn: &mut Turn) -> Result<()> {
        let rails = self.lines.rails;
        for at in 0..self.lines.count {
            let Connection { outgoing, .. } = &self.connections[at];
            if at > 0 && !outgoing.is_blocked() && !desk.outbox.has_unclaimed() {
                continue;
            }
            let most = if rails { 1 } else { budget };
            let place = self.place(at, desk.outbox);
            match self.connections[at].flush(place, desk.outbox, most) {
                Ok(sent) => {
                    turn.bytes += sent;
                    turn.more |= sent >= most;
                }
                Err(error) => self.part(at, Broken::System(error), desk)?,
            }
        }
        turn.more |= desk.outbox.advance()? && desk.outbox.has_unclaimed();
        Ok(())
    }

    /// A connection, and how much it may take of a put that rails share.
    fn place(&mut self, at: usize, outbox: &Outbox) -> Place {
        let lines = self.lines;
        let mut place = Place {
            connection: at,
            lines,
            most: 0,
        };
        if !lines.rails || !self.connections[at].outgoing.is_hungry() {
            return place;
        }
        let rest = outbox.shared_rest(lines);
        if rest > 0 {
            let now = Instant::now();
            self.shares.clear();
            self.shares
                .extend(self.connections.iter().map(|c| c.rail(now)));
            place.most = spread::share(&self.shares, at, rest);
        }
        place
    }

    fn receive(&mut self, desk: &mut Desk<'_>, budget: u64, turn: &mut Turn) -> Result<()> {
        let glance = self.polls.is_multiple_of(GLANCE);
        let mut received = 0;
        for at in 0..self.connections.len() {
            let Connection {
                incoming, outgoing, ..
            } = &mut self.connections[at];
            let awaited = at == 0
                || glance
                || outgoing.awaits_peer()
                || self.order.is_waiting()
                || incoming.is_undecided();
            if !awaited || !incoming.is_due() {
                continue;
            }
            match self.pull(at, desk, budget) {
                Ok((bytes, more)) => {
                    received += bytes;
                    turn.more |= more;
                }
                Err(broken) => self.part(at, broken, desk)?,
            }
            self.hear(at, desk)?;
            if let Some(word) = self.connections[at].incoming.goodbye()
                && word.aborted
            {
                return Err(farewell::gave_up(self.peer, &self.connections[at].name));
            }
        }
        turn.bytes += received;
        if received > 0 {
            self.answer(desk)?;
        }
        self.check_order(desk)?;
        // What landed may let another connection go on, or raise the flag that the queue's head
        // waits for.
        turn.more |= received > 0 && (!desk.outbox.is_empty() || self.can_release());
        Ok(())
    }

    /// A put that every connection is ahead of can't come any more: each brings puts in order.
    fn check_order(&mut self, desk: &mut Desk<'_>) -> Result<()> {
        // Most often the first is not held.
        let goes_on = |c: &Connection| c.open && !c.incoming.is_held();
        if self.connections.iter().any(goes_on)
            || self.connections.iter().any(|c| c.trouble.is_some())
            || self.connections.iter().all(|c| !c.open)
            || self.can_release()
        {
            return Ok(());
        }
        let missing = self.order.next();
        let why = Broken::Protocol(format!("put {missing} was left out"));
        Err(self.lost(0, &why, desk))
    }

    fn pull(&mut self, at: usize, desk: &mut Desk<'_>, budget: u64) -> Result<(u64, bool), Broken> {
        let mut landed = Landed {
            windows: desk.windows,
            order: &mut self.order,
            elsewhere: &mut self.elsewhere,
            bytes: &mut desk.statistics.bytes_received,
            puts: &mut desk.statistics.puts_received,
        };
        self.connections[at].pull(&mut landed, budget)
    }

    /// What the peer said about a connection.
    fn hear(&mut self, at: usize, desk: &mut Desk<'_>) -> Result<()> {
        let Some(said) = self.connections[at].incoming.take_said() else {
            return Ok(());
        };
        if let Some(received) = said.resumed {
            let again = self.connections[at].outgoing.resume(received, desk.outbox);
            match again {
                Ok(again) => {
                    self.count_recovery(at);
                    self.recovered(at, again);
                }
                Err(broken) => return Err(self.lost(at, &broken, desk)),
            }
        }
        if let Some(received) = said.acknowledged {
            let outgoing = &mut self.connections[at].outgoing;
            if let Err(broken) = outgoing.acknowledge(received, desk.outbox) {
                return Err(self.lost(at, &broken, desk));
            }
        }
        if let Some((index, generation)) = said.lost {
            self.told(usize::from(index), generation, desk)?;
        }
        Ok(())
    }

    /// Tells the peer at once what has landed.
    fn answer(&mut self, desk: &mut Desk<'_>) -> Result<()> {
        for at in 0..self.lines.count {
            if !self.connections[at].outgoing.has_words() {
                continue;
            }
            let place = self.place(at, desk.outbox);
            if let Err(error) = self.connections[at].flush(place, desk.outbox, 1) {
                self.part(at, Broken::System(error), desk)?;
            }
        }
        Ok(())
    }

    /// A connection has come to its end: as announced, or it needs another in its place.
    pub(super) fn part(&mut self, at: usize, broken: Broken, desk: &mut Desk<'_>) -> Result<()> {
        if matches!(broken, Broken::Protocol(_)) {
            return Err(self.lost(at, &broken, desk));
        }
        if matches!(broken, Broken::System(_)) {
            // What had come before may say why.
            self.connections[at].incoming.wait_no_more();
            let _ = self.pull(at, desk, u64::MAX);
        }
        if let Some(word) = self.connections[at].incoming.goodbye() {
            if word.aborted {
                return Err(farewell::gave_up(self.peer, &self.connections[at].name));
            }
            self.connections[at].open = false;
            return Ok(());
        }
        self.lose(at, broken, Instant::now(), desk)
    }

    /// Why the link is lost: if the peer said on any connection that it gave up, then that.
    pub(super) fn lost(
        &mut self,
        at: usize,
        broken: &Broken,
        desk: &mut Desk<'_>,
    ) -> unisono_plugin::Error {
        if !matches!(broken, Broken::Protocol(_)) {
            for other in 0..self.connections.len() {
                self.connections[other].incoming.wait_no_more();
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
        self.whose(at).lost(broken)
    }

    /// Which connection, for messages.
    pub(super) fn whose(&self, at: usize) -> Farewell<'_> {
        Farewell {
            peer: self.peer,
            name: &self.connections[at].name,
            connection: at,
            connections: self.connections.len(),
        }
    }

    /// Whether the peer has said goodbye on every connection and all that it sent has landed.
    ///
    /// # Errors
    /// It has, but something of what it sent is missing.
    pub(crate) fn is_ended(&self) -> Result<bool> {
        if self.connections.iter().any(Connection::is_well) {
            return Ok(false);
        }
        let said = self
            .connections
            .iter()
            .filter_map(|c| c.incoming.goodbye())
            .map(|word| word.sequence)
            .max();
        if said == Some(self.order.next()) && !self.order.is_waiting() {
            return Ok(true);
        }
        if self.connections.iter().any(|c| c.trouble.is_some()) {
            return Ok(false); // the rest may still come
        }
        Err(farewell::cut_short(self.peer))
    }

    /// Watches every connection for what can make it go on; false if something can already.
    pub(crate) fn arm(&mut self, outbox: &Outbox) -> io::Result<bool> {
        self.armed_last = Some(Instant::now());
        // Connections of one rail follow the first.
        let first = if self.lines.rails {
            self.lines.count
        } else {
            1
        };
        let goes_on = (0..first.min(self.connections.len())).any(|at| {
            let c = &self.connections[at];
            c.is_well() && c.outgoing.is_free() && outbox.has_for(self.place(at, outbox))
        });
        let is_undecided = |c: &Connection| c.open && c.incoming.is_undecided();
        if goes_on || self.can_release() || self.connections.iter().any(is_undecided) {
            return Ok(false);
        }
        for (key, connection) in (0..).zip(&mut self.connections) {
            if connection.holds_input() {
                return Ok(false);
            }
            connection.watch(key)?;
        }
        self.access.arm(self.next_look())?;
        self.armed = true;
        Ok(true)
    }

    /// Of a host that polls, and has not slept for a while, no connection is watched: each arrival would be noted in the set,
    /// on the way of what arrives.
    pub(super) fn watch_if_needed(&mut self, now: Instant) {
        let is_long_ago = |at: Instant| now.saturating_duration_since(at) > WATCHED;
        if !self.armed && self.armed_last.is_some_and(is_long_ago) {
            self.armed_last = None;
            for connection in &mut self.connections {
                connection.watch_no_more();
            }
        }
    }

    fn can_release(&self) -> bool {
        self.connections
            .iter()
            .any(|c| c.incoming.is_releasable(&self.order))
    }

    /// How many connections carry it now.
    pub(crate) fn standing(&self) -> u32 {
        self.connections.iter().filter(|c| c.is_well()).count() as u32
    }

    /// Connections that were lost and made anew so far.
    pub(crate) const fn recoveries(&self) -> u64 {
        self.upkeep.recoveries
    }

    /// Waits until the kernel has handed over what it has of connections within the machine, a while at most: the peer's next
    /// word would be answered by a reset, which throws it away, and nothing of it is kept.
    pub(crate) fn linger(&self) {
        let start = Instant::now();
        while self.connections.iter().any(Connection::holds_back) && start.elapsed() < LINGER {
            std::thread::sleep(LINGER / 2000);
        }
    }

    /// Says goodbye on every connection.
    pub(crate) fn end(&mut self, sequence: u64, aborted: bool) {
        self.say_rails("went");
        for connection in &mut self.connections {
            connection.end(sequence, aborted);
        }
    }
}
