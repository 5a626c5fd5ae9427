//! Who lives: process descriptors on this node, heartbeats between nodes, and what follows from a death.
//!
//! The end of a connection says nothing: a live rank may lose one, and a dead rank's forked child may keep one open.

use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::directory::RankEntry;
use crate::identity;
use crate::wire::connection::frame;
use crate::wire::poller::Token;

use super::Event;
use super::message::{Body, News};
use super::peer::Watch;
use super::state::{Gone, State};

/// How long after the end of a process its parting word may still be on its way here.
const PARTING: Duration = Duration::from_millis(250);
/// How long after a rank has left its neighbours look for others.
const REPAIR: Duration = Duration::from_millis(200);

impl State {
    /// Takes note of ranks' entries; watches the processes of those that run on this node. This rank's own must be
    /// among the first.
    pub(super) fn learn(&mut self, entries: Vec<RankEntry>) {
        let mut fresh = Vec::new();
        for entry in entries {
            let rank = entry.rank;
            let Some(slot) = self.entries.get_mut(rank as usize) else {
                continue;
            };
            if slot.replace(entry).is_none() && rank != self.rank {
                fresh.push(rank);
            }
        }
        fresh.into_iter().for_each(|rank| self.watch_process(rank));
    }

    /// Keeps connections open to the nearest ranks that live at distances 1, 2, 4 and so on before this one. Those
    /// after this one do the same, so this rank is kept by as many.
    pub(super) fn choose_neighbours(&mut self) {
        let size = u64::from(self.size);
        let wanted: Vec<u32> = (0..32)
            .map(|k| 1u64 << k)
            .take_while(|&distance| distance < size)
            .filter_map(|distance| {
                let start = u64::from(self.rank) + size - distance;
                let nearest = (0..size).map(|further| ((start + size - further) % size) as u32);
                nearest
                    .take_while(|&rank| rank != self.rank)
                    .find(|rank| !self.gone.contains_key(rank))
            })
            .collect();
        let now = Instant::now();
        for (rank, peer) in &mut self.peers {
            peer.neighbour = wanted.contains(rank);
        }
        for rank in wanted {
            self.peer(rank, now).neighbour = true;
        }
    }

    pub(super) fn how_to_watch(&self, rank: u32) -> Watch {
        let same_process = match (self.entry(self.rank), self.entry(rank)) {
            (Some(me), Some(other)) => {
                me.node == other.node
                    && me.pid == other.pid
                    && me.process_scope == other.process_scope
            }
            _ => false,
        };
        if same_process || self.processes.values().any(|&watched| watched == rank) {
            Watch::Process
        } else {
            Watch::Heartbeat
        }
    }

    fn entry(&self, rank: u32) -> Option<&RankEntry> {
        self.entries.get(rank as usize)?.as_ref()
    }

    fn watch_process(&mut self, rank: u32) {
        let (Some(me), Some(other)) = (self.entry(self.rank), self.entry(rank)) else {
            return;
        };
        if me.node != other.node || me.process_scope != other.process_scope || me.pid == other.pid {
            return;
        }
        let (pid, started) = (other.pid, other.start_time);
        let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            return;
        };
        let descriptor = match pidfd_open(process, PidfdFlags::empty()) {
            Ok(descriptor) => descriptor,
            Err(rustix::io::Errno::SRCH) => {
                return self.suspects.push((rank, Instant::now() + PARTING));
            }
            // No such facility here, or not allowed: heartbeats will do.
            Err(_) => return,
        };
        // The descriptor is held, so this number can no longer pass to another process; has it already?
        if identity::start_time(pid) != Some(started) {
            return self.suspects.push((rank, Instant::now() + PARTING));
        }
        if let Ok(token) = self.hub.watch(descriptor) {
            self.processes.insert(token, rank);
            if let Some(peer) = self.peers.get_mut(&rank) {
                peer.watch = Watch::Process;
            }
        }
    }

    pub(super) fn process_ended(&mut self, token: Token, now: Instant) {
        if let Some(rank) = self.processes.remove(&token)
            && !self.gone.contains_key(&rank)
        {
            self.suspects.push((rank, now + PARTING));
        }
    }

    /// If nobody turned this channel for a while, the others' silence is no fault of theirs.
    pub(super) fn excuse_own_absence(&mut self, now: Instant) {
        let absent = now.saturating_duration_since(self.last_turn);
        self.last_turn = now;
        if absent > self.heartbeat.timeout / 2 {
            for heard in self
                .peers
                .values_mut()
                .filter_map(|peer| peer.heard.as_mut())
            {
                *heard = (*heard + absent).min(now);
            }
        }
    }

    /// Gives signs of life, and finds out who gives none.
    pub(super) fn watch_over(&mut self, now: Instant) {
        let ended: Vec<u32> = self
            .suspects
            .iter()
            .filter(|&&(_, at)| at <= now)
            .map(|&(rank, _)| rank)
            .collect();
        self.suspects.retain(|&(_, at)| at > now);
        for rank in ended {
            if !self.gone.contains_key(&rank) {
                self.originate(News::Dead {
                    rank,
                    reason: "its process ended without leaving the job".to_owned(),
                });
            }
        }
        if self.repair.is_some_and(|at| at <= now) {
            self.repair = None;
            if self.settled {
                self.choose_neighbours();
            }
        }
        if now < self.next_beat {
            return;
        }
        self.next_beat = now + self.heartbeat.interval;
        let active: Vec<Token> = self.peers.values().filter_map(|peer| peer.active).collect();
        for token in active {
            if self.hub.queued(token) == 0 {
                self.hub.send(token, frame(&Body::Heartbeat.encode()));
            }
        }
        let limit = self.heartbeat.timeout;
        let silent: Vec<(u32, Duration)> = self
            .peers
            .iter()
            .filter(|(rank, peer)| {
                peer.watch == Watch::Heartbeat && !peer.paused && !self.gone.contains_key(rank)
            })
            .filter_map(|(&rank, peer)| Some((rank, now.saturating_duration_since(peer.heard?))))
            .filter(|&(_, silence)| silence > limit)
            .collect();
        for (rank, silence) in silent {
            self.originate(News::Dead {
                rank,
                reason: format!("no sign of life for {silence:.1?}"),
            });
        }
    }

    /// A rank is dead, as rank `by` says.
    pub(super) fn bury(&mut self, rank: u32, by: u32, reason: String) {
        if rank >= self.size || self.gone.contains_key(&rank) {
            return;
        }
        self.gone.insert(
            rank,
            Gone::Dead {
                by,
                reason: reason.clone(),
            },
        );
        self.tell(Event::Dead { rank, by, reason });
        self.unwatch(rank);
        if let Some(peer) = self.peers.remove(&rank) {
            for token in peer.connections() {
                self.owners.remove(&token);
                self.hub.close(token);
            }
        }
        if self.settled {
            self.choose_neighbours();
        }
    }

    /// A rank has left. What it sent before may still be on its way over its own connections.
    pub(super) fn depart(&mut self, rank: u32) {
        if rank >= self.size || rank == self.rank || self.gone.contains_key(&rank) {
            return;
        }
        self.gone.insert(rank, Gone::Left { at: Instant::now() });
        self.tell(Event::Left { rank });
        self.unwatch(rank);
        if self
            .peers
            .get(&rank)
            .is_some_and(|peer| peer.active.is_none())
        {
            self.peers.remove(&rank);
        }
        // Mostly all leave at once; whoever stays finds new neighbours a little later.
        self.repair.get_or_insert(Instant::now() + REPAIR);
    }

    fn unwatch(&mut self, rank: u32) {
        let tokens: Vec<Token> = self
            .processes
            .iter()
            .filter(|&(_, &watched)| watched == rank)
            .map(|(&t, _)| t)
            .collect();
        for token in tokens {
            self.processes.remove(&token);
            self.hub.unwatch(token);
        }
    }
}
