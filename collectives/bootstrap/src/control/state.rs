//! What a rank knows of the others, and what it does about what they say. Never blocks.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Instant;

use crate::directory::RankEntry;
use crate::error::{BootstrapError, Result};
use crate::options::Heartbeat;
use crate::wire::hub::{Hub, HubEvent};
use crate::wire::poller::Token;

use super::agreement::Agreement;
use super::floods::Floods;
use super::inbox::Inbox;
use super::peer::Peer;
use super::{Event, Tag};

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
    pub(super) acknowledge: BTreeSet<u32>,
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
