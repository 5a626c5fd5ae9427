//! Slots that change hands.
//!
//! Who reads what another core has written takes the lines over: on processors that hand a modified line on to its reader
//! ([`unisono_copy::hands_lines_on`]) they are then in the reader's cache, its own. To write them again the sender must
//! fetch them back, which takes as long as the message itself; the reader could write them at once. So in a call in which
//! two ranks put each other data each fills the slots, and the small places, that it has read before.
//!
//! Both swap when such a call begins, each by its own count, and begin with the first slot again. No word is needed for
//! it. What a rank then fills it has read itself: in the calls before it has waited for all that was put to it, and
//! a call ends when all of it was used. What it has filled before it no longer writes, so that the other may read it for as
//! long as it likes. And it swaps again only in a later call of the kind, for which the other has swapped before it put
//! the data that this rank has waited for: by then that one was through with the calls before, hence with what it read.
//!
//! Flags are raised where they ever were, and credits count as they did: only a put that takes a slot for the first
//! time since needs none.

use super::{Own, Peer, Room, Way};

/// Who fills which slots, and since when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hands {
    /// This rank fills those that the peer filled at first, in its own memory, and the peer those in the peer's.
    swapped: bool,
    /// Puts before that, each way.
    sent: u64,
    received: u64,
}

impl Peer {
    /// A call begins in which both put each other data.
    #[inline]
    pub(in crate::execute) fn swap_slots(&mut self, own: &Own) {
        if own.swaps && self.shares() {
            self.hands = Hands {
                swapped: !self.hands.swapped,
                sent: self.sent,
                // Signals that are owed come before.
                received: self.received + self.owed.len() as u64,
            };
        }
    }

    /// Puts since slots have changed hands last.
    #[inline]
    pub(super) fn filled(&self) -> u64 {
        self.sent - self.hands.sent
    }

    /// The same of what the peer has put.
    #[inline]
    pub(super) fn taken(&self) -> u64 {
        self.received - self.hands.received
    }

    /// Whether this rank fills what the peer filled at first.
    #[inline]
    pub(super) fn has_swapped(&self) -> bool {
        self.hands.swapped
    }

    /// Where the next put lies, in such a room among the slots at `far` of the peer's arena, or of this rank's own.
    #[inline]
    pub(super) fn shared_filled(&self, own: &Own, room: Room, far: u64) -> u64 {
        let number = self.filled();
        match self.hands.swapped {
            false => far + own.in_shared(room, own.rank, number),
            true => self.near.slots + own.in_shared(room, self.rank, number),
        }
    }

    /// Where the next put of the peer lies, in such a room.
    #[inline]
    pub(super) fn shared_taken(&self, own: &Own, room: Room) -> u64 {
        let number = self.taken();
        match (self.hands.swapped, &self.way) {
            (true, Way::Mapped { slots, .. }) => slots + own.in_shared(room, own.rank, number),
            _ => self.near.slots + own.in_shared(room, self.rank, number),
        }
    }
}
