//! Control messages: what the two ends of a link say over the communicator's authenticated channel.
//!
//! ```text
//! both      Hello    who I am this time, my rails and addresses
//! dialer    Offer    for one lane: a pair of rails, my queue pair
//! acceptor  Answer   its queue pair, connected
//!                    (the dialer probes the path)
//! dialer    Ready    it carries; my old queue pair is dead; so much had come over it
//! acceptor  Settled  so is mine; so much had come
//! ```
//!
//! An offer with a higher generation replaces the lane's queue pair, once the new one has carried a
//! packet and its answer; the old one works until then, if it still does. Both ends put the old pair
//! in error before they say what they have received over it, so nothing of it can land later, and
//! what was not received is sent again. All of these carry the sender's signature over both Hellos and
//! the message, so that a queue pair belongs to the rank that both ends mean.

use super::address::{layer, layer_code};
use super::{Fields, RAILS_MAX, WireError};
use crate::nic::{Gid, LinkLayer};

/// Bytes of the longest control message.
pub(crate) const CONTROL_MAX: usize = 8 << 10;
/// Bytes of a signature.
pub(crate) const SIGNATURE: usize = 64;
/// Addresses that one rail offers, at most.
pub(crate) const GIDS_MAX: usize = 16;

const MAGIC: u32 = 0x4d44_5243;
const VERSION: u8 = 1;
const NAME_MAX: usize = 32;

/// A control message between two incarnations of a link's ends: what was meant for an earlier one is
/// dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) from: u64,
    /// 0 in a Hello.
    pub(crate) to: u64,
    pub(crate) control: Control,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Hello(Hello),
    Offer(Offer),
    Answer(Answer),
    Ready(Count),
    Settled(Count),
    /// This lane's queue pair is dead here.
    Down {
        lane: u8,
        generation: u32,
    },
    /// This end has failed or was aborted.
    GaveUp,
}

/// One end, before anything stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) queue_pairs: u8,
    /// Messages that may be on their way to this end, on each lane.
    pub(crate) credits: u32,
    pub(crate) rails: Vec<PeerRail>,
}

/// A rail, to the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerRail {
    pub(crate) name: String,
    pub(crate) layer: LinkLayer,
    /// As an `ibv_mtu`.
    pub(crate) mtu: u8,
    pub(crate) lid: u16,
    pub(crate) bytes_per_second: u64,
    pub(crate) gids: Vec<Gid>,
}

/// A queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) number: u32,
    /// Its first packet number: 24 bits.
    pub(crate) start: u32,
}

/// A lane's next queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) lane: u8,
    pub(crate) generation: u32,
    /// The dialer's and the acceptor's, by their places in the Hellos; and so the addresses.
    pub(crate) rails: [u8; 2],
    pub(crate) gids: [u8; 2],
    pub(crate) end: End,
    pub(crate) signature: [u8; SIGNATURE],
}

/// The acceptor's queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) lane: u8,
    pub(crate) generation: u32,
    pub(crate) end: End,
    pub(crate) signature: [u8; SIGNATURE],
}

/// Messages that an end has received on a lane since the link came up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) lane: u8,
    pub(crate) generation: u32,
    pub(crate) received: u64,
    pub(crate) signature: [u8; SIGNATURE],
}

/// What a signature covers: who speaks to whom in which channel, both Hellos, and the message.
pub(crate) fn transcript(
    channel: u64,
    [signer, peer]: [u32; 2],
    [dialer, acceptor]: [&[u8]; 2],
    message: &Message,
) -> Vec<u8> {
    let mut out = b"unisono roce 1\0".to_vec();
    out.extend(channel.to_le_bytes());
    out.extend(signer.to_le_bytes());
    out.extend(peer.to_le_bytes());
    for hello in [dialer, acceptor] {
        out.extend((hello.len() as u64).to_le_bytes());
        out.extend(hello);
    }
    let mut unsigned = message.clone();
    if let Some(signature) = unsigned.signature_mut() {
        *signature = [0; SIGNATURE];
    }
    out.extend(unsigned.encode());
    out
}

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_le_bytes().to_vec();
        let kind = match &self.control {
            Control::Hello(_) => 1,
            Control::Offer(_) => 2,
            Control::Answer(_) => 3,
            Control::Ready(_) => 4,
            Control::Settled(_) => 5,
            Control::Down { .. } => 6,
            Control::GaveUp => 7,
        };
        out.extend([VERSION, kind]);
        out.extend(self.from.to_le_bytes());
        out.extend(self.to.to_le_bytes());
        match &self.control {
            Control::Hello(hello) => hello.encode(&mut out),
            Control::Offer(offer) => {
                lane(&mut out, offer.lane, offer.generation);
                out.extend(offer.rails);
                out.extend(offer.gids);
                offer.end.encode(&mut out);
                out.extend(offer.signature);
            }
            Control::Answer(answer) => {
                lane(&mut out, answer.lane, answer.generation);
                answer.end.encode(&mut out);
                out.extend(answer.signature);
            }
            Control::Ready(count) | Control::Settled(count) => {
                lane(&mut out, count.lane, count.generation);
                out.extend(count.received.to_le_bytes());
                out.extend(count.signature);
            }
            Control::Down {
                lane: number,
                generation,
            } => lane(&mut out, *number, *generation),
            Control::GaveUp => {}
        }
        out
    }

    /// The signature, if this message carries one.
    pub(crate) const fn signature(&self) -> Option<&[u8; SIGNATURE]> {
        match &self.control {
            Control::Offer(offer) => Some(&offer.signature),
            Control::Answer(answer) => Some(&answer.signature),
            Control::Ready(count) | Control::Settled(count) => Some(&count.signature),
            Control::Hello(_) | Control::Down { .. } | Control::GaveUp => None,
        }
    }

    /// As [`signature`](Self::signature), to write it.
    pub(crate) const fn signature_mut(&mut self) -> Option<&mut [u8; SIGNATURE]> {
        match &mut self.control {
            Control::Offer(offer) => Some(&mut offer.signature),
            Control::Answer(answer) => Some(&mut answer.signature),
            Control::Ready(count) | Control::Settled(count) => Some(&mut count.signature),
            Control::Hello(_) | Control::Down { .. } | Control::GaveUp => None,
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut fields = Fields(bytes);
        if fields.u32("magic")? != MAGIC {
            return Err(WireError::Magic);
        }
        match fields.u8("version")? {
            VERSION => {}
            other => return Err(WireError::Version(u16::from(other))),
        }
        let kind = fields.u8("kind")?;
        let (from, to) = (fields.u64("from")?, fields.u64("to")?);
        let control = match kind {
            1 => Control::Hello(Hello::decode(&mut fields)?),
            2 => Control::Offer(Offer {
                lane: fields.u8("lane")?,
                generation: fields.u32("generation")?,
                rails: fields.take("rails")?,
                gids: fields.take("addresses")?,
                end: End::decode(&mut fields)?,
                signature: fields.take("signature")?,
            }),
            3 => Control::Answer(Answer {
                lane: fields.u8("lane")?,
                generation: fields.u32("generation")?,
                end: End::decode(&mut fields)?,
                signature: fields.take("signature")?,
            }),
            4 => Control::Ready(Count::decode(&mut fields)?),
            5 => Control::Settled(Count::decode(&mut fields)?),
            6 => Control::Down {
                lane: fields.u8("lane")?,
                generation: fields.u32("generation")?,
            },
            7 => Control::GaveUp,
            _ => return Err(WireError::Field("kind")),
        };
        fields.end()?;
        Ok(Self { from, to, control })
    }
}

fn lane(out: &mut Vec<u8>, lane: u8, generation: u32) {
    out.push(lane);
    out.extend(generation.to_le_bytes());
}

impl End {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.number.to_le_bytes());
        out.extend(self.start.to_le_bytes());
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Self, WireError> {
        let (number, start) = (fields.u32("queue pair")?, fields.u32("start")?);
        if number >> 24 != 0 || start >> 24 != 0 {
            return Err(WireError::Field("queue pair"));
        }
        Ok(Self { number, start })
    }
}

impl Count {
    fn decode(fields: &mut Fields<'_>) -> Result<Self, WireError> {
        Ok(Self {
            lane: fields.u8("lane")?,
            generation: fields.u32("generation")?,
            received: fields.u64("received")?,
            signature: fields.take("signature")?,
        })
    }
}

impl Hello {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.queue_pairs);
        out.extend(self.credits.to_le_bytes());
        out.push(self.rails.len() as u8); // at most RAILS_MAX
        for rail in &self.rails {
            let name = rail.name.as_bytes();
            let name = &name[..name.len().min(NAME_MAX)];
            out.push(name.len() as u8);
            out.extend(name);
            out.extend([layer_code(rail.layer), rail.mtu]);
            out.extend(rail.lid.to_le_bytes());
            out.extend(rail.bytes_per_second.to_le_bytes());
            out.push(rail.gids.len().min(GIDS_MAX) as u8);
            out.extend(rail.gids.iter().take(GIDS_MAX).flat_map(|gid| gid.0));
        }
    }

    fn decode(fields: &mut Fields<'_>) -> Result<Self, WireError> {
        let queue_pairs = fields.u8("queue pairs")?;
        let credits = fields.u32("credits")?;
        let count = usize::from(fields.u8("rails")?);
        if queue_pairs == 0 || credits < 8 || count == 0 || count > RAILS_MAX {
            return Err(WireError::Field("rails"));
        }
        let rails = (0..count)
            .map(|_| PeerRail::decode(fields))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            queue_pairs,
            credits,
            rails,
        })
    }
}

impl PeerRail {
    fn decode(fields: &mut Fields<'_>) -> Result<Self, WireError> {
        let length = usize::from(fields.u8("name")?);
        if length > NAME_MAX {
            return Err(WireError::Field("name"));
        }
        let name = std::str::from_utf8(fields.bytes(length, "name")?);
        let name = name.map_err(|_| WireError::Field("name"))?.to_owned();
        let layer = layer(fields.u8("link layer")?)?;
        let mtu = fields.u8("mtu")?;
        if !(1..=5).contains(&mtu) {
            return Err(WireError::Field("mtu"));
        }
        let lid = fields.u16("lid")?;
        let bytes_per_second = fields.u64("rate")?;
        let count = usize::from(fields.u8("addresses")?);
        if count == 0 || count > GIDS_MAX {
            return Err(WireError::Field("addresses"));
        }
        let gids = (0..count)
            .map(|_| fields.take("addresses").map(Gid))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            name,
            layer,
            mtu,
            lid,
            bytes_per_second,
            gids,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello(rails: usize, gids: usize) -> Hello {
        Hello {
            queue_pairs: 2,
            credits: 32,
            rails: vec![
                PeerRail {
                    name: "a device with a long name, 32 b.".to_owned(),
                    layer: LinkLayer::Ethernet,
                    mtu: 5,
                    lid: 9,
                    bytes_per_second: 1 << 40,
                    gids: vec![Gid([3; 16]); gids],
                };
                rails
            ],
        }
    }

    fn all() -> Vec<Control> {
        let end = End {
            number: 0xff_ffff,
            start: 3,
        };
        let count = Count {
            lane: 1,
            generation: 2,
            received: u64::MAX,
            signature: [9; SIGNATURE],
        };
        vec![
            Control::Hello(hello(1, 1)),
            Control::Hello(hello(RAILS_MAX, GIDS_MAX)),
            Control::Offer(Offer {
                lane: 1,
                generation: 2,
                rails: [3, 4],
                gids: [5, 6],
                end,
                signature: [9; SIGNATURE],
            }),
            Control::Answer(Answer {
                lane: 1,
                generation: 2,
                end,
                signature: [9; SIGNATURE],
            }),
            Control::Ready(count),
            Control::Settled(count),
            Control::Down {
                lane: 1,
                generation: 2,
            },
            Control::GaveUp,
        ]
    }

    #[test]
    fn every_message_round_trips_fits_and_may_not_be_cut() {
        for control in all() {
            let message = Message {
                from: 1,
                to: 2,
                control,
            };
            let bytes = message.encode();
            assert!(bytes.len() <= CONTROL_MAX);
            assert_eq!(Message::decode(&bytes), Ok(message));
            for cut in (0..bytes.len()).step_by(7) {
                assert!(Message::decode(&bytes[..cut]).is_err());
            }
        }
    }

    #[test]
    fn a_transcript_covers_all_but_the_signature() {
        let of = |channel, ranks, hellos: [&[u8]; 2], control: &Control| {
            let message = Message {
                from: 1,
                to: 2,
                control: control.clone(),
            };
            transcript(channel, ranks, hellos, &message)
        };
        let controls = all();
        let base = of(7, [0, 1], [b"a", b"b"], &controls[3]);
        assert_ne!(base, of(8, [0, 1], [b"a", b"b"], &controls[3]));
        assert_ne!(base, of(7, [1, 0], [b"a", b"b"], &controls[3]));
        assert_ne!(base, of(7, [0, 1], [b"ab", b""], &controls[3]));
        assert_ne!(base, of(7, [0, 1], [b"a", b"b"], &controls[4]));
        assert_ne!(
            of(7, [0, 1], [b"a", b"b"], &controls[4]),
            of(7, [0, 1], [b"a", b"b"], &controls[5])
        );
        let mut other = controls[3].clone();
        if let Control::Answer(answer) = &mut other {
            answer.signature = [1; SIGNATURE];
        }
        assert_eq!(base, of(7, [0, 1], [b"a", b"b"], &other));
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = Message::decode(&bytes);
        }

        #[test]
        fn a_changed_byte_is_another_message_or_none(
            which in 0usize..8, at: prop::sample::Index, change in 1u8..,
        ) {
            let message = Message { from: 1, to: 2, control: all().swap_remove(which) };
            let mut bytes = message.encode();
            let at = at.index(bytes.len());
            bytes[at] ^= change;
            if let Ok(other) = Message::decode(&bytes) {
                prop_assert_ne!(&other, &message);
                prop_assert_eq!(other.encode(), bytes);
            }
        }
    }
}
