//! What a call across the contract can answer.

use std::fmt;

use unisono_abi::status as raw;

/// Why a call failed: the contract's negative status codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// An argument, or an answer, breaks the contract.
    Invalid,
    /// The plugin or the device cannot do it.
    Unsupported,
    /// No memory of the kind that was asked for.
    OutOfMemory,
    /// The device or its driver failed.
    Device,
    /// A link failed.
    Link,
    /// The other end is gone.
    Peer,
    /// A deadline passed.
    Timeout,
    /// Somebody aborted the queue.
    Aborted,
    /// A signal carried other words than expected.
    Mismatch,
    /// The other end could not prove who it is.
    Auth,
    /// The vendor's driver or library is missing on this machine.
    NoDriver,
    /// A bug in the plugin.
    Internal,
    /// The instance was poisoned by an earlier [`Status::Internal`].
    Poisoned,
    /// A code that this version of the host does not know.
    Unknown(i32),
}

impl Status {
    /// From the contract's code. Codes that are no errors give [`Status::Unknown`].
    #[must_use]
    pub const fn from_raw(code: i32) -> Self {
        match code {
            raw::INVALID => Self::Invalid,
            raw::UNSUPPORTED => Self::Unsupported,
            raw::OUT_OF_MEMORY => Self::OutOfMemory,
            raw::DEVICE => Self::Device,
            raw::LINK => Self::Link,
            raw::PEER => Self::Peer,
            raw::TIMEOUT => Self::Timeout,
            raw::ABORTED => Self::Aborted,
            raw::MISMATCH => Self::Mismatch,
            raw::AUTH => Self::Auth,
            raw::NO_DRIVER => Self::NoDriver,
            raw::INTERNAL => Self::Internal,
            raw::POISONED => Self::Poisoned,
            other => Self::Unknown(other),
        }
    }

    /// The contract's code.
    #[must_use]
    pub const fn to_raw(self) -> i32 {
        match self {
            Self::Invalid => raw::INVALID,
            Self::Unsupported => raw::UNSUPPORTED,
            Self::OutOfMemory => raw::OUT_OF_MEMORY,
            Self::Device => raw::DEVICE,
            Self::Link => raw::LINK,
            Self::Peer => raw::PEER,
            Self::Timeout => raw::TIMEOUT,
            Self::Aborted => raw::ABORTED,
            Self::Mismatch => raw::MISMATCH,
            Self::Auth => raw::AUTH,
            Self::NoDriver => raw::NO_DRIVER,
            Self::Internal => raw::INTERNAL,
            Self::Poisoned => raw::POISONED,
            Self::Unknown(code) => code,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "invalid",
            Self::Unsupported => "unsupported",
            Self::OutOfMemory => "out of memory",
            Self::Device => "device failed",
            Self::Link => "link failed",
            Self::Peer => "peer gone",
            Self::Timeout => "timeout",
            Self::Aborted => "aborted",
            Self::Mismatch => "mismatch",
            Self::Auth => "not authenticated",
            Self::NoDriver => "driver missing",
            Self::Internal => "internal error of the plugin",
            Self::Poisoned => "poisoned by an earlier internal error",
            Self::Unknown(code) => return write!(f, "unknown status {code}"),
        })
    }
}
