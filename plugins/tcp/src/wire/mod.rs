//! What goes over a socket: first a handshake, then frames. Pure: bytes in, types out, no sockets.
//!
//! All integers are little-endian. Nothing here trusts its input: every field is checked, and no
//! input makes a decoder read or allocate beyond its fixed size.

mod frame;
mod hello;

pub(crate) use frame::{FRAME_BYTES, Frame, Signal};
pub(crate) use hello::{
    CHALLENGE_BYTES, Challenge, GENERATIONS, HELLO_BYTES, Hello, NONCE_BYTES, PROOF_BYTES, Role,
    transcript,
};

/// Why bytes were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Not this protocol.
    Magic,
    /// This protocol, but a version that is not spoken here.
    Version(u16),
    /// A field has a value that cannot be; its name is given.
    Field(&'static str),
}

impl std::fmt::Display for WireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Magic => f.write_str("not the unisono tcp protocol"),
            Self::Version(found) => write!(f, "protocol version {found} is not spoken here"),
            Self::Field(name) => write!(f, "the field `{name}` holds a value that cannot be"),
        }
    }
}

impl std::error::Error for WireError {}

/// Reads fields off the front of a slice whose length the caller has checked.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, tail) = self
            .0
            .split_first_chunk::<N>()
            .ok_or(WireError::Field("length"))?;
        self.0 = tail;
        Ok(*head)
    }

    fn u16(&mut self) -> Result<u16, WireError> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, WireError> {
        self.take().map(u64::from_le_bytes)
    }
}

/// Writes fields one after another into an array of exactly their size.
struct Writer<const N: usize> {
    bytes: [u8; N],
    at: usize,
}

impl<const N: usize> Writer<N> {
    fn new() -> Self {
        Self {
            bytes: [0; N],
            at: 0,
        }
    }

    fn put(mut self, field: &[u8]) -> Self {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
        self
    }

    fn finish(self) -> [u8; N] {
        debug_assert_eq!(self.at, N, "the fields fill the record");
        self.bytes
    }
}
