//! Messages: to one peer, to all, and what is done about those that come in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{BootstrapError, Result};
use crate::wire::connection::frame;
use crate::wire::hub::End;
use crate::wire::poller::Token;

use super::message::{Body, Flood, Lane, Message, News};
use super::peer::Peer;
use super::session::Verdict;
use super::state::{Gone, State, gone_error};
use super::{Event, Tag};

/// The longest message in bytes.
const MAX_MESSAGE: usize = 64 << 20;
/// How much may wait for one peer, in bytes, before a send is refused.
const MAX_QUEUED: usize = 256 << 20;
/// How many events may wait for the driver before broadcasts are dropped.
const MAX_EVENTS: usize = 1 << 16;

impl State {
    /// Queues a message for one peer.
    pub(super) fn post(&mut self, rank: u32, message: Message) {
        let now = Instant::now();
        let peer = self.peer(rank, now);
        let number = peer.session.next_number();
        let frame = frame(&Body::Numbered(number, message).encode());
        peer.session.keep(Arc::clone(&frame));
        if let Some(active) = peer.active {
            self.hub.send(active, frame);
        }
    }

    pub(super) fn send_acknowledgements(&mut self) {
        for rank in std::mem::take(&mut self.acknowledge) {
            let Some(peer) = self.peers.get_mut(&rank) else {
                continue;
            };
            if let (Some(active), Some(number)) = (peer.active, peer.session.take_acknowledgement())
            {
                self.hub
                    .send(active, frame(&Body::Acknowledge(number).encode()));
            }
        }
    }

    /// Sends to one rank, this one included.
    pub(super) fn send(&mut self, to: u32, lane: Lane, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.check_rank(to)?;
        if bytes.len() > MAX_MESSAGE {
            return Err(BootstrapError::TooLarge {
                bytes: bytes.len(),
                limit: MAX_MESSAGE,
            });
        }
        if to == self.rank {
            self.inbox.put(to, lane, tag, bytes.to_vec());
            return Ok(());
        }
        if let Some(gone) = self.gone.get(&to) {
            return Err(gone_error(to, gone, "a send"));
        }
        let queued = self.peers.get(&to).map_or(0, |peer| peer.session.bytes());
        if queued + bytes.len() > MAX_QUEUED {
            return Err(BootstrapError::QueueFull {
                rank: to,
                queued,
                limit: MAX_QUEUED,
            });
        }
        self.messages = self.messages.saturating_add(1);
        let peer = self.peer(to, Instant::now());
        peer.owed = peer.active.is_none();
        self.post(
            to,
            Message::Direct {
                lane,
                tag,
                bytes: bytes.to_vec(),
            },
        );
        self.dial_out(Instant::now())
    }

    /// Tells everyone.
    pub(super) fn originate(&mut self, news: News) {
        let flood = Flood {
            origin: self.rank,
            number: self.floods.next_number(),
            news,
        };
        self.spread(flood, None);
    }

    /// Passes a flood on unless it came before; applies it.
    pub(super) fn spread(&mut self, flood: Flood, from: Option<u32>) {
        if flood.origin >= self.size || !self.floods.note(&flood, flood_size(&flood)) {
            return;
        }
        let origin = flood.origin;
        let told = |(rank, peer): (&u32, &Peer)| {
            let reachable = peer.neighbour || peer.active.is_some();
            (reachable && Some(*rank) != from && *rank != origin).then_some(*rank)
        };
        let targets: Vec<u32> = self
            .peers
            .iter()
            .filter_map(told)
            .filter(|rank| !self.gone.contains_key(rank))
            .collect();
        targets
            .into_iter()
            .for_each(|rank| self.post(rank, Message::Flood(flood.clone())));
        self.apply(origin, flood.news);
    }

    pub(super) fn frame(&mut self, token: Token, body: &[u8], now: Instant) {
        let Some(&rank) = self.owners.get(&token) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(&rank) else {
            return;
        };
        peer.heard = Some(now);
        let numbered = match Body::decode(body) {
            Some(Body::Heartbeat) => None,
            Some(Body::Acknowledge(number)) => {
                peer.session.acknowledge(number);
                None
            }
            Some(Body::Numbered(number, message)) => Some((peer.session.receive(number), message)),
            None => Some((
                Verdict::Gap,
                Message::Flood(Flood {
                    origin: rank,
                    number: 0,
                    news: News::Left,
                }),
            )),
        };
        match numbered {
            None => {}
            Some((Verdict::Seen, _)) => drop(self.acknowledge.insert(rank)),
            Some((Verdict::New, message)) => {
                self.acknowledge.insert(rank);
                self.receive(rank, message);
            }
            Some((Verdict::Gap, _)) => {
                // Authenticated but not making sense: a fresh connection starts over from what was acknowledged.
                self.hub.close(token);
                self.closed(
                    token,
                    End::Lost("what it sent makes no sense".to_owned()),
                    now,
                );
            }
        }
    }

    pub(super) fn receive(&mut self, from: u32, message: Message) {
        match message {
            Message::Flood(flood) => self.spread(flood, Some(from)),
            Message::Direct {
                lane: Lane::Shrink,
                tag,
                bytes,
            } => self.hear_word(from, tag, &bytes),
            Message::Direct { lane, tag, bytes } => {
                if self.inbox.put(from, lane, tag, bytes) {
                    self.hold_back(from, true);
                }
            }
        }
    }

    /// Stops or resumes reading a peer.
    pub(super) fn hold_back(&mut self, rank: u32, paused: bool) {
        let Some(peer) = self.peers.get_mut(&rank) else {
            return;
        };
        if peer.paused != paused {
            peer.paused = paused;
            let open: Vec<Token> = [peer.incoming, peer.outgoing]
                .into_iter()
                .flatten()
                .collect();
            open.into_iter()
                .for_each(|token| self.hub.pause(token, paused));
        }
    }

    /// Takes a message, if one is here; if not, fails if none can come.
    pub(super) fn take(
        &mut self,
        from: u32,
        lane: Lane,
        tag: Tag,
        what: &str,
    ) -> Result<Option<Vec<u8>>> {
        self.check_rank(from)?;
        if let Some(bytes) = self.inbox.take(from, lane, tag) {
            if !self.inbox.is_full(from) {
                self.hold_back(from, false);
            }
            return Ok(Some(bytes));
        }
        match self.gone.get(&from) {
            Some(Gone::Left { at })
                if self.peers.contains_key(&from) || at.elapsed() < Duration::from_millis(500) =>
            {
                Ok(None)
            }
            Some(gone) => Err(gone_error(from, gone, what)),
            None => Ok(None),
        }
    }

    pub(super) fn forget(&mut self, communicator: u64) {
        self.inbox.forget(communicator);
        self.aborted.remove(&communicator);
        let held: Vec<u32> = self
            .peers
            .iter()
            .filter(|(_, peer)| peer.paused)
            .map(|(&rank, _)| rank)
            .collect();
        for rank in held {
            if !self.inbox.is_full(rank) {
                self.hold_back(rank, false);
            }
        }
    }

    pub(super) fn apply(&mut self, origin: u32, news: News) {
        let own = origin == self.rank;
        match news {
            News::Abort {
                communicator,
                code,
                text,
            } => {
                self.aborted
                    .entry(communicator)
                    .or_insert((origin, code, text.clone()));
                while self.aborted.len() > 1024 {
                    self.aborted.pop_first();
                }
                if !own {
                    self.tell(Event::Abort {
                        origin,
                        communicator,
                        code,
                        text,
                    });
                }
            }
            News::Dead { rank, reason } => self.bury(rank, origin, reason),
            News::Left => self.depart(origin),
            News::Survivors { tag, excluded } => self.hear_decision(origin, tag, &excluded),
            News::Mismatch {
                communicator,
                bytes,
            } if !own => self.tell(Event::Mismatch {
                origin,
                communicator,
                bytes,
            }),
            News::Broadcast { tag, bytes } if !own => {
                self.tell(Event::Broadcast { origin, tag, bytes })
            }
            News::Mismatch { .. } | News::Broadcast { .. } => {}
        }
    }

    pub(super) fn tell(&mut self, event: Event) {
        if self.events.len() >= MAX_EVENTS
            && matches!(event, Event::Broadcast { .. } | Event::Mismatch { .. })
        {
            log::warn!(
                "rank {}: nobody takes the control channel's events; one was dropped",
                self.rank
            );
            return;
        }
        self.events.push_back(event);
    }
}

fn flood_size(flood: &Flood) -> usize {
    64 + match &flood.news {
        News::Abort { text, .. } => text.len(),
        News::Dead { reason, .. } => reason.len(),
        News::Left => 0,
        News::Mismatch { bytes, .. } | News::Broadcast { bytes, .. } => bytes.len(),
        News::Survivors { excluded, .. } => 4 * excluded.len(),
    }
}
