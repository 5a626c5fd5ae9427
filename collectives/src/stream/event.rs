//! Events of a program's own.

use crate::error::Result;
use crate::progress::progress;

/// A point in a stream's work that other streams and the host can wait for. Clones are the same
/// event. Any thread.
#[derive(Clone)]
pub struct Event(pub(super) unisono_hal::Event);

impl Event {
    pub(crate) fn new(event: unisono_hal::Event) -> Self {
        Self(event)
    }

    /// Whether it is complete: a stream has come to where it was recorded last. A new event is not.
    /// Does not block.
    ///
    /// # Errors
    /// What the plugin says, also of the work that the event stands for.
    pub fn is_complete(&self) -> Result<bool> {
        Ok(self.0.is_complete()?)
    }

    /// Completes it from the host. Does not block.
    ///
    /// # Errors
    /// What the plugin says; not every device's events have this side.
    pub fn signal(&self) -> Result<()> {
        self.0.signal()?;
        // A stream that waits for it is looked at again.
        progress().kick();
        Ok(())
    }

    /// The vendor's own handle, 0 if there is none.
    #[must_use]
    pub fn native(&self) -> u64 {
        self.0.native()
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Event({})", self.0.device().info().name)
    }
}
