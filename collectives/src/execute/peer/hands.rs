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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use unisono_plan::Blocks;

    use super::super::shuttle::IN_SHUTTLE;
    use super::super::{Fetch, Load, Near};
    use super::*;
    use crate::arena::{Arena, INLINE};

    const ARENA: Arena = Arena {
        ranks: 2,
        depth: 8,
        slot_bytes: 64 << 10,
    };

    /// What a rank does for a call.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Exchange,
        Send(Load),
        Receive(Load),
        Put(u64),
        Take(u64),
    }

    /// One of two ranks.
    struct Rank {
        own: Own,
        peer: Peer,
        steps: VecDeque<Step>,
        /// Puts that have come: where they lie, their bytes, and what their message says.
        come: VecDeque<(u64, u64, [u64; 2])>,
        /// Credits that have come.
        credits: u64,
    }

    fn rank(rank: u32) -> Rank {
        let own = Own::new(rank, ARENA).that_swaps(true);
        let [signal, slots] = [1, 2].map(|part| part << (40 + rank));
        let [far_signal, far_slots] = [1, 2].map(|part| part << (41 - rank));
        let way = Way::Mapped {
            signal: far_signal << 4,
            slots: far_slots,
            bell: 0,
            inline: true,
            fetch: Fetch::default(),
        };
        let near = Near {
            signal: signal << 4,
            signal_host: signal << 4,
            slots,
            plain: true,
            ..Near::default()
        };
        let mut peer = Peer::new(1 - rank, way, near);
        peer.set_lines(&own);
        Rank {
            own,
            peer,
            steps: VecDeque::new(),
            come: VecDeque::new(),
            credits: 0,
        }
    }

    impl Rank {
        /// Does the next step, if it can, with what the other has; what is put is kept `apart` from what lies in memory.
        fn go_on(&mut self, other: &mut Rank, lies: &mut Vec<(u64, u64)>) -> bool {
            let Some(step) = self.steps.front().copied() else {
                return false;
            };
            match step {
                Step::Exchange => self.peer.swap_slots(&self.own),
                Step::Send(load) => self.peer.send_message(load, false),
                Step::Receive(load) => self.peer.receive_message(load),
                Step::Put(bytes) => {
                    let rooms = self.peer.rooms_of(&self.own, bytes);
                    if let Some(credits) = self.peer.lacks_credits(&self.own, rooms) {
                        if credits > self.credits {
                            return false;
                        }
                        self.peer.have_credits(credits);
                    }
                    let room = self.peer.room(&self.own, bytes);
                    let place = self.peer.next_slot(&self.own, room);
                    let says = *self.peer.says();
                    self.peer.sent += 1;
                    if bytes > INLINE {
                        let is_apart =
                            |&(at, long): &(u64, u64)| place >= at + long || at >= place + bytes;
                        assert!(lies.iter().all(is_apart), "{bytes} B at {place:x}");
                        lies.push((place, bytes));
                    }
                    other.come.push_back((place, bytes, says));
                }
                Step::Take(bytes) => {
                    let Some((place, put, says)) = self.come.pop_front() else {
                        return false;
                    };
                    assert_eq!(put, bytes);
                    self.peer.take(&self.own, Blocks::NONE, bytes);
                    if says == IN_SHUTTLE {
                        self.peer.hear(says);
                    }
                    if bytes > INLINE {
                        assert_eq!(self.peer.current_slot(&self.own), place);
                        lies.retain(|&(at, _)| at != place);
                    }
                    other.credits += u64::from(self.peer.give_back(&self.own));
                }
            }
            self.steps.pop_front();
            true
        }
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 = (self.0)
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end
        }
    }

    /// Elsewhere nothing changes hands: what is the first put needs room like all others, and so does what a peer is told of
    /// later.
    #[test]
    fn who_shares_no_memory_has_no_more_room() {
        let mut rank = rank(0);
        if let Way::Mapped { inline, .. } = &mut rank.peer.way {
            *inline = false;
        }
        rank.peer.swap_slots(&rank.own);
        let rooms = rank.peer.rooms_of(&rank.own, ARENA.slot_bytes);
        assert_eq!(rooms, ARENA.depth);
    }

    /// Exchanges, calls in which one puts, and messages, in any order and at any pace: both ends know where each put lies,
    /// none is written where another still lies, and nobody waits for ever.
    #[test]
    fn all_puts_find_room_of_their_own() {
        const CALLS: usize = 40_000;
        let mut random = Random(3);
        let mut ranks = [rank(0), rank(1)];
        let [half, .., least] = ARENA.rings().map(|ring| ring.bytes);
        let sizes = [
            4,
            33,
            1024,
            1025,
            least + 64,
            half,
            half + 64,
            ARENA.slot_bytes,
        ];
        let (mut lies, mut in_shuttle) = (Vec::new(), 0);
        for _ in 0..CALLS {
            let bytes = sizes[random.below(sizes.len())];
            let puts = 1 + random.below(12);
            let from = random.below(2);
            match random.below(4) {
                0 => {
                    for rank in &mut ranks {
                        rank.steps.push_back(Step::Exchange);
                        // As many are under way as there is room for whatever credits are still to come.
                        let ahead = puts.min(2);
                        let put = (0..puts + ahead).flat_map(|at| {
                            let put = (at < puts).then_some(Step::Put(bytes));
                            put.into_iter()
                                .chain((at >= ahead).then_some(Step::Take(bytes)))
                        });
                        rank.steps.extend(put);
                    }
                }
                1 => {
                    let put = [Step::Put(bytes), Step::Take(bytes)];
                    for (rank, step) in [(from, put[0]), (1 - from, put[1])] {
                        ranks[rank].steps.extend(vec![step; puts]);
                    }
                }
                _ if bytes > INLINE => {
                    let puts = puts.min((ranks[0].own.shuttle_bytes() / bytes) as usize);
                    let load = Load {
                        stride: bytes.next_multiple_of(64),
                        puts: puts as u64,
                    };
                    let of = [
                        [Step::Send(load), Step::Put(bytes)],
                        [Step::Receive(load), Step::Take(bytes)],
                    ];
                    for (rank, [begin, step]) in [(from, of[0]), (1 - from, of[1])] {
                        ranks[rank].steps.push_back(begin);
                        ranks[rank].steps.extend(vec![step; puts]);
                    }
                }
                _ => {}
            }
            // Some calls are left for later, and one rank is ahead of the other.
            let mut patience = random.below(60);
            while patience > 0 || ranks.iter().any(|rank| rank.steps.len() > 200) {
                patience = patience.saturating_sub(1);
                let [a, b] = &mut ranks;
                let (first, second) = match random.below(3) {
                    0 => (a, b),
                    _ => (b, a),
                };
                let moved = first.go_on(second, &mut lies) || second.go_on(first, &mut lies);
                let is_over = first.steps.is_empty() && second.steps.is_empty();
                assert!(moved || is_over, "both wait for ever");
                in_shuttle += usize::from(first.peer.loaded().is_some());
            }
        }
        assert!(in_shuttle > 0, "none went by the shuttle");
    }
}
