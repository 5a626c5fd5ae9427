//! Connections that are lost, others in their places, and the way back to where each belongs.
//!
//! A connection is lost when the system says so, or when its path has been silent for `rail_timeout`.
//! The dialing end then makes another, first by the next of the ways to the peer; the accepting end
//! asks it to, over a connection that is well. Nothing of the old one may land late: an end reads it no
//! further before it says what it has, and the other sends again what lies beyond that, from sources
//! that have not been let go of. Where all is well again, a connection goes home.
//!
//! One that lasts as long as both processes is not made anew, for nothing of it is kept: when the system says that it is
//! lost, the link is. In a silence it is waited for as long as for another way.

use std::time::{Duration, Instant};

use unisono_plugin::{Channel, Host, Level, Result, log};

use super::access::End;
use super::broken::Broken;
use super::connection::Connection;
use super::established::{Desk, Established, lines};
use super::trouble::{Trouble, since_the_last};
use crate::setup::{Authenticated, Recovery};
use crate::wire::{Frame, GENERATIONS};

/// Between two looks at all paths.
const LOOK: Duration = Duration::from_millis(100);
/// Between two looks at a path that is idle.
const IDLE_LOOK: Duration = Duration::from_secs(1);
/// How long a connection stays away from its home at first, and at last, before it tries to go back.
const AWAY: Duration = Duration::from_secs(2);
const AWAY_MAX: Duration = Duration::from_secs(120);
/// Nobody looked for so long: the time between counts for nothing, as both ends were needed.
const UNWATCHED: Duration = Duration::from_secs(1);
/// Whoever was at home for so long starts afresh.
const SETTLED: Duration = Duration::from_secs(30);

/// What is remembered of a link's paths.
#[derive(Debug)]
pub(crate) struct Upkeep {
    recovery: Recovery,
    host: Host,
    looked: Instant,
    next_look: Instant,
    next_idle_look: Instant,
    homes: Vec<Home>,
    /// Connections that were lost and made anew.
    pub(super) recoveries: u64,
}

/// When a connection may go home.
#[derive(Clone, Copy, Debug)]
struct Home {
    /// Since when it is where it is.
    since: Instant,
    again: Instant,
    away: Duration,
    /// It was tried, and what came of it is not known yet.
    visiting: bool,
}

impl Upkeep {
    pub(crate) fn new(connections: usize, recovery: Recovery, host: Host) -> Self {
        let now = Instant::now();
        let home = Home {
            since: now,
            again: now + AWAY,
            away: AWAY,
            visiting: false,
        };
        Self {
            recovery,
            host,
            looked: now,
            next_look: now + LOOK,
            next_idle_look: now + IDLE_LOOK,
            homes: vec![home; connections],
            recoveries: 0,
        }
    }
}

impl Established {
    /// Looks after the paths; whether something changed.
    ///
    /// # Errors
    /// A connection is lost, and none was found to take its place in time.
    pub(crate) fn tend(&mut self, channel: &Channel, desk: &mut Desk<'_>) -> Result<bool> {
        let now = Instant::now();
        let mut changed = false;
        self.watch_if_needed(now);
        for one in self.access.advance(channel, self.peer) {
            changed |= self.admit(one, now, desk)?;
        }
        if now < self.upkeep.next_look {
            return Ok(changed);
        }
        self.upkeep.next_look = now + LOOK;
        let unwatched = now - std::mem::replace(&mut self.upkeep.looked, now);
        if unwatched > UNWATCHED {
            let connections = self.connections.iter_mut();
            for trouble in connections.filter_map(|c| c.trouble.as_mut()) {
                trouble.excuse(unwatched, now);
            }
        }
        // Where one is lost the others may be too: then it is known soon.
        let mut all = self.connections.iter().any(|c| c.trouble.is_some());
        if now >= self.upkeep.next_idle_look {
            all = true;
            self.upkeep.next_idle_look = now + IDLE_LOOK;
        }
        for at in 0..self.connections.len() {
            self.look(at, all, now, desk)?;
            self.go_home(at, now);
        }
        Ok(changed)
    }

    /// When the paths must be looked at: soon if something is under way.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let watch = |c: &Connection| c.trouble.is_some() || c.outgoing.awaits_peer();
        let away = match &self.access.end {
            // While one is dialled, that has its own time.
            End::Dialer(dialer) => (0..)
                .zip(&self.connections)
                .filter(|(at, c)| c.target != dialer.home(*at) && !c.is_irreplaceable())
                .filter(|(at, _)| !dialer.is_dialling(*at))
                .map(|(at, _)| self.upkeep.homes[at].again.max(self.upkeep.next_look))
                .min(),
            End::Acceptor(_) => None,
        };
        let soon = self.connections.iter().any(watch);
        let soon = soon.then(|| self.upkeep.next_look.max(Instant::now() + LOOK / 2));
        let idle = self.connections.iter().any(|c| c.open);
        // Before the next look nothing is looked at.
        let idle = idle.then(|| self.upkeep.next_idle_look.max(self.upkeep.next_look));
        soon.into_iter().chain(away).chain(idle).min()
    }

    /// A connection is lost: another must take its place.
    ///
    /// # Errors
    /// The peer's system has ended it, and no other is left: the peer is gone. Or what was on it is lost with it.
    pub(super) fn lose(
        &mut self,
        at: usize,
        cause: Broken,
        now: Instant,
        desk: &mut Desk<'_>,
    ) -> Result<()> {
        let stays = self.connections[at].is_irreplaceable();
        if stays && !matches!(cause, Broken::Silent(_)) {
            return Err(self.lost(at, &cause, desk));
        }
        let is_end = cause.is_end();
        let who = self.whose(at).who();
        let connection = &mut self.connections[at];
        if !matches!(cause, Broken::Silent(_) | Broken::Told) {
            connection.open = false;
        }
        let first = connection.trouble.is_none();
        let given_up = !first && connection.incoming.is_fresh();
        let waiting = connection.outgoing.unacknowledged();
        let said = cause.to_string();
        match &mut connection.trouble {
            Some(trouble) => trouble.cause = cause,
            none => *none = Some(Trouble::new(cause, now)),
        }
        if first && !self.is_another_well(at) {
            self.has_none(at, now);
        }
        let expected = match &self.access.end {
            // The peer closes the old one when it has taken the new one, which may be on its way, or
            // may have been given up too late.
            End::Dialer(dialer) => dialer.is_dialling(at) || dialer.has_forsaken(at),
            // Nor does this one take it before TLS stands, when the peer has it already. One that took
            // another's place and says nothing was given up by the peer.
            End::Acceptor(acceptor) => acceptor.is_proving(at) || given_up,
        };
        let gone = self.connections.iter().all(|c| !c.is_well());
        if is_end && gone && !expected {
            let cause = self.connections[at].trouble.take().map(|t| t.cause);
            return Err(self.lost(at, &cause.unwrap_or(Broken::End), desk));
        }
        if first && !expected {
            let next = match stays {
                true => "waiting for it".to_owned(),
                false => format!("looking for another way for {waiting} frames"),
            };
            log!(self.upkeep.host, Level::Warn, "{who} {said}; {next}");
        }
        self.ask_for_another(at, now);
        Ok(())
    }

    /// No connection is well any more, since the one at `last` was lost.
    fn has_none(&mut self, last: usize, now: Instant) {
        let Some(Trouble { cause, .. }) = &self.connections[last].trouble else {
            return;
        };
        let troubles = self.connections.iter().filter_map(|c| c.trouble.as_ref());
        let found = troubles.map(|trouble| trouble.since);
        let counts = since_the_last(found, cause, &self.upkeep.recovery, now);
        for trouble in self
            .connections
            .iter_mut()
            .filter_map(|c| c.trouble.as_mut())
        {
            trouble.counts = counts;
        }
    }

    /// Dials, or asks the peer to, over all connections that are well. Also who dials says so: then bytes are
    /// under way over each, and one that is as dead is found after `rail_timeout`, not after `keepalive`.
    fn ask_for_another(&mut self, at: usize, now: Instant) {
        if self.connections[at].is_irreplaceable() {
            return;
        }
        let home = &mut self.upkeep.homes[at];
        if now.saturating_duration_since(home.since) > SETTLED {
            home.away = AWAY;
        }
        home.again = now + home.away;
        home.visiting = false;
        let (index, generation) = (at as u16, self.connections[at].generation);
        if let End::Dialer(dialer) = &mut self.access.end {
            dialer.reopen(at, self.connections[at].target + 1);
        }
        for other in self.connections.iter_mut().filter(|c| c.is_well()) {
            other.outgoing.say(&Frame::Lost { index, generation });
        }
    }

    /// The peer asks for another connection.
    pub(super) fn told(&mut self, at: usize, generation: u16, desk: &mut Desk<'_>) -> Result<()> {
        let End::Dialer(dialer) = &self.access.end else {
            return Ok(()); // this end cannot dial
        };
        match self.connections.get(at) {
            Some(connection) if connection.generation == generation && !dialer.is_dialling(at) => {
                self.lose(at, Broken::Told, Instant::now(), desk)
            }
            _ => Ok(()),
        }
    }

    /// Puts a new connection in its place, unless a newer one stands there.
    fn admit(&mut self, one: Authenticated, now: Instant, desk: &mut Desk<'_>) -> Result<bool> {
        let at = usize::from(one.index);
        let Some(connection) = self.connections.get_mut(at) else {
            return Ok(false);
        };
        let newer = one.generation.wrapping_sub(connection.generation) % GENERATIONS;
        if newer == 0 || newer >= GENERATIONS / 2 || connection.is_irreplaceable() {
            return Ok(false);
        }
        let (listener, poller) = (&self.access.listener, &self.access.poller);
        let placed = connection.replace(one, listener.options(), poller, &mut self.order);
        let moved = || Trouble::new(Broken::Moved, now);
        connection.trouble.get_or_insert_with(moved);
        self.lines = lines(&self.connections);
        if let Err(error) = placed {
            self.lose(at, Broken::System(error), now, desk)?;
        }
        Ok(true)
    }

    /// Takes note that another connection stands, if one was lost: none was where it went home.
    pub(super) fn count_recovery(&mut self, at: usize) {
        let trouble = self.connections[at].trouble.as_ref();
        let lost = trouble.is_some_and(|trouble| !matches!(trouble.cause, Broken::Moved));
        self.upkeep.recoveries += u64::from(lost);
    }

    /// Both ends have said where to go on.
    pub(super) fn recovered(&mut self, at: usize, again: usize) {
        let now = Instant::now();
        let home = &mut self.upkeep.homes[at];
        home.since = now;
        let Some(trouble) = self.connections[at].trouble.take() else {
            return;
        };
        log!(
            self.upkeep.host,
            Level::Info,
            "{} goes on after {:.1?}: {again} frames are sent again; the link goes {}",
            self.whose(at).who(),
            now - trouble.since,
            self.rails(now)
        );
        // Nobody could be asked before.
        if matches!(self.access.end, End::Acceptor(_)) {
            for other in 0..self.connections.len() {
                if self.connections[other].trouble.is_some() {
                    self.ask_for_another(other, now);
                }
            }
        }
    }

    /// Looks at one path; at one that is idle in `all` only.
    fn look(&mut self, at: usize, all: bool, now: Instant, desk: &mut Desk<'_>) -> Result<()> {
        let limit = self.upkeep.recovery.rail_timeout;
        let keepalive = self.access.listener.options().keepalive;
        let connection = &mut self.connections[at];
        if all || connection.outgoing.awaits_peer() || connection.trouble.is_some() {
            let heard = connection.look(now).unwrap_or_default();
            let is_going = connection.open && connection.outgoing.is_going();
            match &connection.trouble {
                None if heard.unanswered && heard.last >= keepalive => {
                    self.lose(at, Broken::Silent(heard.last), now, desk)?;
                }
                _ if heard.silent >= limit => {
                    connection.forget_silence();
                    self.lose(at, Broken::Silent(heard.silent), now, desk)?;
                }
                Some(Trouble {
                    cause: Broken::Silent(_),
                    since,
                    ..
                }) if is_going && heard.last < now.saturating_duration_since(*since) => {
                    // The path is back before there was another.
                    if let End::Dialer(dialer) = &mut self.access.end {
                        dialer.leave(at);
                    }
                    self.recovered(at, 0);
                }
                _ => {}
            }
        }
        let Some(trouble) = &self.connections[at].trouble else {
            return Ok(());
        };
        let (limit, set_by) = self.limit(at);
        if now.saturating_duration_since(trouble.counts) < limit {
            return Ok(());
        }
        if self.is_spare(at) {
            self.ask_again(at, now);
            return Ok(());
        }
        let tried = match &self.access.end {
            _ if self.connections[at].is_irreplaceable() => {
                "within a machine none is made anew but with `recover_local`".to_owned()
            }
            End::Dialer(dialer) => format!("dialling it: {}", dialer.last_problem()),
            End::Acceptor(_) => "it has not dialled again".to_owned(),
        };
        let whose = self.whose(at);
        Err(whose.given_up(&trouble.cause, &tried, limit, set_by))
    }

    /// How long another way may take to be found. Where a connection is well, one way at least is; a peer
    /// that does not take it is busy elsewhere, and has as long as it had at first.
    ///
    /// With the parameter that says so.
    fn limit(&self, at: usize) -> (Duration, &'static str) {
        let Recovery {
            limit, patience, ..
        } = self.upkeep.recovery;
        let stays = self.connections[at].is_irreplaceable();
        if patience > limit && !stays && self.is_another_well(at) {
            (patience, "connect_timeout")
        } else {
            (limit, "recovery")
        }
    }

    fn is_another_well(&self, at: usize) -> bool {
        let mut others = (0..self.connections.len()).filter(|&other| other != at);
        others.any(|other| self.connections[other].is_well())
    }

    /// Whether the link goes on without a connection: nothing of this end is on it, and another is well. The
    /// peer may be busy elsewhere, and look after its end when it next needs the link.
    fn is_spare(&self, at: usize) -> bool {
        let connection = &self.connections[at];
        !connection.is_irreplaceable()
            && !connection.outgoing.awaits_peer()
            && self.is_another_well(at)
    }

    /// Looks for another way once more, with as much time.
    fn ask_again(&mut self, at: usize, now: Instant) {
        if let Some(trouble) = &mut self.connections[at].trouble {
            trouble.counts = now;
        }
        let is_dialling = match &self.access.end {
            End::Dialer(dialer) => dialer.is_dialling(at),
            End::Acceptor(_) => false,
        };
        if !is_dialling {
            self.ask_for_another(at, now);
        }
    }

    /// A connection that is well elsewhere tries its home now and then.
    fn go_home(&mut self, at: usize, now: Instant) {
        let End::Dialer(dialer) = &mut self.access.end else {
            return;
        };
        let (connection, home) = (&self.connections[at], &mut self.upkeep.homes[at]);
        if !connection.is_well() || connection.is_irreplaceable() {
            return;
        }
        let place = dialer.home(at);
        if dialer.is_dialling(at) || connection.target == place {
            return;
        }
        if std::mem::take(&mut home.visiting) {
            home.away = (home.away * 2).min(AWAY_MAX);
            home.again = now + home.away;
        } else if now >= home.again {
            home.visiting = true;
            dialer.visit(at, place);
            let who = self.whose(at).who();
            log!(self.upkeep.host, Level::Debug, "{who} tries its way home");
        }
    }

    /// Says how the link goes, or went. Who has one card each needs no word of it.
    pub(super) fn say_rails(&self, how: &str) {
        let level = match self.lines.rails {
            true => Level::Info,
            false => Level::Debug,
        };
        if !self.upkeep.host.enabled(level) {
            return;
        }
        log!(
            self.upkeep.host,
            level,
            "the link to rank {} {how} over {} connections: {}",
            self.peer,
            self.connections.len(),
            self.rails(Instant::now())
        );
    }
}
