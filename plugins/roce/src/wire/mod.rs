//! What two ends tell each other. Pure: bytes in, types out.
//!
//! Three languages: an *address*, which everybody gets when the job comes together; *control*
//! messages over the communicator's authenticated channel, which bring queue pairs up and say when one
//! is dead; and *records*, the messages that go between writes on the queue pairs themselves. With
//! them *tokens*, which lead to windows, and *immediates*, 32 bits that stand for a signal.
//!
//! All integers are little-endian. Nothing here trusts its input: every field is checked, and no
//! input makes a decoder read or allocate beyond a fixed size.

mod address;
mod control;
mod immediate;
mod record;
mod token;

pub(crate) use address::Address;
pub(crate) use control::{
    Answer, CONTROL_MAX, Control, Count, End, Hello, Message, Offer, PeerRail, SIGNATURE,
    transcript,
};
pub(crate) use immediate::Immediate;
pub(crate) use record::{Eager, Record, RecordBody, Signal, Totals};
pub(crate) use token::{RAILS_MAX, Token};

/// Why bytes were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireError {
    /// Not this plugin's.
    Magic,
    /// This plugin's, but a version that is not spoken here.
    Version(u16),
    /// A field has a value that cannot be; its name is given.
    Field(&'static str),
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Magic => f.write_str("not made by the roce plugin"),
            Self::Version(found) => write!(f, "protocol version {found} is not spoken here"),
            Self::Field(name) => write!(f, "the field `{name}` holds a value that cannot be"),
        }
    }
}

impl std::error::Error for WireError {}

/// Reads fields off the front of a slice.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self, name: &'static str) -> Result<[u8; N], WireError> {
        let (head, tail) = self
            .0
            .split_first_chunk::<N>()
            .ok_or(WireError::Field(name))?;
        self.0 = tail;
        Ok(*head)
    }

    fn u8(&mut self, name: &'static str) -> Result<u8, WireError> {
        self.take(name).map(u8::from_le_bytes)
    }

    fn u16(&mut self, name: &'static str) -> Result<u16, WireError> {
        self.take(name).map(u16::from_le_bytes)
    }

    fn u32(&mut self, name: &'static str) -> Result<u32, WireError> {
        self.take(name).map(u32::from_le_bytes)
    }

    fn u64(&mut self, name: &'static str) -> Result<u64, WireError> {
        self.take(name).map(u64::from_le_bytes)
    }

    fn bytes(&mut self, count: usize, name: &'static str) -> Result<&'a [u8], WireError> {
        let (head, tail) = self
            .0
            .split_at_checked(count)
            .ok_or(WireError::Field(name))?;
        self.0 = tail;
        Ok(head)
    }

    fn end(&self) -> Result<(), WireError> {
        match self.0 {
            [] => Ok(()),
            _ => Err(WireError::Field("length")),
        }
    }
}
