//! Handles of the runtime's, each kind a type of its own.
#![allow(unsafe_code, reason = "says that handles are good on any thread")]

use crate::api::Handle;

/// A stream of the runtime's.
#[derive(Clone, Copy, Debug)]
pub struct RocmStream(pub(crate) Handle);

/// An event of the runtime's.
#[derive(Clone, Copy, Debug)]
pub struct RocmEvent(pub(crate) Handle);

/// A graph of the runtime's, ready to run.
#[derive(Clone, Copy, Debug)]
pub struct RocmGraph(pub(crate) Handle);

// SAFETY: handles of the runtime's, usable from any thread.
unsafe impl Send for RocmStream {}
// SAFETY: as above.
unsafe impl Sync for RocmStream {}
// SAFETY: as above.
unsafe impl Send for RocmGraph {}
// SAFETY: as above.
unsafe impl Sync for RocmGraph {}
// SAFETY: as above.
unsafe impl Send for RocmEvent {}
// SAFETY: as above.
unsafe impl Sync for RocmEvent {}
