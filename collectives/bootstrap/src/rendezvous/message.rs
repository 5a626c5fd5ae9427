//! What ranks, leaders and the root say to each other before the table stands.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::cores::Cores;
use crate::directory::RankEntry;
use crate::error::BootstrapError;
use crate::identity::{self, NodeId};
use crate::wire::codec::{Reader, Writer};

/// A rank that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Who it is; without its payload.
    pub(crate) entry: RankEntry,
    /// How large it believes the job to be.
    pub(crate) size: u32,
    /// How much longer it waits.
    pub(crate) remaining: Duration,
}

/// One message.
#[derive(Debug)]
pub(crate) enum Message {
    /// These have come: from a rank to its leader, from a leader to the root.
    Report(Vec<Arrival>),
    /// This one has gone again.
    Retract(u32),
    /// All are there, and these are the neighbours of those that were reported; with the secret, on one node
    /// where the ranks have none.
    Answer {
        entries: Vec<RankEntry>,
        secret: Option<[u8; 32]>,
    },
    /// The job cannot start.
    Refusal(BootstrapError),
}

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Message::Report(arrivals) => {
                let write = |writer: Writer, arrival: &Arrival| {
                    let remaining =
                        u64::try_from(arrival.remaining.as_millis()).unwrap_or(u64::MAX);
                    write_entry(writer, &arrival.entry)
                        .u32(arrival.size)
                        .u64(remaining)
                };
                Writer::new().u8(1).list(arrivals, write).finish()
            }
            Message::Retract(rank) => Writer::new().u8(2).u32(*rank).finish(),
            Message::Answer { entries, secret } => {
                let writer = Writer::new().u8(3).list(entries, write_entry);
                match secret {
                    None => writer.u8(0).finish(),
                    Some(secret) => writer.u8(1).raw(secret).finish(),
                }
            }
            Message::Refusal(error) => Message::encode_refusal(error),
        }
    }

    /// The bytes of [`Message::Refusal`].
    pub(crate) fn encode_refusal(error: &BootstrapError) -> Vec<u8> {
        write_refusal(Writer::new().u8(4), error).finish()
    }

    /// Total: `None` for whatever is not a message.
    pub(crate) fn decode(body: &[u8]) -> Option<Message> {
        let mut reader = Reader::new(body);
        let message = match reader.u8()? {
            1 => Message::Report(reader.list(|reader| {
                let entry = read_entry(reader)?;
                Some(Arrival {
                    entry,
                    size: reader.u32()?,
                    remaining: Duration::from_millis(reader.u64()?),
                })
            })?),
            2 => Message::Retract(reader.u32()?),
            3 => {
                let entries = reader.list(read_entry)?;
                let secret = match reader.u8()? {
                    0 => None,
                    1 => Some(reader.array()?),
                    _ => return None,
                };
                Message::Answer { entries, secret }
            }
            4 => Message::Refusal(read_refusal(&mut reader)?),
            _ => return None,
        };
        reader.end(message)
    }
}

/// Writes an entry, payload included.
pub(crate) fn write_entry(writer: Writer, entry: &RankEntry) -> Writer {
    let writer = writer
        .u32(entry.rank)
        .raw(&entry.node.0)
        .u32(entry.pid)
        .u64(entry.start_time)
        .raw(&entry.process_scope)
        .raw(&entry.cores.id)
        .u32(entry.cores.count);
    let writer = writer.list(&entry.addresses, |writer, address| match address.ip() {
        IpAddr::V4(v4) => writer.u8(4).raw(&v4.octets()).u16(address.port()),
        IpAddr::V6(v6) => writer.u8(6).raw(&v6.octets()).u16(address.port()),
    });
    writer
        .raw(&entry.public_key)
        .bytes(entry.version.as_bytes())
        .bytes(&entry.payload)
}

/// Reads what [`write_entry`] wrote; a key that is none is refused here.
pub(crate) fn read_entry(reader: &mut Reader<'_>) -> Option<RankEntry> {
    let entry = RankEntry {
        rank: reader.u32()?,
        node: NodeId(reader.array()?),
        pid: reader.u32()?,
        start_time: reader.u64()?,
        process_scope: reader.array()?,
        cores: Cores {
            id: reader.array()?,
            count: reader.u32()?,
        },
        addresses: reader.list(|reader| {
            let ip = match reader.u8()? {
                4 => IpAddr::from(reader.array::<4>()?),
                6 => IpAddr::from(reader.array::<16>()?),
                _ => return None,
            };
            Some(SocketAddr::new(ip, reader.u16()?))
        })?,
        public_key: reader.array()?,
        version: reader.text()?,
        payload: reader.bytes()?.to_vec(),
    };
    identity::check_public_key(entry.rank, &entry.public_key).ok()?;
    Some(entry)
}

fn write_refusal(writer: Writer, error: &BootstrapError) -> Writer {
    let millis = |waited: &Duration| u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
    match error {
        BootstrapError::Missing {
            ranks,
            size,
            waited,
            root,
        } => writer
            .u8(1)
            .ranks(ranks)
            .u32(*size)
            .u64(millis(waited))
            .bytes(root.as_bytes()),
        BootstrapError::RootUnreachable {
            root,
            waited,
            last,
            missing,
        } => {
            let writer = writer.u8(2).bytes(root.as_bytes()).u64(millis(waited));
            writer.bytes(last.as_bytes()).ranks(missing)
        }
        BootstrapError::DuplicateRank {
            rank,
            first,
            second,
        } => writer
            .u8(3)
            .u32(*rank)
            .bytes(first.as_bytes())
            .bytes(second.as_bytes()),
        BootstrapError::SizeMismatch {
            rank_a,
            size_a,
            rank_b,
            size_b,
        } => writer
            .u8(4)
            .u32(*rank_a)
            .u32(*size_a)
            .u32(*rank_b)
            .u32(*size_b),
        BootstrapError::VersionMismatch {
            rank_a,
            version_a,
            rank_b,
            version_b,
        } => {
            let writer = writer.u8(5).u32(*rank_a).bytes(version_a.as_bytes());
            writer.u32(*rank_b).bytes(version_b.as_bytes())
        }
        BootstrapError::NoRoot {
            present,
            size,
            missing,
        } => writer.u8(6).u32(*present).u32(*size).ranks(missing),
        BootstrapError::NoSecret { why } => writer.u8(7).bytes(why.as_bytes()),
        BootstrapError::Refused { why } => writer.u8(8).bytes(why.as_bytes()),
        other => writer.u8(8).bytes(other.to_string().as_bytes()),
    }
}

fn read_refusal(reader: &mut Reader<'_>) -> Option<BootstrapError> {
    Some(match reader.u8()? {
        1 => BootstrapError::Missing {
            ranks: reader.ranks()?,
            size: reader.u32()?,
            waited: Duration::from_millis(reader.u64()?),
            root: reader.text()?,
        },
        2 => BootstrapError::RootUnreachable {
            root: reader.text()?,
            waited: Duration::from_millis(reader.u64()?),
            last: reader.text()?,
            missing: reader.ranks()?,
        },
        3 => BootstrapError::DuplicateRank {
            rank: reader.u32()?,
            first: reader.text()?,
            second: reader.text()?,
        },
        4 => BootstrapError::SizeMismatch {
            rank_a: reader.u32()?,
            size_a: reader.u32()?,
            rank_b: reader.u32()?,
            size_b: reader.u32()?,
        },
        5 => BootstrapError::VersionMismatch {
            rank_a: reader.u32()?,
            version_a: reader.text()?,
            rank_b: reader.u32()?,
            version_b: reader.text()?,
        },
        6 => BootstrapError::NoRoot {
            present: reader.u32()?,
            size: reader.u32()?,
            missing: reader.ranks()?,
        },
        7 => BootstrapError::NoSecret {
            why: reader.text()?,
        },
        8 => BootstrapError::Refused {
            why: reader.text()?,
        },
        _ => return None,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::identity::Prover;
    use proptest::prelude::*;

    /// An entry of a rank that does not exist.
    pub(crate) fn entry(rank: u32) -> RankEntry {
        RankEntry {
            rank,
            node: NodeId([rank as u8; 16]),
            pid: 100 + rank,
            start_time: 7,
            process_scope: [1; 16],
            cores: Cores {
                id: [2; 16],
                count: 8,
            },
            addresses: vec![
                "10.0.0.1:99".parse().unwrap(),
                "[fd00::1]:99".parse().unwrap(),
            ],
            public_key: Prover::random().unwrap().public_key(),
            version: "v".to_owned(),
            payload: b"payload".to_vec(),
        }
    }

    #[test]
    fn messages_come_back_the_same() {
        let arrival = Arrival {
            entry: entry(3),
            size: 9,
            remaining: Duration::from_millis(1234),
        };
        let second = Duration::from_secs(1);
        let text = || "text".to_owned();
        let refusals = [
            BootstrapError::Missing {
                ranks: vec![1, 2],
                size: 4,
                waited: second,
                root: text(),
            },
            BootstrapError::RootUnreachable {
                root: text(),
                waited: second,
                last: text(),
                missing: vec![0],
            },
            BootstrapError::DuplicateRank {
                rank: 1,
                first: text(),
                second: text(),
            },
            BootstrapError::SizeMismatch {
                rank_a: 0,
                size_a: 4,
                rank_b: 1,
                size_b: 5,
            },
            BootstrapError::VersionMismatch {
                rank_a: 0,
                version_a: text(),
                rank_b: 1,
                version_b: text(),
            },
            BootstrapError::NoRoot {
                present: 1,
                size: 2,
                missing: vec![1],
            },
            BootstrapError::NoSecret { why: text() },
            BootstrapError::Refused { why: text() },
        ];
        let refusals = refusals.into_iter().map(Message::Refusal);
        let others = [
            Message::Report(vec![arrival]),
            Message::Retract(7),
            Message::Answer {
                entries: vec![entry(1), entry(2)],
                secret: Some([5; 32]),
            },
            Message::Answer {
                entries: Vec::new(),
                secret: None,
            },
        ];
        for message in others.into_iter().chain(refusals) {
            let bytes = message.encode();
            assert_eq!(
                format!("{:?}", Message::decode(&bytes)),
                format!("{:?}", Some(message))
            );
            for cut in 0..bytes.len() {
                assert!(
                    Message::decode(&bytes[..cut]).is_none(),
                    "{cut} of {bytes:?}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn decoding_is_total(kind in 0..6u8, sub in 0..10u8, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let body = [&[kind, sub][..], &bytes].concat();
            if let Some(message) = Message::decode(&body) {
                prop_assert_eq!(message.encode(), body);
            }
        }
    }
}
