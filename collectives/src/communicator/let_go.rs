//! After a failure: when no peer can touch this rank's windows any more.
//!
//! A failure reaches one rank before another, and who has not heard of it goes on with its half of
//! the call, in memory of those that have. So each rank tells its peers once its own queues are
//! quiet, and a failed call returns when all peers have told so, are dead or have left. Windows are
//! on one node, so these are few messages.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use unisono_bootstrap::Tag;

use super::Shared;
use crate::execute::State;

/// The number of this message among a communicator's.
const LET_GO: u64 = 1;

#[derive(Default)]
pub(super) struct LetGo {
    told: AtomicBool,
    /// The ranks that have told this one, or are gone.
    heard: Mutex<Vec<u32>>,
}

impl LetGo {
    /// Whether the peers are still to be told.
    pub(super) fn is_due(&self, shared: &Shared) -> bool {
        shared.windows.are_reached() && !self.told.load(Ordering::Relaxed)
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
            for (_, member) in others(shared) {
                if let Err(error) = shared.world.control.send(member, tag(shared), &[]) {
                    log::debug!("telling rank {member} that its windows are free: {error}");
                }
            }
        }
        true
    }

    /// The ranks that may still touch this rank's windows.
    pub(super) fn lingering(&self, shared: &Shared) -> Vec<u32> {
        if !shared.windows.are_reached() {
            return Vec::new();
        }
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lingering = Vec::new();
        for (rank, member) in others(shared) {
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

/// The other ranks, as the communicator and as the job count them.
fn others(shared: &Shared) -> impl Iterator<Item = (u32, u32)> {
    (0..)
        .zip(shared.members.iter().copied())
        .filter(|(rank, _)| *rank != shared.rank)
}

fn tag(shared: &Shared) -> Tag {
    Tag {
        communicator: shared.id,
        sequence: LET_GO,
    }
}
