//! Why a connection can't go on.

use std::io;

use crate::wire::WireError;

/// Why a connection can't go on.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The peer ended it.
    End,
    /// The system's error.
    System(io::Error),
    /// The peer broke the protocol.
    Protocol(String),
}

impl From<WireError> for Broken {
    fn from(error: WireError) -> Self {
        Self::Protocol(error.to_string())
    }
}
