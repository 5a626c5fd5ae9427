//! What ranks say to each other on an open connection.

use crate::wire::codec::{Reader, Writer};

use super::Tag;

/// The body of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// A sign of life.
    Heartbeat,
    /// Everything up to this number has arrived.
    Acknowledge(u64),
    /// A message, by its number between these two ranks.
    Numbered(u64, Message),
}

/// A message that arrives once and in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// For one rank.
    Direct {
        lane: Lane,
        tag: Tag,
        bytes: Vec<u8>,
    },
    /// For all.
    Flood(Flood),
}

/// Keeps what this crate sends for itself apart from what its users send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Lane {
    /// [`Control::send`](super::Control::send).
    User,
    /// A round of [`Control::all_gather`](super::Control::all_gather).
    Gather(u32),
    /// [`shrink`](super::shrink).
    Shrink,
}

/// Something that every rank passes on to every other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flood {
    pub(super) origin: u32,
    /// Numbers the floods of their origin, from 1.
    pub(super) number: u64,
    pub(super) news: News,
}

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    Abort {
        communicator: u64,
        code: i32,
        text: String,
    },
    Dead {
        rank: u32,
        reason: String,
    },
    Left,
    Mismatch {
        communicator: u64,
        bytes: Vec<u8>,
    },
    Broadcast {
        tag: Tag,
        bytes: Vec<u8>,
    },
    /// The survivors among the members that this shrink is about are all but these.
    Survivors {
        tag: Tag,
        excluded: Vec<u32>,
    },
}

impl Body {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Body::Heartbeat => vec![0],
            Body::Acknowledge(number) => Writer::new().u8(1).u64(*number).finish(),
            Body::Numbered(number, Message::Direct { lane, tag, bytes }) => {
                let (lane, round) = match lane {
                    Lane::User => (0, 0),
                    Lane::Gather(round) => (1, *round),
                    Lane::Shrink => (2, 0),
                };
                write_tag(Writer::new().u8(2).u64(*number).u8(lane).u32(round), *tag)
                    .raw(bytes)
                    .finish()
            }
            Body::Numbered(number, Message::Flood(flood)) => {
                let writer = Writer::new()
                    .u8(3)
                    .u64(*number)
                    .u32(flood.origin)
                    .u64(flood.number);
                match &flood.news {
                    News::Abort {
                        communicator,
                        code,
                        text,
                    } => writer
                        .u8(0)
                        .u64(*communicator)
                        .u32(*code as u32)
                        .raw(text.as_bytes()),
                    News::Dead { rank, reason } => writer.u8(1).u32(*rank).raw(reason.as_bytes()),
                    News::Left => writer.u8(2),
                    News::Mismatch {
                        communicator,
                        bytes,
                    } => writer.u8(3).u64(*communicator).raw(bytes),
                    News::Broadcast { tag, bytes } => write_tag(writer.u8(4), *tag).raw(bytes),
                    News::Survivors { tag, excluded } => {
                        write_tag(writer.u8(5), *tag).ranks(excluded)
                    }
                }
                .finish()
            }
        }
    }

    /// Total: `None` for whatever is no body.
    pub(super) fn decode(bytes: &[u8]) -> Option<Body> {
        let mut reader = Reader::new(bytes);
        let body = match reader.u8()? {
            0 => Body::Heartbeat,
            1 => Body::Acknowledge(reader.u64()?),
            2 => {
                let number = reader.u64()?;
                let lane = match (reader.u8()?, reader.u32()?) {
                    (0, 0) => Lane::User,
                    (1, round) => Lane::Gather(round),
                    (2, 0) => Lane::Shrink,
                    _ => return None,
                };
                let tag = read_tag(&mut reader)?;
                Body::Numbered(
                    number,
                    Message::Direct {
                        lane,
                        tag,
                        bytes: reader.rest().to_vec(),
                    },
                )
            }
            3 => {
                let number = reader.u64()?;
                let (origin, flood) = (reader.u32()?, reader.u64()?);
                let news = read_news(&mut reader)?;
                Body::Numbered(
                    number,
                    Message::Flood(Flood {
                        origin,
                        number: flood,
                        news,
                    }),
                )
            }
            _ => return None,
        };
        reader.end(body)
    }
}

fn read_news(reader: &mut Reader<'_>) -> Option<News> {
    let text = |reader: &mut Reader<'_>| String::from_utf8(reader.rest().to_vec()).ok();
    Some(match reader.u8()? {
        0 => News::Abort {
            communicator: reader.u64()?,
            code: reader.u32()? as i32,
            text: text(reader)?,
        },
        1 => News::Dead {
            rank: reader.u32()?,
            reason: text(reader)?,
        },
        2 => News::Left,
        3 => News::Mismatch {
            communicator: reader.u64()?,
            bytes: reader.rest().to_vec(),
        },
        4 => News::Broadcast {
            tag: read_tag(reader)?,
            bytes: reader.rest().to_vec(),
        },
        5 => News::Survivors {
            tag: read_tag(reader)?,
            excluded: reader.ranks()?,
        },
        _ => return None,
    })
}

fn write_tag(writer: Writer, tag: Tag) -> Writer {
    writer.u64(tag.communicator).u64(tag.sequence)
}

fn read_tag(reader: &mut Reader<'_>) -> Option<Tag> {
    Some(Tag {
        communicator: reader.u64()?,
        sequence: reader.u64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bodies_come_back_the_same() {
        let tag = Tag {
            communicator: u64::MAX,
            sequence: 3,
        };
        let news = [
            News::Abort {
                communicator: 7,
                code: -3,
                text: "oh".to_owned(),
            },
            News::Dead {
                rank: 2,
                reason: "gone".to_owned(),
            },
            News::Left,
            News::Mismatch {
                communicator: 7,
                bytes: vec![1, 2],
            },
            News::Broadcast { tag, bytes: vec![] },
            News::Survivors {
                tag,
                excluded: vec![4, 5],
            },
        ];
        let floods = news.map(|news| {
            Message::Flood(Flood {
                origin: 4,
                number: 5,
                news,
            })
        });
        let lanes = [Lane::User, Lane::Gather(6), Lane::Shrink];
        let direct = lanes.map(|lane| Message::Direct {
            lane,
            tag,
            bytes: vec![9; 9],
        });
        let numbered = floods
            .into_iter()
            .chain(direct)
            .map(|message| Body::Numbered(8, message));
        for body in numbered.chain([Body::Heartbeat, Body::Acknowledge(9)]) {
            assert_eq!(Body::decode(&body.encode()), Some(body));
        }
    }

    proptest! {
        #[test]
        fn decoding_is_total(kind in 0..5u8, bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let bytes = [&[kind][..], &bytes].concat();
            if let Some(body) = Body::decode(&bytes) {
                prop_assert_eq!(body.encode(), bytes);
            }
        }
    }
}
