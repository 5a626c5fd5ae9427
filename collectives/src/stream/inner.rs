//! What ties a stream to the communicators that have calls on it, and how failures pass between them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use unisono_hal::Device;

use crate::communicator::Shared;
use crate::error::Error;
use crate::execute::{Gate, Lane, OnFailure};
use crate::fork;
use crate::progress::{Policy, Watch};

/// What all clones of a stream share.
pub(super) struct Inner {
    pub lane: Arc<Lane>,
    pub device: Device,
    pub policy: Policy,
    pub generation: u32,
    pub ties: Mutex<Vec<Tie>>,
}

/// A communicator whose collectives were called on the stream.
pub(super) struct Tie {
    pub shared: Weak<Shared>,
    pub gate: Arc<Gate>,
    /// The number of the last of them.
    pub last: u64,
}

impl Inner {
    /// The communicators.
    pub fn ties(&self) -> MutexGuard<'_, Vec<Tie>> {
        self.ties.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The communicators that have calls on the stream which are not complete, with the last's
    /// number.
    pub fn unfinished(&self) -> Vec<(Arc<Shared>, u64)> {
        let ties = self.ties();
        let live = ties
            .iter()
            .filter_map(|tie| Some((tie.shared.upgrade()?, tie.last)));
        live.filter(|(shared, last)| shared.lane.completed() < *last)
            .collect()
    }

    /// The stream has failed: calls that wait for it never begin.
    fn spread(&self, error: &Error) {
        for (shared, _) in self.unfinished() {
            shared.end_with(error.clone());
        }
    }
}

impl Tie {
    /// Whether it is this communicator's.
    pub fn is_of(&self, shared: &Arc<Shared>) -> bool {
        std::ptr::eq(self.shared.as_ptr(), Arc::as_ptr(shared))
    }
}

impl Watch for Inner {
    fn look(&self, now: Instant) {
        for (shared, _) in self.unfinished() {
            Watch::look(&*shared, now);
        }
        // What a failed lane's queue still does may have raised a flag over its release.
        for tie in self.ties().iter() {
            let failed = |shared: Arc<Shared>| shared.lane.failure().is_some();
            if tie.shared.upgrade().is_none_or(failed) {
                tie.gate.release();
            }
        }
    }

    fn lingering(&self) -> Vec<u32> {
        Vec::new()
    }
}

/// Tells the communicators when the stream fails.
pub(super) struct Tell(pub Weak<Inner>);

impl OnFailure for Tell {
    fn failed(&self, error: &Error) {
        if let Some(inner) = self.0.upgrade() {
            inner.spread(error);
        }
    }

    fn suspects(&self, error: &Error) -> bool {
        // Nobody else can explain it.
        self.failed(error);
        false
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !fork::is(self.generation) {
            // The stream is the parent's too.
            std::mem::forget(self.lane.clone());
        }
    }
}
