//! The room that a put takes in its receiver's arena, and when there is some.

use super::{Fetch, Own, Peer, Way};
use crate::arena::INLINE;

/// The room that a put takes in its receiver's arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::execute) enum Room {
    /// The rest of its flag's line.
    Line,
    /// A place for small puts.
    Small,
    /// One for those that are longer, over a posted link.
    Medium,
    /// A place of this ring, between CPUs that share memory.
    Ring(usize),
    /// There too: one of the few slots that longer puts go round in.
    Long,
    Slot,
}

impl Own {
    /// The number of the flag of a group that is shown.
    #[inline]
    pub(super) fn data_flag_of(&self, group: u64) -> u64 {
        group & u64::from(self.flags - 1)
    }

    /// The place of a medium put.
    pub(super) fn medium_of(&self, number: u64) -> u32 {
        modulo(number, self.medium_places.into()) as u32
    }

    pub(super) fn slot_of(&self, number: u64) -> u32 {
        modulo(number, self.arena.depth.into()) as u32
    }

    /// The room that a put takes between CPUs that share memory, if it is not small.
    pub(super) fn shared_room(&self, bytes: u64) -> Room {
        match (self.rings.iter()).rposition(|ring| bytes <= ring.bytes) {
            Some(ring) => Room::Ring(ring),
            None => Room::Long,
        }
    }

    /// Slots that long puts go round in that are shown: few only if all ranks count credits as those do who have as few slots
    /// for each other.
    pub(super) fn shown_slots(&self) -> u32 {
        match self.plain {
            true => self.long_slots,
            false => self.arena.depth,
        }
    }

    /// Offset, in the slots part, of a put in such a room among the slots that `peer` fills.
    pub(super) fn in_shared(&self, room: Room, peer: u32, number: u64) -> u64 {
        match room {
            Room::Ring(ring) => {
                let ring = &self.rings[ring];
                ring.place(peer, modulo(number, ring.places.into()) as u32)
            }
            _ => {
                let slot = modulo(number, self.long_slots.into()) as u32;
                self.arena.slot(peer, slot)
            }
        }
    }
}

impl Peer {
    /// The room that a put of so many bytes, either way, takes.
    #[inline]
    pub(in crate::execute) fn room(&self, own: &Own, bytes: u64) -> Room {
        let is_small = bytes <= own.small_bytes;
        match &self.way {
            Way::Mapped { inline: true, .. } if bytes <= INLINE => Room::Line,
            Way::Mapped { inline: true, .. } if is_small => Room::Small,
            Way::Mapped { inline: true, .. } if self.shares() => own.shared_room(bytes),
            Way::Posted(posted) if posted.plain && is_small => Room::Small,
            Way::Posted(posted) if posted.plain && bytes <= own.medium_bytes => Room::Medium,
            _ => Room::Slot,
        }
    }

    /// Puts that are in their rooms at most.
    #[inline]
    pub(in crate::execute) fn rooms(&self, own: &Own, room: Room) -> u32 {
        match room {
            Room::Line | Room::Small => self.flags(own),
            Room::Medium => own.medium_places,
            Room::Long => own.long_slots,
            Room::Ring(ring) => own.rings[ring].places,
            Room::Slot => own.arena.depth,
        }
    }

    /// The same as the next put goes: what is the first in its slot since slots have changed hands, or goes by the
    /// shuttle, needs but a flag.
    #[inline]
    pub(in crate::execute) fn rooms_now(&self, own: &Own, room: Room) -> u32 {
        let rooms = self.rooms(own, room);
        let needs_none = || self.filled() < u64::from(rooms) || self.loaded().is_some();
        match self.shares() && needs_none() {
            true => rooms.max(self.flags(own)),
            false => rooms,
        }
    }

    /// What the next put fills, in the peer's arena or (posted, or fetched) in this rank's own.
    #[inline]
    pub(in crate::execute) fn next_slot(&self, own: &Own, room: Room) -> u64 {
        if room != Room::Line
            && let Some(place) = self.loaded()
        {
            return place;
        }
        let slot = own.slot_of(self.sent);
        match &self.way {
            Way::Mapped { .. } if room == Room::Line => {
                self.in_line(self.flag_of(own, self.sent), true)
            }
            Way::Mapped { .. } if room == Room::Small => {
                self.small(self.flag_of(own, self.filled()), !self.has_swapped())
            }
            Way::Mapped { slots, .. } if matches!(room, Room::Ring(_) | Room::Long) => {
                self.shared_filled(own, room, *slots)
            }
            Way::Mapped { slots, fetch, .. } if !fetch.sent => {
                slots + own.arena.slot(own.rank, slot)
            }
            Way::Mapped { .. } | Way::Own | Way::Posted(_) => {
                let (arena, rank) = (&own.arena, self.rank);
                self.near.sends
                    + match room {
                        Room::Line | Room::Small => {
                            arena.small_fill(rank, self.flag_of(own, self.sent))
                        }
                        Room::Medium => arena.medium_fill(rank, own.medium_of(self.sent)),
                        Room::Ring(_) | Room::Long | Room::Slot => arena.slot(rank, slot),
                    }
            }
        }
    }

    /// The credits that the next put needs, of which `rooms` have room, if this rank has not waited for so many yet.
    #[inline]
    pub(in crate::execute) fn lacks_credits(&self, own: &Own, rooms: u32) -> Option<u64> {
        if self.slot_credits.is_some() {
            return Some(self.credits + 1);
        }
        // So many puts must be given back, of which one credit gives several: those that it gives
        // beyond them were put before this one too.
        let given = (self.sent + 1).saturating_sub(u64::from(rooms));
        let credit = self.puts_a_credit(own, self.fetch().sent);
        // The divisions are for the rare case.
        (given > self.credits * credit).then(|| {
            // Who has more rooms waits for more of them at once: of ranks that share a core each then does more at its turn.
            let together = match self.shares() && rooms >= own.arena.depth {
                true => own.credit / credit * credit,
                false => credit,
            };
            given.next_multiple_of(together).div_ceil(credit)
        })
    }

    /// Puts that are given back by one credit: each, where they are `fetched`, so that the sender knows when its memory
    /// is read no more.
    pub(super) fn puts_a_credit(&self, own: &Own, fetched: bool) -> u64 {
        match fetched {
            true => 1,
            false if self.shares() => own.shared_credit,
            false => own.credit,
        }
    }

    /// Whether both are CPUs that write each other's memory.
    pub(super) fn shares(&self) -> bool {
        matches!(self.way, Way::Mapped { inline: true, fetch, .. } if fetch == Fetch::default())
    }
}

/// A remainder: without a division where rings are of a power of two, as they are unless somebody asked for others.
#[inline]
pub(super) fn modulo(number: u64, of: u64) -> u64 {
    match of.is_power_of_two() {
        true => number & (of - 1),
        false => number % of,
    }
}
