//! The lower rank's end: tries the peer's addresses until all connections stand.
//!
//! The first connection finds the address; the others go there too. What fails is tried again, each
//! round more patiently: the peer may not have made its link yet, or be slow to look.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use unisono_plugin::Channel;

use super::handshake::{Handshake, Refusal, fresh_nonce};
use super::{Authenticated, PROOF_TIME};
use crate::net::{Options, Poller, connect, peer_name};
use crate::wire::Hello;

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
}

/// Dials until all connections stand.
#[derive(Debug)]
pub(crate) struct Dialer {
    call: Call,
    targets: Vec<SocketAddr>,
    lines: Vec<Line>,
    /// Where the first connection found the peer.
    found: Option<SocketAddr>,
    /// Why the last attempt failed, and where.
    last: String,
}

/// One connection to be.
#[derive(Debug)]
struct Line {
    index: u16,
    attempts: u32,
    state: LineState,
}

#[derive(Debug)]
enum LineState {
    Idle(Instant),
    Dialing(Box<Handshake>, SocketAddr),
    Done,
}

impl Dialer {
    pub(crate) fn new(call: Call, targets: Vec<SocketAddr>) -> Self {
        let lines = (0..call.connections)
            .map(|index| Line {
                index,
                attempts: 0,
                state: LineState::Idle(Instant::now()),
            })
            .collect();
        Self {
            call,
            targets,
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
        for line in &mut self.lines {
            if line.index > 0 && self.found.is_none() {
                break; // the first connection finds the way
            }
            if let LineState::Idle(when) = line.state
                && when <= now
            {
                let Some(to) = self.found.or_else(|| line.target(&self.targets)) else {
                    break;
                };
                match line.dial(&self.call, to, options, poller) {
                    Ok(handshake) => line.state = LineState::Dialing(Box::new(handshake), to),
                    Err(why) => {
                        self.last = format!("{to}: {why}");
                        line.fail(self.targets.len());
                    }
                }
            }
            let LineState::Dialing(handshake, to) = &mut line.state else {
                continue;
            };
            let was_connected = handshake.is_connected();
            match handshake.advance(&self.call.channel, self.call.peer) {
                Ok(false) => {
                    if !was_connected && handshake.is_connected() {
                        // Somebody is there: its process may be slow to look.
                        let patience = patience(line.attempts, self.targets.len());
                        handshake.extend(now + patience.max(PROOF_TIME));
                    }
                }
                Ok(true) => {
                    self.found = Some(*to);
                    let name = peer_name(handshake.socket());
                    let state = std::mem::replace(&mut line.state, LineState::Done);
                    if let LineState::Dialing(handshake, _) = state
                        && let Ok(fd) = handshake.into_fd()
                    {
                        ready.push(Authenticated {
                            fd,
                            index: line.index,
                            name,
                        });
                    } else {
                        line.fail(self.targets.len());
                    }
                }
                Err(why) => {
                    self.last = format!("{to}: {why}");
                    line.fail(self.targets.len());
                }
            }
        }
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
    /// The address for this attempt: in turn.
    fn target(&self, targets: &[SocketAddr]) -> Option<SocketAddr> {
        let count = targets.len().max(1);
        targets.get(self.attempts as usize % count).copied()
    }

    fn dial(
        &self,
        call: &Call,
        to: SocketAddr,
        options: &Options,
        poller: &Arc<Poller>,
    ) -> Result<Handshake, Refusal> {
        let hello = Hello {
            index: self.index,
            count: call.connections,
            channel: call.channel.id(),
            from: call.channel.rank(),
            to: call.peer,
            instance: call.instance,
            nonce: fresh_nonce().map_err(Refusal::System)?,
        };
        let fd = connect(options, to).map_err(Refusal::System)?;
        let deadline = Instant::now() + patience(self.attempts, 1);
        Ok(Handshake::dial(fd, Arc::clone(poller), hello, deadline))
    }

    /// To the next address, after a pause if all were tried.
    fn fail(&mut self, targets: usize) {
        self.attempts = self.attempts.saturating_add(1);
        let round = self.attempts as usize / targets.max(1);
        let last_of_round = (self.attempts as usize).is_multiple_of(targets.max(1));
        let pause = if last_of_round {
            double(FIRST_PAUSE, round - 1).min(LONGEST_PAUSE)
        } else {
            Duration::ZERO
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
