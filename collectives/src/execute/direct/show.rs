//! Puts that are shown: told of once by their flag, and once more by its twin for those who share this rank's core.
#![allow(
    unsafe_code,
    reason = "raises flags, and looks at them, at the addresses of arenas"
)]

use super::compute::copy;
use super::flag;
use super::run::Bound;
use super::steps::has_room;
use crate::execute::common::Common;
use crate::execute::peer::{Line, Own, Peer, Way};

impl Common {
    /// Whether there is room to show a peer so many bytes.
    #[inline]
    pub(super) fn has_room_to_show(&mut self, to: u32, bytes: u32) -> bool {
        let own = &self.own;
        let peer = &mut self.peers[to as usize];
        let rooms = peer.rooms_to_show(own, bytes.into());
        has_room(own, peer, rooms)
    }

    /// Where so many bytes that are shown next are to be written: all others have room for them.
    #[inline]
    pub(super) fn show(&self, bytes: u32) -> u64 {
        let itself = &self.peers[self.own.rank as usize];
        itself.shows_next(&self.own, bytes.into()).0
    }

    /// The flag that tells of it.
    pub(super) fn shows_by(&self) -> Line {
        let itself = &self.peers[self.own.rank as usize];
        itself.shown_next(&self.own)
    }

    /// Tells all, by the next flag, of what was written to be shown, and lies at `src` too, if that is not the same place.
    #[inline]
    pub(super) fn tell(
        &mut self,
        op: &Bound<'_>,
        Line { flag, counter }: Line,
        src: u64,
        bytes: u32,
    ) {
        let own = &self.own;
        let itself = &mut self.peers[own.rank as usize];
        itself.fetch_to_show(own, bytes.into());
        // SAFETY: both are of this rank's own arena; the lane's lock is held and its stream is idle.
        unsafe { flag::raise(flag, counter, Some(op.words)) };
        if own.twins && op.direct.is_alike && u64::from(bytes) <= own.small_bytes() {
            tell_twin(own, itself, op.words, src, bytes);
        }
        itself.has_shown_all();
        for peer in &mut self.peers {
            if let Way::Mapped { .. } = peer.way {
                peer.sent += 1;
                peer.signed = op.number;
            }
        }
        self.bells.note_all();
    }
}

/// Shows once more what lies at `src`, is short and was told of just now, for those who share this rank's core.
#[inline]
fn tell_twin(own: &Own, itself: &Peer, words: &[u64; 3], src: u64, bytes: u32) {
    itself.fetch_twin(own);
    let (Line { flag, counter }, place) = itself.shown_small(own, bytes.into(), true);
    if bytes > 0 {
        // SAFETY: as for a copy by itself; the twin's place is given back with the flag's.
        unsafe { copy(place, src, bytes) };
    }
    // SAFETY: as for the flag.
    unsafe { flag::raise_twin(flag, counter, words) };
}

/// Whether a peer has shown its next group, with these words.
#[inline(always)]
pub(super) fn is_shown(own: &Own, peer: &Peer, words: Option<&[u64; 3]>) -> bool {
    is_told(peer.shown_next(own), words)
}

/// Whether what a peer shows is told of by this line, with these words.
#[inline(always)]
pub(super) fn is_told(Line { flag, counter }: Line, words: Option<&[u64; 3]>) -> bool {
    // SAFETY: the flag is in the peer's arena, which the lane keeps imported; else as in `has_come`.
    unsafe { flag::pass_next(flag, counter, words) }
}

#[cfg(test)]
mod tests {
    use unisono_plan::Blocks;

    use super::*;
    use crate::arena::Arena;
    use crate::execute::peer::{Fetch, Near};

    /// Groups of all short lengths, two rounds of them and more. Of each third the flag alone tells, as if a stream had shown
    /// it: its twin then says nothing, though it has told of one of the round before.
    #[test]
    fn what_is_told_of_twice_is_taken_by_the_twin_and_else_by_the_flag() {
        let arena = Arena {
            ranks: 3,
            depth: 8,
            slot_bytes: 128 << 10,
        };
        let zeros = |bytes: u64| vec![0_u64; bytes as usize / 8];
        let memory = || (zeros(arena.signal_bytes()), zeros(arena.slots_bytes()));
        let [(mut signal, mut slots), (mut others, _)] = [memory(), memory()];
        let address = |words: &mut Vec<u64>| words.as_mut_ptr() as u64;
        let (signal, slots, others) = (
            address(&mut signal),
            address(&mut slots),
            address(&mut others),
        );
        let near = |signal, slots| Near {
            signal,
            slots,
            signal_host: signal,
            plain: true,
            ..Near::default()
        };
        let own = |rank| {
            Own::new(rank, arena)
                .that_swaps(true)
                .that_takes_turns(true)
        };
        let (sender, reader) = (own(1), own(0));
        assert!(sender.twins && sender.small_bytes() >= 1000);
        let mut itself = Peer::new(1, Way::Own, near(signal, slots));
        itself.set_lines(&sender);
        let way = Way::Mapped {
            signal,
            slots,
            bell: 0,
            inline: true,
            fetch: Fetch::default(),
        };
        let mut peer = Peer::new(1, way, near(others, 0));
        peer.set_lines(&reader);
        for group in 0..u64::from(arena.data_flags()) * 5 / 2 {
            let bytes = [4, 32, 33, 1000][group as usize % 4];
            let words = [group, 2, 3];
            let data = vec![group as u8; bytes as usize];
            let (place, Line { flag, counter }) = itself.shows_next(&sender, bytes);
            // SAFETY: all of it is of these vectors, which stay.
            unsafe {
                copy(place, data.as_ptr() as u64, bytes as u32);
                flag::raise(flag, counter, Some(&words));
            }
            let is_twice = group % 3 != 0;
            if is_twice {
                tell_twin(&sender, &itself, &words, data.as_ptr() as u64, bytes as u32);
            }
            itself.has_shown_all();
            let (twin, lies) = peer.shown_small(&reader, bytes, true);
            assert_eq!(is_told(twin, Some(&words)), is_twice, "group {group}");
            if is_twice {
                peer.take_shown_at(lies);
                assert_ne!(peer.current_slot(&reader), place);
            } else {
                assert!(is_shown(&reader, &peer, Some(&words)));
                peer.take_shown(&reader, Blocks::NONE, bytes);
            }
            let taken = peer.current_slot(&reader) as *const u8;
            // SAFETY: as above.
            let taken = unsafe { std::slice::from_raw_parts(taken, bytes as usize) };
            assert_eq!(taken, data, "group {group}");
        }
    }
}
