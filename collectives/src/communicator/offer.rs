//! What the ranks of a communicator tell each other while it forms, as bytes.

use super::fabric::RankSpeed;
use super::linked::Told;
use super::recording::Records;
use super::support::Support;
use super::wire::{Reader, put_bytes};

/// What a rank tells the others in the first round.
pub(super) struct Offer {
    pub slots: u32,
    pub slot_bytes: u64,
    /// Whether it puts what is small into the lines of flags.
    pub is_plain: bool,
    /// Bytes of the cache that each of its cores has for itself, or 0.
    pub core_cache: u64,
    /// Whether slots may change hands.
    pub swaps: bool,
    pub speed: RankSpeed,
    pub support: Support,
    pub records: Records,
    /// Where its links find its bytes.
    pub linked: Told,
    /// What maps the signal part and the slots, of the device's memory and of the host's.
    pub direct: [Vec<u8>; 2],
    pub staged: [Vec<u8>; 2],
    pub bell: Vec<u8>,
    /// By what its memory is read.
    pub process: Vec<u8>,
}

impl Offer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.slots.to_le_bytes());
        out.extend_from_slice(&self.slot_bytes.to_le_bytes());
        out.push(u8::from(self.is_plain));
        out.extend_from_slice(&self.core_cache.to_le_bytes());
        out.push(u8::from(self.swaps));
        out.extend_from_slice(&self.speed.reduce.to_le_bytes());
        out.extend_from_slice(&self.speed.cores.to_le_bytes());
        self.support.put(&mut out);
        out.push(self.records.code());
        self.linked.put(&mut out);
        for bytes in self.direct.iter().chain(&self.staged) {
            put_bytes(&mut out, bytes);
        }
        put_bytes(&mut out, &self.bell);
        put_bytes(&mut out, &self.process);
        out
    }

    /// `None` if it is cut short.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        Some(Self {
            slots: reader.u32()?,
            slot_bytes: reader.u64()?,
            is_plain: reader.u8()? != 0,
            core_cache: reader.u64()?,
            swaps: reader.u8()? != 0,
            speed: RankSpeed {
                reduce: reader.u64()?,
                cores: reader.u32()?,
            },
            support: Support::parse(&mut reader)?,
            records: Records::from_code(reader.u8()?)?,
            linked: Told::parse(&mut reader)?,
            direct: [reader.bytes()?.to_vec(), reader.bytes()?.to_vec()],
            staged: [reader.bytes()?.to_vec(), reader.bytes()?.to_vec()],
            bell: reader.bytes()?.to_vec(),
            process: reader.bytes()?.to_vec(),
        })
    }
}

/// Appends the tokens of the two windows that were made for `rank`.
pub(super) fn put_tokens(out: &mut Vec<u8>, rank: u32, signal: &[u8], slots: &[u8]) {
    out.extend_from_slice(&rank.to_le_bytes());
    put_bytes(out, signal);
    put_bytes(out, slots);
}

/// The two tokens that a peer made for `rank`.
pub(super) fn find_tokens(bytes: &[u8], rank: u32) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader(bytes);
    loop {
        let (to, signal, slots) = (reader.u32()?, reader.bytes()?, reader.bytes()?);
        if to == rank {
            return Some((signal, slots));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Some bytes, as many as tokens and exports have.
    fn run() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..40)
    }

    fn offer(slots: u32, speed: (u64, u32), runs: [Vec<u8>; 6]) -> Offer {
        let [a, b, c, d, bell, process] = runs;
        let mut support = Vec::new();
        put_bytes(&mut support, &u128::from(speed.0).to_le_bytes());
        put_bytes(&mut support, b"a device");
        Offer {
            slots,
            slot_bytes: speed.0,
            is_plain: slots.is_multiple_of(2),
            core_cache: speed.0 / 3,
            swaps: slots.is_multiple_of(3),
            speed: RankSpeed {
                reduce: speed.0,
                cores: speed.1,
            },
            support: Support::parse(&mut Reader(&support)).expect("it is whole"),
            records: Records::from_code((slots % 4) as u8).expect("there are four"),
            linked: Told::parse(&mut Reader(&[1, 2, 0, 0, 0, b'a', b'b', 1, 2]))
                .expect("it is whole"),
            direct: [a, b],
            staged: [c, d],
            bell,
            process,
        }
    }

    proptest! {
        #[test]
        fn an_offer_travels_and_may_not_be_cut(
            slots: u32, speed: (u64, u32), runs in prop::array::uniform6(run()), cut: prop::sample::Index,
        ) {
            let sent = offer(slots, speed, runs);
            let bytes = sent.encode();
            let came = Offer::parse(&bytes).expect("it is whole");
            prop_assert_eq!(came.encode(), bytes.clone());
            prop_assert_eq!((came.slots, came.slot_bytes), (sent.slots, sent.slot_bytes));
            prop_assert_eq!((came.core_cache, came.swaps), (sent.core_cache, sent.swaps));
            prop_assert_eq!((came.direct, came.staged), (sent.direct, sent.staged));
            prop_assert_eq!((came.support, came.records), (sent.support, sent.records));
            prop_assert_eq!((came.bell, came.process), (sent.bell, sent.process));
            prop_assert!(Offer::parse(&bytes[..cut.index(bytes.len())]).is_none());
        }

        #[test]
        fn no_bytes_break_an_offer_or_tokens(bytes in prop::collection::vec(any::<u8>(), 0..200), rank: u32) {
            if let Some(offer) = Offer::parse(&bytes) {
                prop_assert!(offer.encode().len() <= bytes.len());
            }
            if let Some((signal, slots)) = find_tokens(&bytes, rank) {
                prop_assert!(signal.len() + slots.len() + 12 <= bytes.len());
            }
        }

        #[test]
        fn a_changed_bit_breaks_no_offer(
            slots: u32, speed: (u64, u32), runs in prop::array::uniform6(run()),
            at: prop::sample::Index, bit in 0..8_u32,
        ) {
            let mut bytes = offer(slots, speed, runs).encode();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            if let Some(other) = Offer::parse(&bytes) {
                // Nothing is read twice, nor made up.
                prop_assert!(other.encode().len() <= bytes.len() + 16);
            }
        }

        #[test]
        fn tokens_are_those_of_the_rank_and_no_garbage_behind_them_breaks_it(
            all in prop::collection::vec((run(), run()), 1..6), which: prop::sample::Index, rest in run(),
        ) {
            let mut bytes = Vec::new();
            for (rank, (signal, slots)) in (0..).zip(&all) {
                put_tokens(&mut bytes, rank, signal, slots);
            }
            let whole = bytes.len();
            bytes.extend(rest);
            let rank = which.index(all.len());
            let (signal, slots) = &all[rank];
            let found = find_tokens(&bytes, rank as u32);
            prop_assert_eq!(found, Some((&signal[..], &slots[..])));
            prop_assert_eq!(find_tokens(&bytes[..whole], all.len() as u32), None);
            let last = all.len() as u32 - 1;
            prop_assert_eq!(find_tokens(&bytes[..whole - 1], last), None);
        }
    }
}
