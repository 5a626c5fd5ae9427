//! Connections to peers: opened, lost, dialled again. Messages outlive them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::wire::handshake::Purpose;
use crate::wire::hub::End;
use crate::wire::poller::Token;

use super::message::{Flood, Message};
use super::peer::Peer;
use super::state::{Gone, State};

/// How many attempts to reach a peer are kept for the error.
const MAX_TRIED: usize = 8;

impl State {
    pub(super) fn opened(&mut self, token: Token, rank: u32, outgoing: bool, now: Instant) {
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

    pub(super) fn closed(&mut self, token: Token, end: End, now: Instant) {
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

    pub(super) fn address_of(&self, rank: u32) -> Option<std::net::SocketAddr> {
        let addresses = &self.entries.get(rank as usize)?.as_ref()?.addresses;
        let index = self.peers.get(&rank)?.address;
        addresses.get(index % addresses.len().max(1)).copied()
    }

    pub(super) fn dial_out(&mut self, now: Instant) -> Result<()> {
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

    pub(super) fn send_again(&mut self, rank: u32) {
        let Some(peer) = self.peers.get(&rank) else {
            return;
        };
        let Some(active) = peer.active else { return };
        let pending: Vec<Arc<[u8]>> = peer.session.pending().collect();
        pending
            .into_iter()
            .for_each(|frame| self.hub.send(active, frame));
    }
}
