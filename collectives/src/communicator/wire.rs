//! What communicators tell each other over the control channel, as bytes.

use std::time::Duration;

use crate::error::{Mismatch, RankStatus};
use crate::signature::Call;

const NONE: u32 = u32::MAX;

/// Fixed-size little-endian records.
struct Writer(Vec<u8>);

impl Writer {
    fn u32(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn call(self, call: Option<Call>) -> Self {
        let words = call.map_or([0; 3], |call| call.words());
        self.u64(words[0]).u64(words[1]).u64(words[2])
    }
}

/// Reads what [`Writer`] wrote; `None` if it is too short.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// A run of bytes with its length before it.
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn call(&mut self) -> Option<Option<Call>> {
        let words = [self.u64()?, self.u64()?, self.u64()?];
        Some(Call::from_words(words))
    }
}

/// Appends a run of bytes with its length before it.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

pub(super) fn encode_mismatch(mismatch: &Mismatch) -> Vec<u8> {
    Writer(Vec::new())
        .u32(mismatch.rank)
        .u32(mismatch.peer)
        .call(Some(mismatch.ours))
        .call(Some(mismatch.theirs))
        .0
}

pub(super) fn decode_mismatch(bytes: &[u8]) -> Option<Mismatch> {
    let mut reader = Reader(bytes);
    Some(Mismatch {
        rank: reader.u32()?,
        peer: reader.u32()?,
        ours: reader.call()??,
        theirs: reader.call()??,
    })
}

/// A call that rank `rank` has recorded.
pub(super) fn encode_recorded(rank: u32, call: &Call) -> Vec<u8> {
    Writer(Vec::new()).u32(rank).call(Some(*call)).0
}

pub(super) fn decode_recorded(bytes: &[u8]) -> Option<(u32, Call)> {
    let mut reader = Reader(bytes);
    Some((reader.u32()?, reader.call()??))
}

/// What a rank tells the others when something is overdue or out of step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Telling {
    /// The deadline that passed.
    pub after: Duration,
    /// The number of the collective that is asked about.
    pub about: u32,
    /// What this rank is doing.
    pub status: RankStatus,
    /// What it called as that collective.
    pub called: Option<Call>,
}

impl Telling {
    pub(super) fn encode(&self) -> Vec<u8> {
        let (peer, step) = self.status.waits_for.unwrap_or((NONE, None));
        Writer(Vec::new())
            .u64(self.after.as_nanos() as u64)
            .u32(self.about)
            .u32(self.status.rank)
            .call(self.status.call)
            .u64(self.status.finished)
            .u32(peer)
            .u32(step.unwrap_or(NONE))
            .call(self.called)
            .0
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let after = Duration::from_nanos(reader.u64()?);
        let about = reader.u32()?;
        let rank = reader.u32()?;
        let call = reader.call()?;
        let finished = reader.u64()?;
        let (peer, step) = (reader.u32()?, reader.u32()?);
        Some(Self {
            after,
            about,
            status: RankStatus {
                rank,
                call,
                finished,
                waits_for: (peer != NONE).then(|| (peer, (step != NONE).then_some(step))),
            },
            called: reader.call()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::signature::CallKind;

    fn call(count: u64) -> Call {
        Call {
            kind: CallKind::AllReduce,
            sequence: 4,
            count,
            dtype: Some(crate::DataType::F32),
            op: Some(crate::ReduceOp::Max.into()),
            root: None,
            plan: 9,
            recorded: false,
        }
    }

    #[test]
    fn records_round_trip() {
        let mismatch = Mismatch {
            rank: 1,
            ours: call(1),
            peer: 2,
            theirs: call(2),
        };
        let back = decode_mismatch(&encode_mismatch(&mismatch));
        assert_eq!(
            back.map(|m| (m.rank, m.peer, m.ours, m.theirs)),
            Some((1, 2, call(1), call(2)))
        );
        let cases = [
            (Some(call(3)), Some((5, Some(6)))),
            (Some(call(4)), Some((5, None))),
            (None, None),
        ];
        for (call, waits_for) in cases {
            let telling = Telling {
                after: Duration::from_millis(7),
                about: 4,
                status: RankStatus {
                    rank: 3,
                    call,
                    finished: 8,
                    waits_for,
                },
                called: call,
            };
            assert_eq!(Telling::decode(&telling.encode()), Some(telling));
        }
    }

    #[test]
    fn short_records_are_refused() {
        let whole = encode_mismatch(&Mismatch {
            rank: 1,
            ours: call(1),
            peer: 2,
            theirs: call(2),
        });
        for length in 0..whole.len() {
            assert!(decode_mismatch(&whole[..length]).is_none());
        }
    }

    proptest! {
        /// What is taken for a record is one: it goes out as what was taken.
        #[test]
        fn no_bytes_break_a_record(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(telling) = Telling::decode(&bytes) {
                prop_assert_eq!(Telling::decode(&telling.encode()), Some(telling));
            }
            if let Some(mismatch) = decode_mismatch(&bytes) {
                let whole = encode_mismatch(&mismatch);
                let again = decode_mismatch(&whole).map(|again| encode_mismatch(&again));
                prop_assert_eq!(again, Some(whole));
            }
        }

        #[test]
        fn no_length_reaches_beyond_what_came(bytes in prop::collection::vec(any::<u8>(), 0..40), length: u32) {
            let bytes = [&length.to_le_bytes()[..], &bytes].concat();
            let mut reader = Reader(&bytes);
            match reader.bytes() {
                Some(run) => prop_assert_eq!(run.len(), length as usize),
                None => prop_assert!(length as usize > bytes.len() - 4),
            }
        }

        #[test]
        fn a_changed_bit_breaks_no_record(at: prop::sample::Index, bit in 0..8u32, count: u64) {
            let mismatch = Mismatch { rank: 1, ours: call(count), peer: 2, theirs: call(!count) };
            let mut bytes = encode_mismatch(&mismatch);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            if let Some(other) = decode_mismatch(&bytes) {
                prop_assert!(!other.to_string().is_empty());
            }
        }
    }
}
