//! Puts that are *shown*: written and told of once, in memory of the sender's own, where all other ranks look and read
//! ([`unisono_plan::ir`]).
//!
//! A group of puts, one for each other rank, takes the next of the sender's own data flags, which it raises once, and lies
//! where a put of so many bytes does: in the flag's line, in a small place, in one of a ring, or in the next of the slots. All
//! of these are those of the rank's pair with itself, which nothing else uses. So of ranks that share a core the first that
//! looks brings the line there for all of them, and who shows something writes one line, however many look.
//!
//! Where cores take over the lines that they read, those who share the sender's would have to fetch it back. For them what is
//! short is told of a second time, by the flag's *twin* ([`Arena::twin`](crate::arena::Arena::twin)).
//!
//! A wait for such a flag ends with an abort of the stream alone: the line is not this rank's to raise, and who did would
//! let others take for data what never came. The streams of CPUs, which alone wait for such flags, end so.

use unisono_plan::Blocks;

use super::{Line, Own, Peer, Room, Way};
use crate::arena::Counter;

impl Peer {
    /// Groups of so many bytes for which there is room, as far as the peer is concerned: as many as have places of their own,
    /// wherever a put to that peer alone would lie. Their places never change hands.
    #[inline]
    pub(in crate::execute) fn rooms_to_show(&self, own: &Own, bytes: u64) -> u32 {
        if bytes <= own.small_bytes {
            return self.flags(own);
        }
        match own.shared_room(bytes) {
            Room::Long => own.shown_slots(),
            room => self.rooms(own, room),
        }
    }

    /// Of this rank itself: where its next group, of so many bytes, is to be written and which flag then raised.
    #[inline]
    pub(in crate::execute) fn shows_next(&self, own: &Own, bytes: u64) -> (u64, Line) {
        let place = self.shown_place(own, self.shown, bytes);
        (place, self.shown_line(own, self.shown))
    }

    /// Of this rank itself: one put of a group is done; whether it is the first of it.
    pub(in crate::execute) fn begins_group(&mut self, own: &Own) -> bool {
        let is_first = self.of_group == 0;
        self.of_group += 1;
        if self.of_group == own.arena.ranks - 1 {
            (self.of_group, self.shown) = (0, self.shown + 1);
        }
        is_first
    }

    /// Of this rank itself: a whole group is done.
    #[inline]
    pub(in crate::execute) fn has_shown_all(&mut self) {
        self.shown += 1;
    }

    /// Of this rank itself: a flag for which nobody waits, to be raised where a bell is all that is to be rung.
    pub(in crate::execute) fn nobodys(&self, own: &Own) -> Line {
        let (rank, home) = (own.rank, self.near.signal_host);
        Line {
            flag: home + own.arena.doorbell_flag(rank),
            counter: home + own.arena.counter(rank, Counter::DoorbellSignal),
        }
    }

    /// The flag that the peer raises when it shows the next put.
    pub(in crate::execute) fn shown_next(&self, own: &Own) -> Line {
        self.shown_line(own, self.shown)
    }

    /// Whether to look at twins: if there are any and the peer seems to share this rank's core. What a stream shows, or is
    /// long, raises the flag alone.
    #[inline]
    pub(in crate::execute) fn tells_twice(&self, own: &Own) -> bool {
        own.twins && self.alongside.seems_here()
    }

    /// [`take_shown`](Self::take_shown) of what is as long as a small put and lies there.
    #[inline]
    pub(in crate::execute) fn take_shown_at(&mut self, place: u64) {
        self.current = place;
        self.current_blocks = Blocks::NONE;
        self.shown += 1;
        self.received += 1;
    }

    /// The next put from the peer, which it shows, is the current one. It has these blocks, and `bytes` in all.
    #[inline]
    pub(in crate::execute) fn take_shown(&mut self, own: &Own, blocks: Blocks, bytes: u64) {
        debug_assert!(matches!(self.way, Way::Mapped { .. }));
        self.current = self.shown_place(own, self.shown, bytes);
        self.current_blocks = blocks;
        self.shown += 1;
        self.received += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::arena::{Arena, INLINE};
    use crate::execute::peer::{Fetch, Near};

    const ARENA: Arena = Arena {
        ranks: 3,
        depth: 8,
        slot_bytes: 1 << 20,
    };

    /// Where rank 1 has its arena, as all see it.
    const SIGNAL: u64 = 1 << 41;
    const SLOTS: u64 = 1 << 40;

    /// Rank 1's view of itself, and how ranks 0 and 2 see it.
    fn all() -> ((Own, Peer), [(Own, Peer); 2]) {
        let near = |signal, slots| Near {
            signal,
            slots,
            sends: slots + ARENA.sends(),
            signal_host: signal,
            plain: true,
            ..Near::default()
        };
        let sender = Own::new(1, ARENA);
        let mut itself = Peer::new(1, Way::Own, near(SIGNAL, SLOTS));
        itself.set_lines(&sender);
        let readers = [0, 2].map(|rank| {
            let way = Way::Mapped {
                signal: SIGNAL,
                slots: SLOTS,
                bell: 0,
                inline: true,
                fetch: Fetch::default(),
            };
            let own = Own::new(rank, ARENA);
            let home = u64::from(rank + 3) << 42;
            let mut peer = Peer::new(1, way, near(home, home + (1 << 41)));
            peer.set_lines(&own);
            (own, peer)
        });
        ((sender, itself), readers)
    }

    /// What rank 1 writes, and raises, is where ranks 0 and 2 look, group by group, whatever it has of bytes.
    #[test]
    fn all_find_what_is_shown() {
        let ((sender, mut itself), mut readers) = all();
        let [first, .., last] = ARENA.rings();
        for bytes in [0, 32, 33, 1024, 1025, first.bytes, 1 << 20] {
            let mut places = BTreeSet::new();
            let mut counters = BTreeSet::new();
            let groups = ARENA.data_flags();
            for group in 0..groups {
                let (place, raised) = itself.shows_next(&sender, bytes);
                let twins = itself.twin_line(&sender, group.into());
                let is_small = bytes <= sender.small_bytes;
                let twin_place = is_small.then(|| itself.shown_small(&sender, bytes, true).1);
                match group % 2 {
                    0 => itself.has_shown_all(),
                    _ => {
                        assert!(itself.begins_group(&sender));
                        assert!(!itself.begins_group(&sender), "one goes on");
                    }
                }
                counters.insert(raised.counter);
                for (own, peer) in &mut readers {
                    let awaited = peer.shown_next(own);
                    assert_eq!(awaited.flag, raised.flag);
                    let twin = peer.twin_line(own, group.into());
                    assert_eq!(twin.flag, twins.flag);
                    assert_eq!(
                        [twins.counter, twin.counter],
                        [raised.counter, awaited.counter]
                    );
                    let seen = is_small.then(|| peer.shown_small(own, bytes, true).1);
                    assert_eq!(seen, twin_place);
                    if is_small {
                        let (seen, at) = peer.shown_small(own, bytes, false);
                        assert_eq!((seen.flag, at), (raised.flag, place));
                    }
                    counters.insert(awaited.counter);
                    peer.take_shown(own, Blocks::one(0), bytes);
                    assert_eq!(peer.current_slot(own), place);
                }
                places.insert(place);
            }
            let apart = match bytes {
                0..=1024 => groups,
                1025 => last.places,
                _ if bytes == first.bytes => first.places,
                _ => ARENA.long_slots(0),
            };
            assert_eq!(places.len(), apart as usize, "round and round");
            assert_eq!(counters.len(), 3 * groups as usize, "each rank has its own");
        }
    }

    /// Nothing of it is where puts to one rank lie, or raise flags.
    #[test]
    fn nothing_else_uses_what_is_shown() {
        let ((sender, itself), _) = all();
        let mut flags = BTreeSet::new();
        // Where each begins, and where it ends.
        let mut places = BTreeSet::new();
        for peer in [0, 2] {
            flags.extend((0..ARENA.data_flags()).map(|flag| SIGNAL + ARENA.data_flag(peer, flag)));
            let small = (0..ARENA.data_flags()).map(|flag| ARENA.small(peer, flag));
            places.extend(small.map(|at| (at, at + ARENA.small_bytes())));
            let slots = (0..ARENA.depth).map(|slot| ARENA.slot(peer, slot));
            let slots = slots.flat_map(|slot| [slot, ARENA.sends() + slot]);
            places.extend(slots.map(|at| (at, at + ARENA.slot_bytes)));
            for ring in ARENA.rings() {
                let begin = (0..ring.places).map(|at| ring.place(peer, at));
                places.extend(begin.map(|at| (at, at + ring.bytes)));
            }
        }
        let mut shown = BTreeSet::new();
        let rings = ARENA.rings().map(|ring| ring.bytes);
        let kind = |bytes| (bytes > 1024).then(|| sender.shared_room(bytes));
        let sizes = [&[33, 1024, 1025, 1 << 20][..], &rings].concat();
        for group in 0..ARENA.data_flags().into() {
            assert!(!flags.contains(&itself.shown_line(&sender, group).flag));
            assert!(!flags.contains(&itself.twin_line(&sender, group).flag));
            for &bytes in &sizes {
                let at = itself.shown_place(&sender, group, bytes) - SLOTS;
                let end = at + bytes;
                assert!(end <= ARENA.slots_bytes(), "{bytes} B at {at}");
                let is_free = |&(begin, over): &(u64, u64)| end <= begin || over <= at;
                assert!(places.iter().all(is_free), "{bytes} B at {at}");
                if bytes > INLINE && bytes <= sender.small_bytes {
                    let twin = itself.shown_small(&sender, bytes, true).1 - SLOTS;
                    assert!(twin >= places.iter().map(|&(_, end)| end).max().unwrap_or(0));
                    assert!(twin >= end && twin + bytes <= ARENA.slots_bytes());
                }
                shown.insert((at, kind(bytes).map(|room| format!("{room:?}"))));
            }
        }
        // Small ones, long ones and those of each ring lie apart too.
        let starts: BTreeSet<u64> = shown.iter().map(|&(at, ..)| at).collect();
        assert_eq!(starts.len(), shown.len());
    }
}
