//! How a lane ends: what an abort drops and releases, and in what order; and the memory that it leaves.

use std::time::{Duration, Instant};

use unisono_hal::{DeviceKind, Queue};

use super::super::left::{self, Unread};
use super::super::peer::{Fetch, Peer, Way};
use super::super::track::{BUDGET, Track};
use super::{State, is_quiet};

/// How long a device's waits are held after a failure, at most, for peers that do not say that they know of it.
pub(crate) const HEARD: Duration = Duration::from_secs(1);

impl State {
    /// Drops what has not started and releases every wait: of a device that shares memory with peers, once they know of
    /// the failure.
    pub(in crate::execute) fn abort(&mut self) {
        self.release_others();
        self.main.drop_rest();
        self.beside.drop_rest();
        let is_shared = |peer: &Peer| matches!(peer.way, Way::Mapped { .. });
        let is_device = self.common.device.info().kind != DeviceKind::Cpu;
        if is_device && self.common.peers.iter().any(is_shared) {
            self.held = Some(Instant::now() + HEARD);
        } else {
            self.release_waits();
        }
        for peer in &mut self.common.peers {
            if let Way::Posted(posted) = &mut peer.way {
                posted.link.aborter().abort();
                posted.batch.clear();
                posted.outstanding.clear();
            }
        }
    }

    /// Until when the device's waits are held at most, if they were not released yet after a failure.
    pub(crate) fn held_until(&self) -> Option<Instant> {
        self.held
    }

    /// Releases the waits of this rank's streams, which drop what has not started where they can.
    pub(crate) fn release_waits(&mut self) {
        self.held = None;
        self.poison();
        self.main.stream.aborter().abort();
        for track in &self.beside.tracks {
            track.stream.aborter().abort();
        }
    }

    /// The ranks that share memory with this one.
    pub(crate) fn sharing(&self) -> Vec<u32> {
        let peers = self.common.peers.iter();
        let shares = peers.filter(|peer| matches!(peer.way, Way::Mapped { .. }));
        shares.map(|peer| peer.rank).collect()
    }

    /// Releases what waits outside of this rank's queues: streams of the user's, and replays.
    fn release_others(&self) {
        self.gates.iter().for_each(|gate| gate.release());
        if let Some(recorded) = &self.recorded {
            recorded.release();
        }
    }

    /// A peer may be writing the same flags, so this is repeated until the streams are drained.
    fn poison(&self) {
        let arena = self.common.own.arena;
        // A rank alone has no flags. Those that it raises itself, of what it shows, are others' to wait for: these would
        // take it for shown.
        let own = self.common.own.rank;
        let others = |peer: &&Peer| peer.rank != own && peer.near.signal_host != 0;
        for peer in self.common.peers.iter().filter(others) {
            for offset in arena.flags_of(peer.rank) {
                crate::arena::poison(peer.near.signal_host + offset);
            }
        }
    }

    pub(in crate::execute) fn drain(&mut self) {
        let busy = |track: &Track| !track.flight.is_empty();
        if !busy(&self.main) && !self.beside.tracks.iter().any(busy) {
            return;
        }
        self.release_others();
        match self.held {
            Some(until) if Instant::now() < until => {}
            Some(_) => self.release_waits(),
            None => self.poison(),
        }
        let _ = self.main.stream.poll(BUDGET);
        for track in &mut self.beside.tracks {
            let _ = track.stream.poll(BUDGET);
        }
        if self.is_drained() {
            self.main.flight.clear();
            for track in &mut self.beside.tracks {
                track.flight.clear();
            }
            self.common.outgrown.clear();
        }
    }

    /// Whether no device or link can still touch a caller's buffer.
    pub(crate) fn is_drained(&self) -> bool {
        self.tracks().all(|track| is_quiet(&track.stream))
            && self.common.peers.iter().all(|peer| match &peer.way {
                Way::Posted(posted) => is_quiet(&posted.link),
                Way::Own | Way::Mapped { .. } => true,
            })
    }

    /// Leaves the memory that peers read for as long as they do, though the communicator goes: until they have fetched
    /// all that this rank put, or for ever if `unheard`, as after a failure nobody can tell. Not while this rank uses it.
    pub(crate) fn leave_memory(&mut self, unheard: bool) {
        if !unheard && !self.is_idle() {
            return;
        }
        let unread = self
            .common
            .peers
            .iter()
            .filter_map(|peer| peer.unread(&self.common.own));
        let unread: Vec<Unread> = unread.collect();
        if unheard {
            std::mem::forget(self.holdings.take());
        } else if !unread.is_empty() {
            left::leave(unread, self.holdings.take());
        }
    }

    /// The ranks that fetch what this rank puts, and those from which it fetches.
    pub(crate) fn fetching(&self) -> [Vec<u32>; 2] {
        let of = |which: fn(&Fetch) -> bool| {
            let peers = self.common.peers.iter().filter(|peer| which(&peer.fetch()));
            peers.map(|peer| peer.rank).collect()
        };
        [of(|fetch| fetch.sent), of(|fetch| fetch.received)]
    }
}
