//! The frame: a header, then `length` bytes for a window.
//!
//! A put is one frame, or several (stripes) that may come over any of the link's connections. Every
//! frame carries all that its put needs, so that a receiver can begin with any of them. Along one
//! connection the puts' sequence numbers never go down.
//!
//! The receiver counts the frames of puts that have landed whole over each of a link's connections,
//! and says so now and then ([`Frame::Ack`]). Where one connection follows another in its place, each
//! end first says its count ([`Frame::Resume`]): what lies beyond it is sent again, from its start.

use super::{Fields, WireError};

const MAGIC: u16 = 0x5546;
const KIND_PUT: u8 = 1;
const KIND_GOODBYE: u8 = 2;
const KIND_ACK: u8 = 3;
const KIND_RESUME: u8 = 4;
const KIND_LOST: u8 = 5;
const FLAG_SIGNAL: u8 = 1;
const FLAG_WORDS: u8 = 2;
const FLAG_ACK: u8 = 4;
const GOODBYE_ABORTED: u8 = 1;

/// Bytes of a frame's header.
pub const FRAME_BYTES: usize = 72;

/// The flag to raise when a put has landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// The receiver's window that holds the flag line.
    pub window: u32,
    /// Where in it, in bytes.
    pub offset: u64,
    /// The words to write first, if any.
    pub words: Option<[u64; 3]>,
}

/// One frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A put, or a stripe of one.
    Put {
        /// The put's number on this link, from 0.
        sequence: u64,
        /// The receiver's window.
        window: u32,
        /// Bytes that follow this header.
        length: u32,
        /// Where they go in the window.
        offset: u64,
        /// Bytes of the whole put, over all its frames.
        total: u64,
        /// What to raise once this put and all before it have landed.
        signal: Option<Signal>,
        /// Whether the sender waits to hear that it has landed: its source stays in use until then.
        acknowledge: bool,
    },
    /// So many frames of puts have landed over this connection and those before it in its place.
    Ack {
        /// Their number.
        received: u64,
    },
    /// The first frame of a connection that follows another: as [`Frame::Ack`].
    Resume {
        /// Their number.
        received: u64,
    },
    /// A connection is lost. Of the accepting end it asks the dialing one to make another; the dialing one says it so
    /// that the others carry something, by which a dead one is found.
    Lost {
        /// Which of the link's.
        index: u16,
        /// Its generation.
        generation: u16,
    },
    /// Nothing comes after this on this connection.
    Goodbye {
        /// Puts that were sent on the link, over all connections.
        sequence: u64,
        /// Whether the sender gave up (its link was aborted) or was done.
        aborted: bool,
    },
}

impl Frame {
    /// The header as it is sent.
    pub fn encode(&self) -> [u8; FRAME_BYTES] {
        let count = |count: u64| [count, 0, 0, 0, 0, 0, 0, 0];
        match *self {
            Self::Put {
                sequence,
                window,
                length,
                offset,
                total,
                signal,
                acknowledge,
            } => {
                let words = signal.and_then(|s| s.words);
                let flags = (u8::from(signal.is_some()) * FLAG_SIGNAL)
                    | (u8::from(words.is_some()) * FLAG_WORDS)
                    | (u8::from(acknowledge) * FLAG_ACK);
                let [w0, w1, w2] = words.unwrap_or_default();
                let (to, at) = signal.map_or((0, 0), |s| (s.window, s.offset));
                let length = u64::from(to) << 32 | u64::from(length);
                let rest = [sequence, offset, total, length, at, w0, w1, w2];
                record(KIND_PUT, flags, window, rest)
            }
            Self::Goodbye { sequence, aborted } => {
                let flags = u8::from(aborted) * GOODBYE_ABORTED;
                record(KIND_GOODBYE, flags, 0, count(sequence))
            }
            Self::Ack { received } => record(KIND_ACK, 0, 0, count(received)),
            Self::Resume { received } => record(KIND_RESUME, 0, 0, count(received)),
            Self::Lost { index, generation } => {
                let which = u32::from(generation) << 16 | u32::from(index);
                record(KIND_LOST, 0, which, count(0))
            }
        }
    }

    /// Reads a header.
    ///
    /// # Errors
    /// If it is not one, or contradicts itself. Whether the window exists and holds the bytes is
    /// for the receiver to say.
    pub fn decode(bytes: &[u8; FRAME_BYTES]) -> Result<Self, WireError> {
        let mut fields = Fields(bytes);
        if fields.u16()? != MAGIC {
            return Err(WireError::Magic);
        }
        let [kind, flags] = fields.take()?;
        let window = fields.u32()?;
        let sequence = fields.u64()?;
        match kind {
            KIND_PUT => {
                let of_signal = flags & !FLAG_ACK;
                if of_signal & !(FLAG_SIGNAL | FLAG_WORDS) != 0 || of_signal == FLAG_WORDS {
                    return Err(WireError::Field("flags"));
                }
                let (offset, total) = (fields.u64()?, fields.u64()?);
                let (length, signal_window) = (fields.u32()?, fields.u32()?);
                let signal_offset = fields.u64()?;
                let words = [fields.u64()?, fields.u64()?, fields.u64()?];
                if u64::from(length) > total || (length == 0 && total != 0) {
                    return Err(WireError::Field("length"));
                }
                if offset.checked_add(u64::from(length)).is_none() {
                    return Err(WireError::Field("offset"));
                }
                Ok(Self::Put {
                    sequence,
                    window,
                    length,
                    offset,
                    total,
                    signal: (flags & FLAG_SIGNAL != 0).then_some(Signal {
                        window: signal_window,
                        offset: signal_offset,
                        words: (flags & FLAG_WORDS != 0).then_some(words),
                    }),
                    acknowledge: flags & FLAG_ACK != 0,
                })
            }
            KIND_ACK | KIND_RESUME | KIND_LOST if flags != 0 => Err(WireError::Field("flags")),
            KIND_ACK => Ok(Self::Ack { received: sequence }),
            KIND_RESUME => Ok(Self::Resume { received: sequence }),
            KIND_LOST => {
                let [i0, i1, g0, g1] = window.to_le_bytes();
                Ok(Self::Lost {
                    index: u16::from_le_bytes([i0, i1]),
                    generation: u16::from_le_bytes([g0, g1]),
                })
            }
            KIND_GOODBYE if flags & !GOODBYE_ABORTED == 0 => Ok(Self::Goodbye {
                sequence,
                aborted: flags & GOODBYE_ABORTED != 0,
            }),
            KIND_GOODBYE => Err(WireError::Field("flags")),
            _ => Err(WireError::Field("kind")),
        }
    }
}

/// A header by whole words, little end first: each is one store.
fn record(kind: u8, flags: u8, which: u32, rest: [u64; 8]) -> [u8; FRAME_BYTES] {
    let marks = u64::from(MAGIC) | u64::from(kind) << 16 | u64::from(flags) << 24;
    let mut bytes = [0; FRAME_BYTES];
    let (first, others) = bytes.split_at_mut(8);
    first.copy_from_slice(&(marks | u64::from(which) << 32).to_le_bytes());
    for (place, word) in others.chunks_exact_mut(8).zip(rest) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let signal = prop::option::of((
            any::<u32>(),
            any::<u64>(),
            prop::option::of(any::<[u64; 3]>()),
        ));
        let put = (
            any::<u64>(),
            any::<u32>(),
            any::<u32>(),
            any::<u64>(),
            signal,
            any::<bool>(),
        )
            .prop_map(|(sequence, window, length, offset, signal, acknowledge)| {
                Frame::Put {
                    acknowledge,
                    sequence,
                    window,
                    length,
                    offset: offset >> 1,
                    total: u64::from(length) * 3,
                    signal: signal.map(|(window, offset, words)| Signal {
                        window,
                        offset,
                        words,
                    }),
                }
            });
        let goodbye = (any::<u64>(), any::<bool>())
            .prop_map(|(sequence, aborted)| Frame::Goodbye { sequence, aborted });
        let ack = any::<u64>().prop_map(|received| Frame::Ack { received });
        let resume = any::<u64>().prop_map(|received| Frame::Resume { received });
        let lost =
            any::<(u16, u16)>().prop_map(|(index, generation)| Frame::Lost { index, generation });
        prop_oneof![put, goodbye, ack, resume, lost]
    }

    proptest! {
        #[test]
        fn a_frame_survives_the_wire(frame in frames()) {
            prop_assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
        }

        #[test]
        fn no_bytes_panic(head in any::<[u8; 32]>(), tail in any::<[u8; 32]>(), magic in any::<bool>()) {
            let mut bytes = [0; FRAME_BYTES];
            bytes[..32].copy_from_slice(&head);
            bytes[40..].copy_from_slice(&tail);
            if magic {
                bytes[..2].copy_from_slice(&MAGIC.to_le_bytes());
                bytes[2] &= 7;
                bytes[3] &= 7;
            }
            if let Ok(Frame::Put { length, total, .. }) = Frame::decode(&bytes) {
                prop_assert!(u64::from(length) <= total);
            }
        }
    }

    #[test]
    fn a_frame_that_contradicts_itself_is_refused() {
        let bytes = |length, offset, total| {
            Frame::Put {
                sequence: 0,
                window: 0,
                length,
                offset,
                total,
                signal: None,
                acknowledge: false,
            }
            .encode()
        };
        assert_eq!(
            Frame::decode(&bytes(9, 0, 8)),
            Err(WireError::Field("length"))
        );
        assert_eq!(
            Frame::decode(&bytes(0, 0, 8)),
            Err(WireError::Field("length"))
        );
        assert_eq!(
            Frame::decode(&bytes(8, u64::MAX - 3, 8)),
            Err(WireError::Field("offset"))
        );
    }
}
