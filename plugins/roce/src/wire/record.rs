//! Records: the messages on the queue pairs. A record is sent behind the writes that it speaks of, on
//! the same queue pair, so it comes after their bytes have landed.

use super::{Fields, WireError};

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) body: RecordBody<'a>,
    /// Stripes on other queue pairs that must have landed before it counts: how many each has brought
    /// since the link came up. Empty if none.
    pub(crate) fences: Vec<u32>,
    /// Messages that the sender has taken off each queue pair since the link came up. Empty if it
    /// does not say.
    pub(crate) credits: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordBody<'a> {
    /// A put is whole.
    Put {
        totals: Totals,
        signal: Option<Signal>,
        eager: Option<Eager<'a>>,
    },
    /// Nothing but credits.
    Credit,
    /// The last word.
    Goodbye { totals: Totals },
}

/// What the sender has sent since the link came up, this put included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) puts: u64,
    pub(crate) bytes: u64,
}

/// A flag to raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal {
    pub(crate) window: u32,
    pub(crate) offset: u64,
    pub(crate) words: Option<[u64; 3]>,
}

/// Bytes that come with the record, and where they belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Eager<'a> {
    pub(crate) window: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
}

const PUT: u8 = 1;
const CREDIT: u8 = 2;
const GOODBYE: u8 = 3;

const SIGNAL: u8 = 1;
const WORDS: u8 = 2;
const EAGER: u8 = 4;

const HEAD: usize = 8;
const TOTALS: usize = 16;
const SIGNAL_BYTES: usize = 12;
const WORDS_BYTES: usize = 24;
const EAGER_BYTES: usize = 12;

impl Record<'_> {
    /// Bytes of a record's longest possible message.
    pub(crate) const MAX: usize = 256;
    /// Fences and credits, at most.
    pub(crate) const LANES_MAX: usize = 16;
    /// Bytes that a put may bring with its words and signal and without fences.
    pub(crate) const EAGER_MAX: usize = Self::MAX
        - (HEAD + TOTALS + SIGNAL_BYTES + WORDS_BYTES + EAGER_BYTES)
        - 4 * Self::LANES_MAX;

    /// Writes it to the front of a buffer; how long it is. `None` if it does not fit.
    pub(crate) fn encode(&self, out: &mut [u8; Record::MAX]) -> Option<usize> {
        let mut writer = Writer { out, at: 0 };
        let (kind, totals, signal, eager) = match &self.body {
            RecordBody::Put {
                totals,
                signal,
                eager,
            } => (PUT, Some(*totals), *signal, *eager),
            RecordBody::Credit => (CREDIT, None, None, None),
            RecordBody::Goodbye { totals } => (GOODBYE, Some(*totals), None, None),
        };
        let words = signal.and_then(|signal| signal.words);
        let mut flags = 0;
        for (flag, is_set) in [
            (SIGNAL, signal.is_some()),
            (WORDS, words.is_some()),
            (EAGER, eager.is_some()),
        ] {
            flags |= if is_set { flag } else { 0 };
        }
        let payload = eager.map_or(&[][..], |eager| eager.bytes);
        writer.put(&[
            kind,
            flags,
            self.fences.len() as u8,
            self.credits.len() as u8,
        ])?;
        writer.put(&(payload.len() as u16).to_le_bytes())?;
        writer.put(&[0, 0])?;
        if let Some(totals) = totals {
            writer.put(&totals.puts.to_le_bytes())?;
            writer.put(&totals.bytes.to_le_bytes())?;
        }
        if let Some(signal) = signal {
            writer.put(&signal.window.to_le_bytes())?;
            writer.put(&signal.offset.to_le_bytes())?;
        }
        for word in words.iter().flatten() {
            writer.put(&word.to_le_bytes())?;
        }
        if let Some(eager) = eager {
            writer.put(&eager.window.to_le_bytes())?;
            writer.put(&eager.offset.to_le_bytes())?;
        }
        for count in self.fences.iter().chain(&self.credits) {
            writer.put(&count.to_le_bytes())?;
        }
        writer.put(payload)?;
        Some(writer.at)
    }
}

impl<'a> Record<'a> {
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut fields = Fields(bytes);
        let [kind, flags, fences, credits] = fields.take("head")?;
        let payload = usize::from(fields.u16("length")?);
        if fields.u16("reserved")? != 0 {
            return Err(WireError::Field("reserved"));
        }
        if usize::from(fences.max(credits)) > Record::LANES_MAX {
            return Err(WireError::Field("lanes"));
        }
        let known = match kind {
            PUT => SIGNAL | WORDS | EAGER,
            CREDIT | GOODBYE => 0,
            _ => return Err(WireError::Field("kind")),
        };
        let words_alone = flags & (WORDS | SIGNAL) == WORDS;
        let bytes_alone = (flags & EAGER == 0) != (payload == 0);
        if flags & !known != 0 || words_alone || bytes_alone {
            return Err(WireError::Field("flags"));
        }
        let totals = match kind {
            CREDIT => Totals::default(),
            _ => Totals {
                puts: fields.u64("puts")?,
                bytes: fields.u64("bytes")?,
            },
        };
        let signal = (flags & SIGNAL != 0)
            .then(|| -> Result<_, WireError> { Ok((fields.u32("signal")?, fields.u64("signal")?)) })
            .transpose()?;
        let words = (flags & WORDS != 0)
            .then(|| -> Result<_, WireError> {
                Ok([
                    fields.u64("words")?,
                    fields.u64("words")?,
                    fields.u64("words")?,
                ])
            })
            .transpose()?;
        let place = (flags & EAGER != 0)
            .then(|| -> Result<_, WireError> { Ok((fields.u32("place")?, fields.u64("place")?)) })
            .transpose()?;
        let mut counts = |count: u8, name| {
            (0..count)
                .map(|_| fields.u32(name))
                .collect::<Result<Vec<_>, _>>()
        };
        let (fences, credits) = (counts(fences, "fences")?, counts(credits, "credits")?);
        let bytes = fields.bytes(payload, "bytes")?;
        fields.end()?;
        let body = match kind {
            PUT => RecordBody::Put {
                totals,
                signal: signal.map(|(window, offset)| Signal {
                    window,
                    offset,
                    words,
                }),
                eager: place.map(|(window, offset)| Eager {
                    window,
                    offset,
                    bytes,
                }),
            },
            CREDIT => RecordBody::Credit,
            _ => RecordBody::Goodbye { totals },
        };
        Ok(Self {
            body,
            fences,
            credits,
        })
    }
}

/// Fills a buffer from its front.
struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.at.checked_add(bytes.len())?;
        self.out.get_mut(self.at..end)?.copy_from_slice(bytes);
        self.at = end;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(record: &Record<'_>) {
        let mut buffer = [0xee; Record::MAX];
        let length = record.encode(&mut buffer).expect("it fits");
        assert_eq!(Record::decode(&buffer[..length]).as_ref(), Ok(record));
        for cut in 0..length {
            assert!(Record::decode(&buffer[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn every_form_round_trips() {
        let totals = Totals { puts: 9, bytes: 10 };
        let signal = |words| Signal {
            window: 3,
            offset: 1 << 40,
            words,
        };
        let payload = [5; Record::EAGER_MAX];
        let eager = Eager {
            window: 1,
            offset: 77,
            bytes: &payload,
        };
        let put = |signal, eager| RecordBody::Put {
            totals,
            signal,
            eager,
        };
        for body in [
            put(None, None),
            put(Some(signal(None)), None),
            put(Some(signal(Some([1, 2, 3]))), None),
            put(Some(signal(Some([1, 2, 3]))), Some(eager)),
            put(None, Some(eager)),
            RecordBody::Credit,
            RecordBody::Goodbye { totals },
        ] {
            for counts in [vec![], vec![u32::MAX; Record::LANES_MAX]] {
                round_trip(&Record {
                    body,
                    fences: Vec::new(),
                    credits: counts,
                });
            }
        }
        let all = vec![7; Record::LANES_MAX];
        round_trip(&Record {
            body: put(Some(signal(Some([1, 2, 3]))), None),
            fences: all.clone(),
            credits: all,
        });
    }

    #[test]
    fn what_is_too_long_is_not_cut() {
        let payload = [5; Record::MAX];
        let record = Record {
            body: RecordBody::Put {
                totals: Totals::default(),
                signal: None,
                eager: Some(Eager {
                    window: 0,
                    offset: 0,
                    bytes: &payload,
                }),
            },
            fences: Vec::new(),
            credits: Vec::new(),
        };
        assert_eq!(record.encode(&mut [0; Record::MAX]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..Record::MAX)) {
            if let Ok(record) = Record::decode(&bytes) {
                let mut buffer = [0; Record::MAX];
                let length = record.encode(&mut buffer).expect("as long as it was");
                prop_assert_eq!(&buffer[..length], &bytes[..]);
            }
        }
    }
}
