//! The lower rank's end: tries the peer's addresses until all connections stand, and again for one
//! that was lost.
//!
//! The first connection finds the way; the others go there too, or, where several networks are shared
//! with the peer, each to the next of those: its home. What fails is tried again elsewhere, each round
//! more patiently: the peer may not have made its link yet, or be slow to look.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use unisono_plugin::Channel;

use super::handshake::{Handshake, Nonce, Refusal};
use super::{Authenticated, PROOF_TIME};
use crate::net::{Options, Polled, Poller, connect, peer_name};
use crate::wire::{GENERATIONS, Hello};

/// How long one address may take to answer in the first round; each round doubles it.
const FIRST_TRY: Duration = Duration::from_secs(1);
/// The pause after the first failed round; each round doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// And their limits.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_TRY: Duration = Duration::from_secs(10);

/// Who dials whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) channel: Channel,
    pub(crate) peer: u32,
    /// The peer's instance.
    pub(crate) instance: [u8; 16],
    pub(crate) connections: u16,
    /// Whether links are encrypted.
    pub(crate) encrypt: bool,
    /// Whether a connection within the machine lasts as long as both processes.
    pub(crate) may_last: bool,
}

/// Dials until all connections stand.
#[derive(Debug)]
pub(crate) struct Dialer {
    call: Call,
    targets: Vec<SocketAddr>,
    /// How many of them, the first, are rails: each on a network of its own.
    rails: usize,
    lines: Vec<Line>,
    /// Where the first connection found the peer.
    found: Option<usize>,
    /// Why the last attempt failed, and where.
    last: String,
}

/// One connection to be.
#[derive(Debug)]
struct Line {
    index: u16,
    attempts: u32,
    /// Attempts so far: the newest one counts.
    generation: u16,
    /// The target to try next; the first is its home unless it was told otherwise.
    next: Option<usize>,
    /// There is a connection, and this is a try to have it elsewhere: one, whatever comes of it.
    visiting: bool,
    /// An attempt was given up that the peer may have taken for the connection all the same: it then
    /// ends the one that there is.
    forsaken: bool,
    state: LineState,
}

#[derive(Debug)]
enum LineState {
    Idle(Instant),
    Dialing(Box<Handshake>, usize),
    Done,
}

impl Dialer {
    pub(crate) fn new(call: Call, targets: Vec<SocketAddr>, rails: usize) -> Self {
        let lines = (0..call.connections)
            .map(|index| Line {
                index,
                attempts: 0,
                generation: 0,
                next: None,
                visiting: false,
                forsaken: false,
                state: LineState::Idle(Instant::now()),
            })
            .collect();
        Self {
            call,
            targets,
            rails,
            lines,
            found: None,
            last: "no attempt was made".to_owned(),
        }
    }

    /// How many connections the link will have.
    pub(crate) const fn connections(&self) -> u16 {
        self.call.connections
    }

    /// What went wrong last.
    pub(crate) fn last_problem(&self) -> &str {
        &self.last
    }

    /// Goes on with all connections; those that stand now go to `ready`.
    pub(crate) fn advance(
        &mut self,
        options: &Options,
        poller: &Arc<Poller>,
        ready: &mut Vec<Authenticated>,
    ) {
        let now = Instant::now();
        let ways = self.ways();
        for at in 0..self.lines.len() {
            if at > 0 && self.found.is_none() {
                break; // the first connection finds the way
            }
            let home = self.home(at);
            let line = &mut self.lines[at];
            if let LineState::Idle(when) = line.state
                && when <= now
            {
                let to = line.next.unwrap_or(home) % self.targets.len().max(1);
                let Some(address) = self.targets.get(to) else {
                    break;
                };
                match line.dial(&self.call, *address, ways, options, poller) {
                    Ok(handshake) => line.state = LineState::Dialing(Box::new(handshake), to),
                    Err(why) => {
                        self.last = format!("{address}: {why}");
                        line.fail(to, ways);
                    }
                }
            }
            let LineState::Dialing(handshake, to) = &mut line.state else {
                continue;
            };
            let to = *to;
            let was_connected = handshake.is_connected();
            match handshake.advance(&self.call.channel, self.call.peer) {
                Ok(false) => {
                    if !was_connected && handshake.is_connected() {
                        // Somebody is there: its process may be slow to look.
                        let patience = patience(line.attempts, ways);
                        handshake.extend(now + patience.max(PROOF_TIME));
                    }
                }
                Ok(true) => {
                    self.found.get_or_insert(to);
                    (line.visiting, line.forsaken) = (false, false);
                    let name = peer_name(handshake.socket());
                    let lasting = handshake.is_lasting();
                    let state = std::mem::replace(&mut line.state, LineState::Done);
                    if let LineState::Dialing(handshake, _) = state
                        && let Ok((fd, tls)) = handshake.into_parts()
                    {
                        ready.push(Authenticated {
                            fd,
                            index: line.index,
                            generation: line.generation,
                            target: to,
                            lasting,
                            name,
                            tls,
                        });
                    } else {
                        line.fail(to, ways);
                    }
                }
                Err(why) => {
                    self.last = format!("{}: {why}", self.targets[to]);
                    line.fail(to, ways);
                }
            }
        }
    }

    /// How many targets a connection tries in turn: the rails, once one of them led to the peer.
    fn ways(&self) -> usize {
        match self.found {
            Some(found) if found < self.rails && self.rails > 1 => self.rails,
            _ => self.targets.len(),
        }
    }

    /// The target that a connection goes to while all is well.
    pub(crate) fn home(&self, index: usize) -> usize {
        match self.found {
            Some(found) if found >= self.rails => found,
            _ => index % self.rails.max(1),
        }
    }

    /// Dials a connection anew, first to this target; does nothing if it is at it.
    pub(crate) fn reopen(&mut self, index: usize, to: usize) {
        let line = &mut self.lines[index];
        // A visit that is under way goes on as such a dial.
        line.visiting = false;
        if matches!(line.state, LineState::Done) {
            line.state = LineState::Idle(Instant::now());
            (line.attempts, line.next) = (0, Some(to));
        }
    }

    /// Tries once to have a connection at this target, and no other, in place of the one that there is.
    pub(crate) fn visit(&mut self, index: usize, to: usize) {
        self.reopen(index, to);
        self.lines[index].visiting = true;
    }

    /// Leaves a connection as it is.
    pub(crate) fn leave(&mut self, index: usize) {
        let line = &mut self.lines[index];
        line.forsake();
        line.state = LineState::Done;
    }

    /// Whether the peer may end the connection since it has taken another that was given up here.
    pub(crate) fn has_forsaken(&self, index: usize) -> bool {
        self.lines[index].forsaken
    }

    /// Whether a connection is being dialled.
    pub(crate) fn is_dialling(&self, index: usize) -> bool {
        !matches!(self.lines[index].state, LineState::Done)
    }

    /// Watches for what it waits for; returns when it must act even so.
    pub(crate) fn arm(&mut self, key: u64) -> std::io::Result<Option<Instant>> {
        let mut next: Option<Instant> = None;
        for line in &mut self.lines {
            let when = match &mut line.state {
                LineState::Idle(when) if line.index == 0 || self.found.is_some() => *when,
                LineState::Dialing(handshake, _) => {
                    handshake.watch(key)?;
                    handshake.deadline()
                }
                LineState::Idle(_) | LineState::Done => continue,
            };
            next = Some(next.map_or(when, |n| n.min(when)));
        }
        Ok(next)
    }
}

impl Line {
    fn dial(
        &mut self,
        call: &Call,
        to: SocketAddr,
        ways: usize,
        options: &Options,
        poller: &Arc<Poller>,
    ) -> Result<Handshake, Refusal> {
        self.generation = (self.generation + 1) % GENERATIONS;
        let nonce = Nonce::fresh(call.encrypt).map_err(Refusal::System)?;
        let hello = Hello {
            index: self.index,
            count: call.connections,
            generation: self.generation,
            channel: call.channel.id(),
            from: call.channel.rank(),
            to: call.peer,
            instance: call.instance,
            encrypt: call.encrypt,
            lasting: call.may_last,
            nonce: nonce.bytes(),
        };
        let fd = connect(options, to).map_err(Refusal::System)?;
        let deadline = Instant::now() + patience(self.attempts, ways);
        let socket = Polled::new(fd, Arc::clone(poller));
        Ok(Handshake::dial(socket, hello, nonce, deadline))
    }

    /// The attempt under way, if there is one, is given up.
    fn forsake(&mut self) {
        if let LineState::Dialing(handshake, _) = &self.state {
            self.forsaken |= handshake.may_be_taken();
        }
    }

    /// To the next target, after a pause if all were tried; a visit is over.
    fn fail(&mut self, tried: usize, ways: usize) {
        self.forsake();
        if std::mem::take(&mut self.visiting) {
            self.state = LineState::Done;
            return;
        }
        let ways = ways.max(1);
        self.attempts = self.attempts.saturating_add(1);
        self.next = Some((tried + 1) % ways);
        let round = self.attempts as usize / ways;
        let pause = match (self.attempts as usize).is_multiple_of(ways) {
            true => double(FIRST_PAUSE, round - 1).min(LONGEST_PAUSE),
            false => Duration::ZERO,
        };
        self.state = LineState::Idle(Instant::now() + pause);
    }
}

fn patience(attempts: u32, targets: usize) -> Duration {
    double(FIRST_TRY, attempts as usize / targets.max(1)).min(LONGEST_TRY)
}

fn double(base: Duration, times: usize) -> Duration {
    base.saturating_mul(1 << times.min(10))
}
