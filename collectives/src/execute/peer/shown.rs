//! Puts that are *shown*: written once, into a slot of the sender's own, which all other ranks read
//! ([`unisono_plan::ir`]).
//!
//! The slots are those from which a rank would send to itself, which nothing else uses. What is counted are puts: a group
//! of one for each other rank has the next of the slots.

use unisono_plan::Blocks;

use super::{Near, Own, Peer, Way};

impl Own {
    /// The other ranks: puts of a group.
    fn others(&self) -> u64 {
        u64::from(self.arena.ranks.saturating_sub(1)).max(1)
    }

    /// Where so many puts were shown before: where the next is to be written, if it is the first of its group.
    pub(in crate::execute) fn shown_slot(&self, near: Near, shown: u64) -> Option<u64> {
        let (group, of_group) = (shown / self.others(), shown % self.others());
        let slot = self.arena.slot(self.rank, self.slot_of(group));
        (of_group == 0).then_some(near.sends + slot)
    }
}

impl Peer {
    /// One put more was shown, of this rank itself; or all of a group.
    pub(in crate::execute) fn has_shown(&mut self, own: &Own, whole_group: bool) {
        self.shown += if whole_group { own.others() } else { 1 };
    }

    /// The next put from the peer, which it shows, is the current one. It has these blocks.
    pub(in crate::execute) fn take_shown(&mut self, own: &Own, blocks: Blocks) {
        let Way::Mapped { slots, .. } = self.way else {
            unreachable!("what is shown is mapped");
        };
        let slot = own.arena.slot(self.rank, own.slot_of(self.shown));
        self.current = slots + own.arena.sends() + slot;
        self.current_blocks = blocks;
        self.shown += 1;
        self.received += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::execute::peer::Fetch;

    const ARENA: Arena = Arena {
        ranks: 3,
        depth: 5,
        slot_bytes: 1 << 20,
    };

    /// What rank 1 writes is where ranks 0 and 2 look, slot by slot.
    #[test]
    fn all_find_what_is_shown() {
        let slots = 1 << 40;
        let near = Near {
            sends: slots + ARENA.sends(),
            ..Near::default()
        };
        let sender = Own::new(1, ARENA);
        let mut itself = Peer::new(1, Way::Own, Near::default());
        let mut readers = [0, 2].map(|rank| {
            let way = Way::Mapped {
                signal: 0,
                slots,
                bell: 0,
                inline: true,
                fetch: Fetch::default(),
            };
            (Own::new(rank, ARENA), Peer::new(1, way, Near::default()))
        });
        let mut places = Vec::new();
        for group in 0..2 * ARENA.depth {
            let place = sender
                .shown_slot(near, itself.shown)
                .expect("a group begins");
            itself.has_shown(&sender, group % 2 == 0);
            if group % 2 == 1 {
                assert_eq!(sender.shown_slot(near, itself.shown), None, "one goes on");
                itself.has_shown(&sender, false);
            }
            for (own, peer) in &mut readers {
                peer.take_shown(own, Blocks::one(0));
                assert_eq!(peer.current_slot(own), place);
            }
            places.push(place);
        }
        let (first, again) = places.split_at(ARENA.depth as usize);
        assert_eq!(first, again, "round and round");
        let other = |slot| slots + ARENA.sends() + ARENA.slot(0, slot);
        assert!((0..ARENA.depth).all(|slot| !first.contains(&other(slot))));
    }
}
