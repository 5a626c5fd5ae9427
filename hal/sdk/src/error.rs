//! Errors that cross the boundary: a status, the vendor's own code, and words for a person.

use std::borrow::Cow;
use std::fmt;

use unisono_abi::status;

/// What kind of error: `unisono_status` below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum Status {
    /// An argument breaks the contract.
    Invalid = status::INVALID,
    /// This plugin or device cannot do it.
    Unsupported = status::UNSUPPORTED,
    /// No memory.
    OutOfMemory = status::OUT_OF_MEMORY,
    /// The device or its driver failed.
    Device = status::DEVICE,
    /// A link failed.
    Link = status::LINK,
    /// The other end is gone.
    Peer = status::PEER,
    /// It took too long.
    Timeout = status::TIMEOUT,
    /// It was aborted.
    Aborted = status::ABORTED,
    /// A signal carried other words than expected.
    Mismatch = status::MISMATCH,
    /// The other end could not prove who it is.
    Auth = status::AUTH,
    /// The vendor's driver or library is missing on this machine.
    NoDriver = status::NO_DRIVER,
    /// A bug in the plugin.
    Internal = status::INTERNAL,
    /// The instance was poisoned by an earlier bug.
    Poisoned = status::POISONED,
}

impl Status {
    /// The number in the header.
    #[must_use]
    pub const fn code(self) -> unisono_abi::Status {
        self as unisono_abi::Status
    }

    /// The error that a status means; `None` for those that are no error. A negative status that
    /// this crate does not know is [`Status::Internal`].
    #[must_use]
    pub const fn from_code(code: unisono_abi::Status) -> Option<Self> {
        Some(match code {
            0.. => return None,
            status::INVALID => Self::Invalid,
            status::UNSUPPORTED => Self::Unsupported,
            status::OUT_OF_MEMORY => Self::OutOfMemory,
            status::DEVICE => Self::Device,
            status::LINK => Self::Link,
            status::PEER => Self::Peer,
            status::TIMEOUT => Self::Timeout,
            status::ABORTED => Self::Aborted,
            status::MISMATCH => Self::Mismatch,
            status::AUTH => Self::Auth,
            status::NO_DRIVER => Self::NoDriver,
            status::POISONED => Self::Poisoned,
            _ => Self::Internal,
        })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "invalid argument",
            Self::Unsupported => "unsupported",
            Self::OutOfMemory => "out of memory",
            Self::Device => "device failure",
            Self::Link => "link failure",
            Self::Peer => "the peer is gone",
            Self::Timeout => "timeout",
            Self::Aborted => "aborted",
            Self::Mismatch => "mismatch",
            Self::Auth => "authentication failed",
            Self::NoDriver => "driver missing",
            Self::Internal => "internal error",
            Self::Poisoned => "poisoned by an earlier internal error",
        })
    }
}

/// An error of a plugin. One pointer wide, so that results stay cheap where all goes well.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Detail>);

#[derive(Clone, PartialEq, Eq)]
struct Detail {
    status: Status,
    vendor_code: i64,
    words: [u64; 3],
    message: Cow<'static, str>,
}

/// The result of a plugin's call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error: what failed, where, and what to do about it. The host gets the first 231 bytes.
    #[must_use]
    pub fn new(status: Status, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Detail {
            status,
            vendor_code: 0,
            words: [0; 3],
            message: message.into(),
        }))
    }

    /// An argument breaks the contract.
    #[must_use]
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::Invalid, message)
    }

    /// This plugin or device cannot do `what`.
    #[must_use]
    pub fn unsupported(what: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::Unsupported, what)
    }

    /// A failed system call: its errno is the vendor's code.
    #[must_use]
    pub fn system(status: Status, what: &str, error: &std::io::Error) -> Self {
        Self::new(status, format!("{what}: {error}"))
            .with_vendor_code(i64::from(error.raw_os_error().unwrap_or(0)))
    }

    /// A WAIT that found other words than it expects.
    #[must_use]
    pub fn mismatch(found: [u64; 3]) -> Self {
        let mut error = Self::new(
            Status::Mismatch,
            "the signal carries other words than expected",
        );
        error.0.words = found;
        error
    }

    /// The same error with the vendor's own code (errno for the system).
    #[must_use]
    pub fn with_vendor_code(mut self, code: i64) -> Self {
        self.0.vendor_code = code;
        self
    }

    /// What kind of error.
    #[must_use]
    pub fn status(&self) -> Status {
        self.0.status
    }

    /// The vendor's own code, 0 if none.
    #[must_use]
    pub fn vendor_code(&self) -> i64 {
        self.0.vendor_code
    }

    /// The words that were found, for [`Status::Mismatch`].
    #[must_use]
    pub fn words(&self) -> [u64; 3] {
        self.0.words
    }

    /// The message alone.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("status", &self.0.status)
            .field("vendor_code", &self.0.vendor_code)
            .field("words", &self.0.words)
            .field("message", &self.0.message)
            .finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.status, self.0.message)?;
        if self.0.vendor_code != 0 {
            write!(f, " (code {})", self.0.vendor_code)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
