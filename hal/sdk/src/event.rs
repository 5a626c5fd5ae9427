//! Events: completed by a stream or by the host, seen by both.

use crate::{Error, Result};

/// An event. Any thread may call, at any time.
///
/// A RECORD in a batch hands the stream a reference for the call only: an event whose state must
/// outlive it holds that state behind an `Arc`, and the stream clones it.
pub trait Event: Send + Sync + 'static {
    /// Whether the plugin has events.
    const PRESENT: bool = true;

    /// Completes it from the host. Never blocks.
    ///
    /// # Errors
    /// Unsupported where the host side is absent.
    fn host_signal(&self) -> Result<()> {
        Err(Error::unsupported(
            "events of this device cannot be signalled by the host",
        ))
    }

    /// Whether it is complete. A new event, or one recorded again, is not.
    ///
    /// # Errors
    /// The error that reached it.
    fn host_query(&self) -> Result<bool> {
        Err(Error::unsupported(
            "events of this device cannot be asked by the host",
        ))
    }

    /// The vendor's own handle, 0 if there is none.
    fn native(&self) -> u64 {
        0
    }
}

/// For plugins without events.
#[derive(Clone, Copy, Debug)]
pub enum NoEvent {}

impl Event for NoEvent {
    const PRESENT: bool = false;
}
