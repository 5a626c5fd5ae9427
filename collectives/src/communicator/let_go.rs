//! After a failure: when no peer can touch this rank's windows any more, or read what this rank put in its own memory.
//!
//! A failure reaches one rank before another, and who has not heard of it goes on with its half of
//! the call, in memory of those that have. So each rank tells its peers once its own queues are
//! quiet, and a failed call returns when all peers have told so, are dead or have left. Windows are
//! on one node, and so are ranks that fetch from each other, so these are few messages.

use super::Shared;
use super::told_once::ToldOnce;
use crate::execute::State;

/// The number of this message among a communicator's.
const LET_GO: u64 = 1;

pub(super) struct LetGo {
    /// The ranks that fetch what this rank puts, and those from which it fetches.
    readers: Vec<u32>,
    read: Vec<u32>,
    told: ToldOnce,
}

impl LetGo {
    pub(super) fn new([readers, read]: [Vec<u32>; 2]) -> Self {
        Self {
            readers,
            read,
            told: ToldOnce::new(LET_GO),
        }
    }

    /// Whether the peers are still to be told.
    pub(super) fn is_due(&self, shared: &Shared) -> bool {
        let touches = reaches_all(shared) || !self.read.is_empty();
        touches && !self.told.is_told()
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
        self.told.tell(shared, concerned(shared, &self.read));
        true
    }

    /// The ranks that may still touch this rank's windows, or read its memory.
    pub(super) fn lingering(&self, shared: &Shared) -> Vec<u32> {
        self.told.missing(shared, concerned(shared, &self.readers))
    }
}

/// Whether ranks reach each other's buffers: windows, or what they read of each other's memory.
fn reaches_all(shared: &Shared) -> bool {
    shared.windows.are_reached() || shared.fabric.reads().is_some()
}

/// The ranks that this concerns, which are all others, else some.
fn concerned(shared: &Shared, some: &[u32]) -> impl Iterator<Item = u32> {
    let all = reaches_all(shared);
    let others = (0..shared.members.len() as u32).filter(|rank| *rank != shared.rank);
    others.filter(move |rank| all || some.contains(rank))
}
