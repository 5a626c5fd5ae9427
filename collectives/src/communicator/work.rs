//! A call that was started and not waited for.

use std::sync::Arc;

use super::shared::Shared;
use crate::error::Result;
use crate::progress::progress;

/// A started call. Dropping it does not end the call.
#[must_use = "a call that nobody waits for may fail unseen"]
pub struct Work {
    shared: Arc<Shared>,
    number: u64,
}

impl Work {
    pub(super) fn new(shared: Arc<Shared>, number: u64) -> Self {
        Self { shared, number }
    }

    /// Whether the call is complete. Does not block; any thread.
    ///
    /// # Errors
    /// What broke the communicator before the call was complete.
    pub fn is_done(&self) -> Result<bool> {
        self.shared.not_forked()?;
        if self.shared.lane.completed() >= self.number {
            return Ok(true);
        }
        match self.shared.lane.failure() {
            Some(error) => Err(error.clone()),
            None => Ok(false),
        }
    }

    /// Waits until the call is complete, doing the process's work meanwhile.
    ///
    /// # Errors
    /// As [`Work::is_done`].
    pub fn wait(&self) -> Result<()> {
        self.shared.not_forked()?;
        let lane = &self.shared.lane;
        if lane.completed() >= self.number {
            return Ok(());
        }
        let state = lane.lock();
        progress().wait(lane, state, self.number, self.shared.policy, &*self.shared)
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// A started call that gives its buffers back.
#[must_use = "the buffers come back by `wait`"]
#[derive(Debug)]
pub struct Pending<B> {
    work: Work,
    buffers: B,
}

impl<B> Pending<B> {
    pub(super) fn new(work: Work, buffers: B) -> Self {
        Self { work, buffers }
    }

    /// Whether the call is complete.
    ///
    /// # Errors
    /// As [`Work::is_done`].
    pub fn is_done(&self) -> Result<bool> {
        self.work.is_done()
    }

    /// Waits, and gives the buffers back.
    ///
    /// # Errors
    /// As [`Work::wait`]; the buffers are then freed once no device can touch them.
    pub fn wait(self) -> Result<B> {
        self.work.wait()?;
        Ok(self.buffers)
    }
}
