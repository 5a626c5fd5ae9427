//! Why a connection can't go on.

use std::fmt;
use std::io;
use std::time::Duration;

use crate::wire::WireError;

/// Why a connection can't go on.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The peer ended it.
    End,
    /// The system's error.
    System(io::Error),
    /// Nothing has come back for so long, although something should have.
    Silent(Duration),
    /// The peer says that it is lost.
    Told,
    /// Another one takes its place.
    Moved,
    /// The peer broke the protocol.
    Protocol(String),
}

impl Broken {
    /// Whether the peer's system ended it: its process has died or left, or somebody between cut it.
    pub(crate) fn is_end(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
        match self {
            Self::End => true,
            Self::System(error) => {
                matches!(
                    error.kind(),
                    BrokenPipe | ConnectionAborted | ConnectionReset
                )
            }
            _ => false,
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("closed its end: its process has died or left"),
            Self::System(error) if error.kind() == io::ErrorKind::TimedOut => {
                f.write_str("has not answered for as long as `keepalive` or `stall_timeout` allows")
            }
            Self::System(error) => write!(f, "is lost: {error}"),
            Self::Silent(time) => write!(f, "has not answered for {time:.1?}"),
            Self::Told => f.write_str("says that nothing comes through to it"),
            Self::Moved => f.write_str("has not gone on where it ended before"),
            Self::Protocol(what) => write!(f, "broke the protocol: {what}"),
        }
    }
}

impl From<WireError> for Broken {
    fn from(error: WireError) -> Self {
        Self::Protocol(error.to_string())
    }
}
