//! Where the flags and counters of a pair lie for the CPU, and its small puts: worked out once, as each short call
//! needs some of them.

use unisono_copy::{fetch_to_read, fetch_to_write};

use super::shuttle::Shuttle;
use super::{Fetch, Own, Peer, Room, Way, modulo};
use crate::arena::{self, COUNTER, Counter, INLINE, INLINE_OFFSET, LINE};
use crate::execute::direct::flag;

/// So many puts before one writes its lines, they are asked for: time enough for them to come, and far enough ahead of
/// the line at which the peer looks.
const AHEAD: u64 = 4;
/// So many puts before one is read, its lines are asked for.
const LATER: u64 = 3;
/// The same of puts that lie in their flags' lines, behind the next one.
const UNSEEN: u64 = 1;

fn pointer(address: u64) -> *const u8 {
    address as usize as *const u8
}

/// Addresses of what a pair has one of for each flag: those of the first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lines {
    /// Data flags in this rank's arena, and the counters of the waits for them.
    data: u64,
    waits: u64,
    /// Data flags in the peer's arena, if it is mapped, and the counters of what raises them.
    far_data: u64,
    signals: u64,
    /// Small puts, in this rank's arena and in the peer's.
    small: u64,
    far_small: u64,
    /// From one small put to the next.
    stride: u64,
    /// Both credit flags, and the counters that are this rank's.
    credit: Line,
    far_credit: Line,
    /// What the peer shows: its data flags and small puts, and their twins, the counters of the waits for both, and its
    /// slots. Of this rank itself what it shows, and the counters of what raises the flags.
    shown: ShownFrom,
    twins: ShownFrom,
    shown_counter: u64,
    shown_slots: u64,
    /// The shuttle.
    shuttle: u64,
    /// Where the peer's memory is as plain as this rank's.
    plain: Option<Plain>,
}

/// Where the first flag that tells of something lies, and the first small put of which one tells.
#[derive(Clone, Copy, Debug, Default)]
struct ShownFrom {
    flag: u64,
    small: u64,
}

impl Lines {
    /// Where the shuttle lies.
    pub(super) fn shuttle(&self) -> u64 {
        self.shuttle
    }
}

/// How small puts go between this rank and a peer whose memory is mapped and the CPU's, as its own is.
#[derive(Clone, Copy, Debug)]
pub(in crate::execute) struct Plain {
    /// Rings are of a power of two: what is left of a number is its flag's.
    mask: u64,
    /// Puts are given back by one credit for so many and one more; likewise a power of two.
    credit_mask: u64,
    /// The most bytes of a small put.
    small_bytes: u64,
    /// Rung when the peer's flags were raised.
    pub bell: u64,
}

impl Plain {
    fn of(peer: &Peer, own: &Own) -> Option<Self> {
        let (flags, credit) = (u64::from(own.flags), own.shared_credit);
        match peer.way {
            Way::Mapped {
                bell,
                inline: true,
                fetch,
                ..
            } if fetch == Fetch::default()
                && peer.slot_credits.is_none()
                && credit.is_power_of_two() =>
            {
                Some(Self {
                    mask: flags - 1,
                    credit_mask: credit - 1,
                    small_bytes: own.small_bytes,
                    bell,
                })
            }
            _ => None,
        }
    }

    /// Small puts that there is room for.
    #[inline]
    pub(in crate::execute) fn rooms(self) -> u32 {
        self.mask as u32 + 1
    }

    /// The number of the data flag of a put.
    #[inline]
    pub(in crate::execute) fn flag_of(self, number: u64) -> u32 {
        (number & self.mask) as u32
    }
}

/// A flag and this rank's counter for it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::execute) struct Line {
    pub flag: u64,
    pub counter: u64,
}

impl Peer {
    /// Works its addresses out.
    pub(in crate::execute) fn set_lines(&mut self, own: &Own) {
        let (arena, home) = (own.arena, self.near.signal_host);
        let counter = |counter| home + arena.counter(self.rank, counter);
        let (far, far_slots) = match self.way {
            Way::Mapped { signal, slots, .. } => (signal, slots),
            Way::Own | Way::Posted(_) => (0, 0),
        };
        let (shows, shows_slots, shown_counter) = match self.way {
            Way::Own => (home, self.near.slots, Counter::DataSignal(0)),
            _ => (far, far_slots, Counter::ShownWait(0)),
        };
        self.lines = Lines {
            data: home + arena.data_flag(self.rank, 0),
            waits: counter(Counter::DataWait(0)),
            far_data: far + arena.data_flag(own.rank, 0),
            signals: counter(Counter::DataSignal(0)),
            small: self.near.slots + arena.small(self.rank, 0),
            far_small: far_slots + arena.small(own.rank, 0),
            stride: arena.small_stride(),
            credit: Line {
                flag: home + arena.credit_flag(self.rank),
                counter: counter(Counter::CreditWait),
            },
            far_credit: Line {
                flag: far + arena.credit_flag(own.rank),
                counter: counter(Counter::CreditSignal),
            },
            shown: ShownFrom {
                flag: shows + arena.data_flag(self.rank, 0),
                small: shows_slots + arena.small(self.rank, 0),
            },
            twins: ShownFrom {
                flag: shows + arena.twin(0),
                small: shows_slots + arena.small_twin(0),
            },
            shown_counter: counter(shown_counter),
            shown_slots: shows_slots,
            shuttle: self.shuttle_at(own),
            plain: Plain::of(self, own),
        };
        self.shuttle = Shuttle::of(own.rank, self.rank);
        self.set_room();
    }

    /// How a put of so many bytes goes, either way, if it is a small one between plain memories.
    #[inline]
    pub(in crate::execute) fn plain(&self, bytes: u32) -> Option<Plain> {
        (self.lines.plain).filter(|plain| u64::from(bytes) <= plain.small_bytes)
    }

    /// Counts for how many small puts between plain memories there is room, as [`lacks_credits`](Self::lacks_credits) does.
    pub(super) fn set_room(&mut self) {
        self.room_until = match (&self.way, self.lines.plain) {
            (Way::Own, _) => u64::MAX,
            (_, Some(plain)) => self.credits * (plain.credit_mask + 1) + plain.mask + 1,
            (_, None) => 0,
        };
    }

    /// Whether this rank knows that there is room for the next small put between plain memories: if not, credits may have
    /// come, or it goes in another way.
    #[inline]
    pub(in crate::execute) fn has_plain_room(&self) -> bool {
        self.sent < self.room_until
    }

    /// [`give_back`](Self::give_back) between plain memories.
    #[inline]
    pub(in crate::execute) fn give_back_plainly(&mut self, plain: Plain) -> bool {
        self.released += 1;
        self.released & plain.credit_mask == 0
    }

    /// Where the next small put between plain memories is to be written.
    #[inline]
    pub(in crate::execute) fn fills_plainly(&self, plain: Plain, bytes: u32) -> u64 {
        match u64::from(bytes) <= INLINE {
            true => self.in_line(plain.flag_of(self.sent), true),
            false => self
                .loaded()
                .unwrap_or_else(|| self.small(plain.flag_of(self.filled()), !self.has_swapped())),
        }
    }

    /// Where the peer's next one lies.
    #[inline(always)]
    pub(in crate::execute) fn lies_plainly(&self, plain: Plain, bytes: u32) -> u64 {
        match u64::from(bytes) <= INLINE {
            true => self.in_line(plain.flag_of(self.received), false),
            false => self.small(plain.flag_of(self.taken()), self.has_swapped()),
        }
    }

    /// The flag that the next put of the peer raises.
    #[inline]
    pub(in crate::execute) fn awaited(&self, own: &Own) -> Line {
        self.awaits(self.next_data(own))
    }

    /// The flag of this number that the peer raises.
    #[inline]
    pub(in crate::execute) fn awaits(&self, number: u32) -> Line {
        let number = u64::from(number);
        Line {
            flag: self.lines.data + number * LINE,
            counter: self.lines.waits + number * COUNTER,
        }
    }

    /// The flag that the next put to the peer raises, over a mapped link.
    #[inline]
    pub(in crate::execute) fn raised(&self, own: &Own) -> Line {
        self.raises(self.next_flag(own))
    }

    /// The flag of this number that this rank raises, over a mapped link.
    #[inline]
    pub(in crate::execute) fn raises(&self, number: u32) -> Line {
        let number = u64::from(number);
        Line {
            flag: self.lines.far_data + number * LINE,
            counter: self.lines.signals + number * COUNTER,
        }
    }

    /// A put of so many bytes between plain memories is about to be told of: asks for the lines of one like it that comes a
    /// little later.
    #[inline]
    pub(in crate::execute) fn fetch_ahead(&self, plain: Plain, bytes: u64) {
        let flag = plain.flag_of(self.sent + AHEAD);
        fetch_to_write(pointer(self.in_line(flag, true)));
        if bytes > INLINE
            && bytes <= plain.small_bytes
            && self.filled() > 0
            && self.loaded().is_none()
        {
            let put = self.small(plain.flag_of(self.filled() + AHEAD), !self.has_swapped());
            for line in (0..bytes).step_by(LINE as usize) {
                fetch_to_write(pointer(put + line));
            }
        }
    }

    /// A put of so many bytes was taken: asks for the lines of one like it that comes a little later, if that is there; false
    /// if it is seen not to be. Then it asks for none: lines that the peer is about to write would be taken from it, as that of
    /// the flag is, which tells.
    ///
    /// What lies in its flag's line is asked for unseen, as to look is to wait for it: on a Xeon with AMX-FP16 reduces of 4 B
    /// of two ranks took twice as long with a look. And no further ahead than the second next: with the third, broadcasts of
    /// 4 B took 1.3 to 1.7 times as long. Nor where ranks share cores that take over what they read: there a root takes from
    /// many, and reduces of 4 B of four ranks took 1.3 times as long so (`cargo xtask peers -- --dirty --ranks 2,4 --ops
    /// reduce,broadcast --sizes 4`, in turns with builds that differ in this).
    #[inline]
    #[allow(unsafe_code, reason = "reads a flag")]
    pub(in crate::execute) fn fetch_later(&self, own: &Own, plain: Plain, bytes: u32) -> bool {
        if u64::from(bytes) <= INLINE {
            if own.twins {
                return true;
            }
            fetch_to_read(pointer(
                self.awaits(plain.flag_of(self.received + UNSEEN)).flag,
            ));
            return true;
        }
        if self.brought().is_some() {
            return true;
        }
        let later = plain.flag_of(self.received + LATER - 1);
        let Line { flag, counter } = self.awaits(later);
        // SAFETY: of this rank's own arena; the lane's lock is held and its stream is idle.
        let is_there = unsafe { flag::is_raised(flag, counter) };
        if is_there {
            let later = plain.flag_of(self.taken() + LATER - 1);
            let put = self.small(later, self.has_swapped());
            for line in (0..u64::from(bytes)).step_by(LINE as usize) {
                fetch_to_read(pointer(put + line));
            }
        }
        is_there
    }

    /// The flag that is raised for the group of this number of what the peer, or this rank itself, shows.
    #[inline]
    pub(in crate::execute) fn shown_line(&self, own: &Own, group: u64) -> Line {
        self.shown_by(own, self.lines.shown, group, 0).0
    }

    /// The twin of that flag, which the same counter counts.
    #[inline]
    pub(in crate::execute) fn twin_line(&self, own: &Own, group: u64) -> Line {
        self.shown_by(own, self.lines.twins, group, 0).0
    }

    /// Of the next group, of no more bytes than a small put, the flag and where it lies, or the `twin` of both.
    #[inline]
    pub(in crate::execute) fn shown_small(&self, own: &Own, bytes: u64, twin: bool) -> (Line, u64) {
        debug_assert!(bytes <= own.small_bytes);
        let from = match twin {
            true => self.lines.twins,
            false => self.lines.shown,
        };
        self.shown_by(own, from, self.shown, bytes)
    }

    /// The flag of a group, by where the first is, and where the group lies if it is no longer than a small put.
    #[inline(always)]
    fn shown_by(&self, own: &Own, first: ShownFrom, group: u64, bytes: u64) -> (Line, u64) {
        let number = own.data_flag_of(group);
        let flag = first.flag + number * LINE;
        let counter = self.lines.shown_counter + number * COUNTER;
        let place = match bytes <= INLINE {
            true => flag + INLINE_OFFSET,
            false => first.small + number * self.lines.stride,
        };
        (Line { flag, counter }, place)
    }

    /// Where a group of so many bytes lies that the peer, or this rank itself, shows.
    #[inline]
    pub(in crate::execute) fn shown_place(&self, own: &Own, group: u64, bytes: u64) -> u64 {
        if bytes <= own.small_bytes {
            return self.shown_by(own, self.lines.shown, group, bytes).1;
        }
        self.lines.shown_slots
            + match own.shared_room(bytes) {
                Room::Long => {
                    let slot = modulo(group, own.shown_slots().into()) as u32;
                    own.arena.slot(self.rank, slot)
                }
                room => own.in_shared(room, self.rank, group),
            }
    }

    /// The words beside all flags that the peer has raised and this rank has not waited for, where ranks show each other what
    /// they put.
    #[allow(unsafe_code, reason = "reads flags")]
    pub(in crate::execute) fn raised_words(&self, own: &Own) -> impl Iterator<Item = [u64; 3]> {
        let is_seen = own.shows && matches!(self.way, Way::Mapped { .. });
        let flags = if is_seen { own.flags } else { 0 };
        let lines = (0..flags).flat_map(|flag| {
            let shown = self.shown_line(own, flag.into());
            [self.awaits(flag), shown]
        });
        // SAFETY: of this rank's own arena and of the peer's, which the lane keeps imported and a CPU works in; the lane's lock
        // is held. A plugin's stream may be at a counter nevertheless, which both read and write as one word.
        let raised = lines.filter(|line| unsafe { flag::is_raised(line.flag, line.counter) });
        raised.map(|line| {
            // Of a flag that is seen raised, all words that were written before.
            std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
            arena::words(line.flag)
        })
    }

    /// Something of so many bytes is about to be shown: asks for the lines of what comes a little later.
    #[inline]
    pub(in crate::execute) fn fetch_to_show(&self, own: &Own, bytes: u64) {
        let later = self.shown + AHEAD;
        fetch_to_write(pointer(self.shown_line(own, later).flag));
        if bytes > INLINE && bytes <= own.small_bytes {
            let place = self.shown_place(own, later, bytes);
            for line in (0..bytes).step_by(LINE as usize) {
                fetch_to_write(pointer(place + line));
            }
        }
    }

    /// The same of a twin's line, which has left the core's first cache by then.
    #[inline]
    pub(in crate::execute) fn fetch_twin(&self, own: &Own) {
        fetch_to_write(pointer(self.twin_line(own, self.shown + AHEAD).flag));
    }

    /// [`fetch_later`](Self::fetch_later) of what the peer shows.
    #[inline]
    #[allow(unsafe_code, reason = "reads a flag")]
    pub(in crate::execute) fn fetch_shown_later(&self, own: &Own, bytes: u64) {
        if bytes <= INLINE || bytes > own.small_bytes {
            return;
        }
        let later = self.shown + LATER - 1;
        let Line { flag, counter } = self.shown_line(own, later);
        // SAFETY: of the peer's arena, which the lane keeps imported, and this rank's own; the lane's lock is held and its
        // stream is idle.
        if unsafe { flag::is_raised(flag, counter) } {
            let place = self.shown_place(own, later, bytes);
            for line in (0..bytes).step_by(LINE as usize) {
                fetch_to_read(pointer(place + line));
            }
        }
    }

    /// The flag by which the peer gives credits.
    #[inline]
    pub(in crate::execute) fn credit(&self) -> Line {
        self.lines.credit
    }

    /// The flag by which this rank gives credits, over a mapped link.
    #[inline]
    pub(in crate::execute) fn given(&self) -> Line {
        self.lines.far_credit
    }

    /// Where a put with data flag `flag` lies in its line, this rank's or the peer's.
    #[inline]
    pub(super) fn in_line(&self, flag: u32, far: bool) -> u64 {
        let first = if far {
            self.lines.far_data
        } else {
            self.lines.data
        };
        first + u64::from(flag) * LINE + INLINE_OFFSET
    }

    /// Where a small put with data flag `flag` lies, of this rank's or of the peer's.
    #[inline]
    pub(super) fn small(&self, flag: u32, far: bool) -> u64 {
        let first = if far {
            self.lines.far_small
        } else {
            self.lines.small
        };
        first + u64::from(flag) * self.lines.stride
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use unisono_plan::Blocks;

    use super::*;
    use crate::arena::Arena;
    use crate::execute::peer::{Fetch, Near};

    /// Rank 2's peer 1, both with arenas at addresses of their own.
    fn peer() -> (Own, Peer) {
        let arena = Arena {
            ranks: 3,
            depth: 5,
            slot_bytes: 1 << 20,
        };
        let own = Own::new(2, arena);
        let way = Way::Mapped {
            signal: 1 << 40,
            slots: 2 << 40,
            bell: 0,
            inline: true,
            fetch: Fetch::default(),
        };
        let near = Near {
            signal: 3 << 40,
            slots: 4 << 40,
            signal_host: 3 << 40,
            plain: true,
            ..Near::default()
        };
        let mut peer = Peer::new(1, way, near);
        peer.set_lines(&own);
        (own, peer)
    }

    #[test]
    fn lines_are_where_the_arena_has_them() {
        let (own, mut peer) = peer();
        let arena = own.arena;
        let counter = |counter| (3 << 40) + arena.counter(1, counter);
        for number in 0..2 * arena.data_flags() {
            let flag = number % arena.data_flags();
            let awaited = peer.awaited(&own);
            assert_eq!(awaited.flag, (3 << 40) + arena.data_flag(1, flag));
            assert_eq!(awaited.counter, counter(Counter::DataWait(flag)));
            let raised = peer.raised(&own);
            assert_eq!(raised.flag, (1 << 40) + arena.data_flag(2, flag));
            assert_eq!(raised.counter, counter(Counter::DataSignal(flag)));
            peer.take(&own, Blocks::NONE, 0);
            peer.sent += 1;
        }
        assert_eq!(peer.credit().flag, (3 << 40) + arena.credit_flag(1));
        assert_eq!(peer.credit().counter, counter(Counter::CreditWait));
        assert_eq!(peer.given().flag, (1 << 40) + arena.credit_flag(2));
        assert_eq!(peer.given().counter, counter(Counter::CreditSignal));
    }

    /// Whatever was sent and given back.
    #[test]
    fn room_is_known_without_counting_credits() {
        let (own, mut peer) = peer();
        assert!(peer.lines.plain.is_some());
        for _ in 0..3 * own.flags {
            let lacks = peer.lacks_credits(&own, own.flags);
            assert_eq!(peer.has_plain_room(), lacks.is_none(), "{}", peer.sent);
            if let Some(credits) = lacks {
                peer.have_credits(credits);
                assert!(peer.has_plain_room());
            }
            peer.sent += 1;
        }
        let mut itself = Peer::new(own.rank, Way::Own, Near::default());
        itself.set_lines(&own);
        assert!(itself.has_plain_room(), "who shows something asks all");
    }

    /// Of a message in a window both ends count on from the same credit, whatever was put before.
    #[test]
    fn both_ends_skip_what_a_credit_gives_back() {
        for before in 0..9 {
            let (own, mut peer) = peer();
            let credit = peer.puts_a_credit(&own, false);
            for _ in 0..=before {
                peer.sent += 1;
                peer.take(&own, Blocks::NONE, 0);
            }
            let credits = (0..before).filter(|_| peer.give_back(&own)).count() as u64;
            let needed = peer.skip_sent(&own);
            peer.skip_received(&own);
            assert_eq!(needed, credits + 1, "{before}");
            assert_eq!(
                (peer.sent, peer.received),
                (needed * credit, needed * credit)
            );
            assert!(peer.holds_nothing() && peer.sent.is_multiple_of(credit));
            peer.have_credits(needed);
            assert_eq!(peer.lacks_credits(&own, 2), None);
        }
    }

    /// What is filled in the peer's arena by one is where the other looks in its own.
    #[test]
    fn both_ends_find_a_put_by_its_bytes() {
        let (own, mut peer) = peer();
        let arena = own.arena;
        for (number, bytes) in [(0, 32), (1, 33), (2, 1024), (3, 1025)] {
            let [near, far] = match bytes {
                32 => [(3, 1), (1, 2)]
                    .map(|(base, of)| (base << 40) + arena.data_flag(of, number) + INLINE_OFFSET),
                33 | 1024 => {
                    [(4, 1), (2, 2)].map(|(base, of)| (base << 40) + arena.small(of, number))
                }
                _ => [(4, 1), (2, 2)].map(|(base, of)| (base << 40) + arena.slot(of, number)),
            };
            assert_eq!(peer.next_slot(&own, peer.room(&own, bytes)), far, "{bytes}");
            peer.take(&own, Blocks::NONE, bytes);
            peer.sent += 1;
            assert_eq!(peer.current_slot(&own), near, "{bytes}");
        }
    }

    /// However long puts are and however late they are given back: both ends know where each lies, none is written where
    /// another still lies, and a sender that waits needs no more than what it has sent to be given back.
    #[test]
    fn puts_of_any_sizes_find_room() {
        const SLOTS: u64 = 2 << 40;
        let depths = [2, 3, 5, 7, 8, 9, 10, 16, 21];
        // Three ranks, and two whose caches hold all slots.
        let cases = depths.map(|depth| [(depth, 3, 0), (depth, 2, 1 << 30)]);
        for (depth, ranks, cache) in cases.into_iter().flatten() {
            let arena = Arena {
                ranks,
                depth,
                slot_bytes: 64 << 10,
            };
            let [half, quarter, ..] = arena.rings().map(|ring| ring.bytes.max(64));
            let slot = arena.slot_bytes;
            let sizes = [0, 32, 33, 1024, 1025, quarter, half, half + 64, slot];
            let way = || Way::Mapped {
                signal: 1 << 40,
                slots: SLOTS,
                bell: 0,
                inline: true,
                fetch: Fetch::default(),
            };
            let near = Near {
                slots: SLOTS,
                ..Near::default()
            };
            let [from, to] = [0, 1].map(|rank| Own::new(rank, arena).with_core_cache(cache));
            let mut sender = Peer::new(1, way(), Near::default());
            let mut receiver = Peer::new(0, way(), near);
            let (mut held, mut told) = (VecDeque::new(), 0);
            let mut random = 1u64;
            for _ in 0..20_000 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let bytes = sizes[(random >> 33) as usize % sizes.len()];
                while let Some(credits) = sender.lacks_credits(&from, sender.rooms_of(&from, bytes))
                    && credits > told
                {
                    assert!(held.pop_front().is_some(), "{depth} slots: waits for ever");
                    told += u64::from(receiver.give_back(&to));
                }
                if let Some(credits) = sender.lacks_credits(&from, sender.rooms_of(&from, bytes)) {
                    sender.have_credits(credits);
                }
                let room = sender.room(&from, bytes);
                let is_small = matches!(room, Room::Line | Room::Small);
                let place = sender.next_slot(&from, room);
                receiver.take(&to, Blocks::NONE, bytes);
                sender.sent += 1;
                if !is_small {
                    assert_eq!(
                        receiver.current_slot(&to),
                        place,
                        "{depth} slots, {bytes} B"
                    );
                    let free = |&(at, long): &(u64, u64)| place >= at + long || at >= place + bytes;
                    assert!(held.iter().all(free), "{depth} slots, {bytes} B at {place}");
                }
                held.push_back(if is_small { (0, 0) } else { (place, bytes) });
                if random >> 62 == 0 {
                    held.pop_front();
                    told += u64::from(receiver.give_back(&to));
                }
            }
        }
    }
}
