//! Ending a communicator early, and going on without the dead.

use std::sync::Arc;

use unisono_bootstrap::Wait;

use super::shared::{Shared, mix};
use super::{Communicator, form};
use crate::error::{Error, Result};
use crate::fork;

/// Aborts one communicator on all ranks. Any thread.
#[derive(Clone)]
pub struct AbortHandle {
    shared: Arc<Shared>,
}

impl AbortHandle {
    /// Ends every pending and later call of the communicator on every rank with an error that says
    /// `why` and which rank aborted.
    pub fn abort(&self, why: &str) {
        let shared = &self.shared;
        if !fork::is(shared.generation) {
            return;
        }
        if let Err(error) = shared.world.control.abort(shared.id, -1, why) {
            log::warn!("telling the others of an abort: {error}");
        }
        shared.lane.fail(Error::Aborted {
            by: shared.rank,
            why: why.to_owned(),
            call: None,
        });
    }
}

impl std::fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AbortHandle({})", self.shared.name)
    }
}

impl Communicator {
    /// A handle that aborts this communicator from any thread.
    #[must_use]
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle {
            shared: self.shared.clone(),
        }
    }

    /// What broke the communicator, if anything did. Does not block; any thread.
    #[must_use]
    pub fn async_error(&self) -> Option<Error> {
        if !fork::is(self.shared.generation) {
            return Some(Error::ForkedProcess);
        }
        self.shared.lane.failure().cloned()
    }

    /// Forms a communicator of the ranks that are still alive, in this process, after a death.
    /// Every survivor must call it. Blocks, at most until `timeouts.init`.
    ///
    /// # Errors
    /// If survivors do not call it in time, or if the others took this rank for dead.
    pub fn shrink(&self) -> Result<Self> {
        let shared = &self.shared;
        if !fork::is(shared.generation) {
            return Err(Error::ForkedProcess);
        }
        let known: Vec<u32> = match shared.lane.failure() {
            Some(Error::RankDied { rank, .. }) => vec![shared.members[*rank as usize]],
            _ => Vec::new(),
        };
        let wait = Wait::at_most(shared.world.options.timeouts.init);
        let tag = shared.shrink_tag();
        let alive =
            unisono_bootstrap::shrink(&shared.world.control, tag, &shared.members, &known, &wait)?;
        let salt = alive
            .iter()
            .fold(0, |hash, rank| mix(hash ^ u64::from(*rank)));
        let id = mix(shared.id ^ mix(tag.sequence) ^ salt);
        let name = format!("{}/survivors", shared.name);
        let shared = form::form(&shared.world, id, name, alive)?;
        Ok(Self::new(shared))
    }
}
