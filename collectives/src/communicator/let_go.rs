//! After a failure: when no peer can touch this rank's windows any more, or read what this rank put in its own memory.
//!
//! A failure reaches one rank before another, and who has not heard of it goes on with its half of
//! the call, in memory of those that have. So each rank tells its peers once its own queues are
//! quiet, and a failed call returns when all peers have told so, are dead or have left. Windows are
//! on one node, and so are ranks that fetch from each other, so these are few messages.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use unisono_bootstrap::Tag;

use super::Shared;
use crate::execute::State;

/// The number of this message among a communicator's.
const LET_GO: u64 = 1;

pub(super) struct LetGo {
    /// The ranks that fetch what this rank puts, and those from which it fetches.
    readers: Vec<u32>,
    read: Vec<u32>,
    told: AtomicBool,
    /// The ranks that have told this one, or are gone.
    heard: Mutex<Vec<u32>>,
}

impl LetGo {
    pub(super) fn new([readers, read]: [Vec<u32>; 2]) -> Self {
        Self {
            readers,
            read,
            told: AtomicBool::new(false),
            heard: Mutex::default(),
        }
    }

    /// Whether the peers are still to be told.
    pub(super) fn is_due(&self, shared: &Shared) -> bool {
        let touches = shared.windows.are_reached() || !self.read.is_empty();
        touches && !self.told.load(Ordering::Relaxed)
    }

    /// Tells the peers, if that is due and this rank's queues are quiet; true if nothing is due any
    /// more.
    pub(super) fn tell(&self, shared: &Shared, state: &State) -> bool {
        if !self.is_due(shared) {
            return true;
        }
        if !state.is_drained() {
            return false;
        }
        if !self.told.swap(true, Ordering::Relaxed) {
            for (_, member) in concerned(shared, &self.read) {
                if let Err(error) = shared.world.control.send(member, tag(shared), &[]) {
                    log::debug!("telling rank {member} that its memory is free: {error}");
                }
            }
        }
        true
    }

    /// The ranks that may still touch this rank's windows, or read its memory.
    pub(super) fn lingering(&self, shared: &Shared) -> Vec<u32> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lingering = Vec::new();
        for (rank, member) in concerned(shared, &self.readers) {
            if heard.contains(&rank) {
                continue;
            }
            match shared.world.control.try_recv(member, tag(shared)) {
                Ok(None) => lingering.push(rank),
                // An error: it is dead or has left.
                Ok(Some(_)) | Err(_) => heard.push(rank),
            }
        }
        lingering
    }
}

/// The ranks that windows concern, which are all others, else some: as the communicator and as the job count them.
fn concerned(shared: &Shared, some: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    let all = shared.windows.are_reached();
    (0..)
        .zip(shared.members.iter().copied())
        .filter(move |(rank, _)| *rank != shared.rank && (all || some.contains(rank)))
}

fn tag(shared: &Shared) -> Tag {
    Tag {
        communicator: shared.id,
        sequence: LET_GO,
    }
}
