//! Memory: the host's, by address, and what is registered of it.
//!
//! Registered and kept: windows, as long as they are exported, and each lane's own block. All else is
//! copied to such a block, or registered for one put. Nothing is kept for memory that the plugin was
//! not told of, so nothing can be stale.

mod block;
mod flags;
mod registry;

pub(crate) use block::{Block, Held, Ring, SLOT};
pub(crate) use flags::{Reached, begin_wait, copy, raise, reached, signal, words};
pub(crate) use registry::{Memory, Registry};
