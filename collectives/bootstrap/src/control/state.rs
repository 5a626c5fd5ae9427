//! What a rank knows of the others, and what it does about what they say. Never blocks.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::directory::RankEntry;
use crate::error::{BootstrapError, Result};
use crate::options::Heartbeat;
use crate::wire::connection::frame;
use crate::wire::handshake::Purpose;
use crate::wire::hub::{End, Hub, HubEvent};
use crate::wire::poller::Token;

use super::agreement::Agreement;
use super::floods::Floods;
use super::inbox::Inbox;
use super::message::{Body, Flood, Lane, Message, News};
use super::peer::Peer;
use super::session::Verdict;
use super::{Event, Tag};

/// The longest message in bytes.
pub(super) const MAX_MESSAGE: usize = 64 << 20;
/// How much may wait for one peer, in bytes, before a send is refused.
const MAX_QUEUED: usize = 256 << 20;
/// How many events may wait for the driver before broadcasts are dropped.
const MAX_EVENTS: usize = 1 << 16;
/// How many attempts to reach a peer are kept for the error.
const MAX_TRIED: usize = 8;

/// Why nothing more comes from a rank.
#[derive(Clone, Debug)]
pub(super) enum Gone {
    Dead { by: u32, reason: String },
    Left { at: Instant },
}

/// See the module.
pub(super) struct State {
    pub(super) hub: Hub,
    pub(super) rank: u32,
    pub(super) size: u32,
    pub(super) heartbeat: Heartbeat,
    pub(super) entries: Vec<Option<RankEntry>>,
    /// The table stands: from now on neighbours are expected to live.
    pub(super) settled: bool,
    pub(super) left: bool,
    pub(super) peers: BTreeMap<u32, Peer>,
    pub(super) owners: HashMap<Token, u32>,
    pub(super) processes: HashMap<Token, u32>,
    /// Processes that ended, and when that becomes a death unless they turn out to have left.
    pub(super) suspects: Vec<(u32, Instant)>,
    pub(super) floods: Floods,
    pub(super) inbox: Inbox,
    pub(super) gone: BTreeMap<u32, Gone>,
    pub(super) aborted: BTreeMap<u64, (u32, i32, String)>,
    pub(super) agreements: BTreeMap<Tag, Agreement>,
    pub(super) events: VecDeque<Event>,
    pub(super) notes: Vec<String>,
    pub(super) messages: u32,
    acknowledge: BTreeSet<u32>,
    /// When new neighbours are chosen in place of those that left.
    pub(super) repair: Option<Instant>,
    pub(super) next_beat: Instant,
    pub(super) last_turn: Instant,
}

impl State {
    pub(super) fn new(hub: Hub, rank: u32, size: u32, heartbeat: Heartbeat) -> State {
        let now = Instant::now();
        State {
            hub,
            rank,
            size,
            heartbeat,
            entries: vec![None; size as usize],
            settled: false,
            left: false,
            peers: BTreeMap::new(),
            owners: HashMap::new(),
            processes: HashMap::new(),
            suspects: Vec::new(),
            floods: Floods::default(),
            inbox: Inbox::default(),
            gone: BTreeMap::new(),
            aborted: BTreeMap::new(),
            agreements: BTreeMap::new(),
            events: VecDeque::new(),
            notes: Vec::new(),
            messages: 0,
            acknowledge: BTreeSet::new(),
            repair: None,
            next_beat: now + heartbeat.interval,
            last_turn: now,
        }
    }

    /// Moves what can be moved; whether anything happened.
    pub(super) fn turn(&mut self, now: Instant) -> Result<bool> {
        if self.left {
            return Ok(false);
        }
        self.excuse_own_absence(now);
        let entries = &self.entries;
        let key = |rank: u32| {
            entries
                .get(rank as usize)?
                .as_ref()
                .map(|entry| entry.public_key)
        };
        let happened = self.hub.turn(now, &key)?;
        let progressed = !happened.is_empty();
        for event in happened {
            match event {
                HubEvent::Opened {
                    token,
                    rank,
                    outgoing,
                    ..
                } => self.opened(token, rank, outgoing, now),
                HubEvent::Frame { token, body } => self.frame(token, &body, now),
                HubEvent::Closed { token, end } => self.closed(token, end, now),
                HubEvent::Watched { token } => self.process_ended(token, now),
            }
        }
        self.send_acknowledgements();
        self.watch_over(now);
        self.dial_out(now)?;
        Ok(progressed)
    }

    /// When the next turn is due though nothing is readable.
    pub(super) fn idle_until(&self) -> Instant {
        let redials = self
            .peers
            .values()
            .filter(|peer| peer.wants_connection())
            .map(|peer| peer.again);
        let suspects = self.suspects.iter().map(|&(_, at)| at);
        redials
            .chain(suspects)
            .chain(self.hub.next_deadline())
            .chain(self.repair)
            .fold(self.next_beat, Instant::min)
    }

    /// Whether a message for one rank alone waits for a connection that is not open yet.
    pub(super) fn is_dialling(&self) -> bool {
        self.peers.values().any(|peer| peer.owed)
    }

    pub(super) fn peer(&mut self, rank: u32, now: Instant) -> &mut Peer {
        let watch = self.how_to_watch(rank);
        self.peers
            .entry(rank)
            .or_insert_with(|| Peer::new(watch, now))
    }

    // Connections.

    fn opened(&mut self, token: Token, rank: u32, outgoing: bool, now: Instant) {
        if rank >= self.size
            || rank == self.rank
            || matches!(self.gone.get(&rank), Some(Gone::Dead { .. }))
        {
            self.owners.remove(&token);
            return self.hub.close(token);
        }
        let peer = self.peer(rank, now);
        if peer.dialling == Some(token) {
            peer.dialling = None;
        }
        let slot = if outgoing {
            &mut peer.outgoing
        } else {
            &mut peer.incoming
        };
        let replaced = slot.replace(token);
        (peer.active, peer.failures, peer.heard, peer.owed) = (Some(token), 0, Some(now), false);
        let greeting = !std::mem::replace(&mut peer.greeted, true);
        let paused = peer.paused;
        self.owners.insert(token, rank);
        if let Some(replaced) = replaced {
            self.owners.remove(&replaced);
            self.hub.close(replaced);
        }
        self.hub.pause(token, paused);
        self.send_again(rank);
        if greeting {
            let recent: Vec<Flood> = self
                .floods
                .recent()
                .filter(|flood| flood.origin != rank)
                .cloned()
                .collect();
            recent
                .into_iter()
                .for_each(|flood| self.post(rank, Message::Flood(flood)));
        }
    }

    fn closed(&mut self, token: Token, end: End, now: Instant) {
        let Some(rank) = self.owners.remove(&token) else {
            return;
        };
        let address = self.address_of(rank);
        let Some(peer) = self.peers.get_mut(&rank) else {
            return;
        };
        let failed_dial = peer.dialling == Some(token);
        let was_active = peer.lose(token);
        match end {
            End::Later => peer.again = now + Duration::from_millis(10),
            End::Lost(why) if failed_dial => {
                if peer.tried.len() < MAX_TRIED {
                    let address = address
                        .map_or_else(|| "no address".to_owned(), |address| address.to_string());
                    let note = format!("{address}: {why}");
                    if !peer.tried.contains(&note) {
                        peer.tried.push(note.clone());
                        self.notes.push(format!("rank {rank} at {note}"));
                    }
                }
                peer.address += 1;
                peer.back_off(now);
            }
            End::Lost(_) => peer.again = now + Duration::from_millis(10),
        }
        if self.gone.contains_key(&rank) && peer.connections().next().is_none() {
            self.peers.remove(&rank);
        } else if was_active && peer.active.is_some() {
            self.send_again(rank);
        }
    }

    fn address_of(&self, rank: u32) -> Option<std::net::SocketAddr> {
        let addresses = &self.entries.get(rank as usize)?.as_ref()?.addresses;
        let index = self.peers.get(&rank)?.address;
        addresses.get(index % addresses.len().max(1)).copied()
    }

    fn dial_out(&mut self, now: Instant) -> Result<()> {
        let due = |(rank, peer): (&u32, &Peer)| {
            (peer.wants_connection() && peer.again <= now).then_some(*rank)
        };
        let due: Vec<u32> = self.peers.iter().filter_map(due).collect();
        for rank in due {
            let address = self.address_of(rank);
            let settled = self.settled;
            let Some(peer) = self.peers.get_mut(&rank) else {
                continue;
            };
            let purpose = if peer.neighbour {
                Purpose::Overlay
            } else {
                Purpose::Direct
            };
            if settled {
                // Somebody must notice if it is dead already and nobody else was watching.
                peer.heard.get_or_insert(now);
            }
            let dialled = address.map(|address| self.hub.dial(address, purpose, rank));
            match dialled {
                Some(Ok(token)) => {
                    peer.dialling = Some(token);
                    self.owners.insert(token, rank);
                }
                Some(Err(e)) => {
                    if peer.tried.len() < MAX_TRIED {
                        peer.tried.push(e.to_string());
                    }
                    peer.address += 1;
                    peer.back_off(now);
                }
                None => peer.back_off(now),
            }
        }
        Ok(())
    }

    // Messages out.

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

    fn send_again(&mut self, rank: u32) {
        let Some(peer) = self.peers.get(&rank) else {
            return;
        };
        let Some(active) = peer.active else { return };
        let pending: Vec<Arc<[u8]>> = peer.session.pending().collect();
        pending
            .into_iter()
            .for_each(|frame| self.hub.send(active, frame));
    }

    fn send_acknowledgements(&mut self) {
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
    fn spread(&mut self, flood: Flood, from: Option<u32>) {
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

    // Messages in.

    fn frame(&mut self, token: Token, body: &[u8], now: Instant) {
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

    fn receive(&mut self, from: u32, message: Message) {
        match message {
            Message::Flood(flood) => self.spread(flood, Some(from)),
            Message::Direct {
                lane: Lane::Shrink,
                tag,
                bytes,
            } => self.hear_here(from, tag, &bytes),
            Message::Direct { lane, tag, bytes } => {
                if self.inbox.put(from, lane, tag, bytes) {
                    self.hold_back(from, true);
                }
            }
        }
    }

    /// Stops or resumes reading a peer.
    fn hold_back(&mut self, rank: u32, paused: bool) {
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

    fn apply(&mut self, origin: u32, news: News) {
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

    // Checks.

    pub(super) fn check_rank(&self, rank: u32) -> Result<()> {
        if rank >= self.size {
            return Err(BootstrapError::NoSuchRank {
                rank,
                size: self.size,
            });
        }
        Ok(())
    }

    /// Fails if a wait for a communicator is pointless.
    pub(super) fn check_communicator(&self, communicator: u64) -> Result<()> {
        if let Some(Gone::Dead { by, reason }) = self.gone.get(&self.rank) {
            return Err(BootstrapError::Expelled {
                rank: self.rank,
                by: *by,
                reason: reason.clone(),
            });
        }
        match self
            .aborted
            .get(&communicator)
            .or_else(|| self.aborted.get(&0))
        {
            Some((origin, code, text)) => Err(BootstrapError::Aborted {
                origin: *origin,
                communicator,
                code: *code,
                text: text.clone(),
            }),
            None => Ok(()),
        }
    }
}

pub(super) fn gone_error(rank: u32, gone: &Gone, what: &str) -> BootstrapError {
    match gone {
        Gone::Dead { by, reason } => BootstrapError::Died {
            rank,
            by: *by,
            reason: reason.clone(),
        },
        Gone::Left { .. } => BootstrapError::Departed {
            rank,
            what: what.to_owned(),
        },
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
