//! What each rank of a communicator tells some others once, by the control channel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use unisono_bootstrap::Tag;

use super::Shared;

/// One message without content to each of some ranks, and who has sent it here.
pub(super) struct ToldOnce {
    /// Its number among a communicator's messages.
    number: u64,
    told: AtomicBool,
    /// The ranks that have told this one, or are gone.
    heard: Mutex<Vec<u32>>,
}

impl ToldOnce {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            told: AtomicBool::new(false),
            heard: Mutex::default(),
        }
    }

    /// Whether this rank has told the others.
    pub(super) fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    /// Tells these ranks, if they were not told yet.
    pub(super) fn tell(&self, shared: &Shared, ranks: impl Iterator<Item = u32>) {
        if self.told.swap(true, Ordering::Relaxed) {
            return;
        }
        for rank in ranks {
            let member = shared.members[rank as usize];
            if let Err(error) = shared.world.control.send(member, self.tag(shared), &[]) {
                log::debug!("telling rank {member} after a failure: {error}");
            }
        }
    }

    /// Those of these ranks that have not told this one, and live.
    pub(super) fn missing(&self, shared: &Shared, ranks: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let mut missing = Vec::new();
        for rank in ranks {
            if heard.contains(&rank) {
                continue;
            }
            let member = shared.members[rank as usize];
            match shared.world.control.try_recv(member, self.tag(shared)) {
                Ok(None) => missing.push(rank),
                // An error: it is dead or has left.
                Ok(Some(_)) | Err(_) => heard.push(rank),
            }
        }
        missing
    }

    fn tag(&self, shared: &Shared) -> Tag {
        Tag {
            communicator: shared.id,
            sequence: self.number,
        }
    }
}
