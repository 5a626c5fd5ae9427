//! Where the lines, counters and slots of a communicator lie in each rank's memory.
//!
//! Every rank owns one arena: a *signal* part (flag lines that peers write, counters that only this
//! rank uses) and a *slots* part (staging that peers fill, or fetch from). Both are laid out alike on all ranks, so
//! that a rank knows the address of any line in a peer's arena from the base that it imported.
//!
//! One block of the signal part a peer:
//!
//! ```text
//! line 0..F      data flags, taken in turn: the peer has put something (written by the peer)
//! line F         credit flag: the peer gave slots back                 (written by the peer)
//! line F+1       doorbell: this rank's stream to its own link          (local, posted links only)
//! line F+2       done: this rank's link to its own stream              (local, posted links only)
//! line F+3..     counters, 16 bytes each, on lines of their own        (local)
//! ```
//!
//! The block of this rank's pair with itself has the data flags that this rank raises for all at once, when it has shown
//! something, and its small places what is shown: the others wait for them, and read, here. Behind all blocks each of these
//! flags has a twin, which says the same to ranks that share this one's core: where cores take over the lines that they read,
//! the flag is gone from that core as soon as one of another core has looked.
//!
//! A put takes the next data flag and, if it is large, the next of the D slots. Between CPUs that share memory a put of
//! up to [`INLINE`] bytes lies in the second half of its flag's line, where the peer reads it with
//! the flag: one cache line goes from core to core and not two. One of up to [`Arena::small_bytes`] has a place of its
//! own for each flag, also where a posted link carries it, which has places for longer ones too. There are more flags
//! than slots, so that a rank may run further ahead with small puts: where ranks share a core, each switch then serves
//! many calls, and what is told a rank that is far ahead is told once for many.
//!
//! Between CPUs that share memory long puts go round in the first half of the slots, as what was used a short while ago is in
//! the cache; or in all of them, where the cores' caches hold all ([`Arena::long_slots`]). Those that are not as long have
//! rings of places of their own, as running ahead is worth more to them: the shorter they are the more find room in a cache
//! ([`Arena::rings`]).
//!
//! Where slots change hands, two ranks fill in turns those that are named after the one and after the other, and the slots that
//! long puts do not go round in are the shuttle of their messages ([`Peer::swap_slots`](crate::execute::Peer::swap_slots)).
//!
//! Where a device's streams record graphs, the signal part has three such sets of blocks one after another.
//! The second and the third are for recorded calls alone: data flags, and credits in the places of data
//! flags, one a slot. Their slots are the half from which posted links send and peers fetch, as where calls are recorded
//! nothing does.
//!
//! A signature must stay readable until its put is given back, hence a flag line for each put. Puts
//! are given back some at a time: see [`Arena::credit`].

/// Bytes of a flag line and of a cache line.
pub const LINE: u64 = 64;
/// Bytes of a counter.
pub const COUNTER: u64 = 16;

/// Where a small put lies in its flag's line, and the bytes that it has at most.
pub const INLINE_OFFSET: u64 = 32;
/// See [`INLINE_OFFSET`].
pub const INLINE: u64 = LINE - INLINE_OFFSET;

/// Data flags of a pair at least. On an EPYC 7003 with four ranks, and with eight, on two cores 256 made broadcasts and reduces of
/// 4 B 1.1 to 1.2 times as fast as 128, those of 1 KiB 1.0 to 1.14 times (`unisono bench broadcast,reduce --ranks 8 -b 4 -e 1K
/// --dirty`, in turns with the build before it). As many again gained no more, and places for as many puts of 1 KiB are more
/// than a core's cache holds.
const FLAGS: u32 = 256;
/// Those that are used where puts have slots alone.
const FEW_FLAGS: u32 = 16;

/// The most bytes that a small put has: one, between CPUs, that needs no slot.
const SMALL: u64 = 1024;

/// Slots of a pair from which on long puts may go round in half of them, and shorter ones have places of their own.
const SPLIT: u32 = 8;
/// What each of a rank's rings holds together, to all peers: a core's cache, as costs are counted.
const CACHED: u64 = 1 << 20;

/// Rings of a pair: the first has D places of at most half a slot, each further one twice as many that are half as long. On a
/// Xeon with AMX-FP16 reduces and broadcasts of 2 to 16 KiB took 0.55 to 0.9 of the time so among two to eight ranks on two
/// cores, but for those of 16 KiB among eight, which have as many places as before (`cargo xtask peers -- --dirty --ranks 2,4,8
/// --ops reduce,broadcast --sizes 2K,4K,8K,16K`, in turns with a build that had the first ring alone).
pub const RINGS: usize = 4;
/// Places of a ring at most, if D are not more.
const PLACES: u32 = 64;

/// The most bytes of a put over a posted link, between CPUs, that needs no slot.
const MEDIUM: u64 = 16 << 10;
/// Places for those that are not small, at least.
const MEDIUM_PLACES: u32 = 32;

/// How the arenas of one communicator are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arena {
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Slots of each ordered pair: D.
    pub depth: u32,
    /// Bytes of a slot, a multiple of [`LINE`].
    pub slot_bytes: u64,
}

/// Which counter of a pair's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Waits for the peer's data flag n.
    DataWait(u32),
    /// Raises the peer's data flag n; of the pair with itself, that of what this rank shows.
    DataSignal(u32),
    /// Waits for data flag n of what the peer shows.
    ShownWait(u32),
    /// Waits for a credit for the next put.
    CreditWait,
    /// Gives credits back.
    CreditSignal,
    /// The stream rings the link.
    DoorbellSignal,
    /// The link waits for the stream.
    DoorbellWait,
    /// The link says that a source may be reused.
    DoneSignal,
    /// The stream waits for that.
    DoneWait,
}

/// Places of one length that the puts of each ordered pair go round in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Bytes of a place.
    pub bytes: u64,
    /// Places, which are no more than flags.
    pub places: u32,
    /// Offset of the first that rank 0 fills, in the slots part, and how much further the next rank's lie.
    first: u64,
    stride: u64,
}

impl Ring {
    /// Offset of place `number` that `peer` fills, in the slots part.
    #[must_use]
    pub fn place(&self, peer: u32, number: u32) -> u64 {
        self.first + u64::from(peer) * self.stride + u64::from(number) * self.bytes
    }
}

/// See [`Arena::recorded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Data flags and their counters.
    pub data: u64,
    /// A credit flag for each slot, and its counters, in the places of data flags.
    pub credits: u64,
    /// Slots.
    pub slots: u64,
}

impl Arena {
    /// Bytes of the signal part.
    #[must_use]
    pub fn signal_bytes(&self) -> u64 {
        self.twin(self.data_flags())
    }

    /// Bytes of the signal part where calls are recorded too.
    #[must_use]
    pub fn signal_bytes_recorded(&self) -> u64 {
        3 * self.signal_bytes()
    }

    /// How much further the lines and the slots of recorded calls lie than those of others.
    #[must_use]
    pub fn recorded(&self) -> Recorded {
        Recorded {
            data: self.signal_bytes(),
            credits: 2 * self.signal_bytes(),
            slots: self.sends(),
        }
    }

    /// Bytes of the slots part: for each peer D slots to receive, and D to send from over posted
    /// links or for the peer to fetch from, then places for small and medium puts: of what the slots to
    /// receive take a half each at most; then the rings of what CPUs put. In those of this rank's pair with itself, and in its
    /// slots, lies what it shows to all.
    #[must_use]
    pub fn slots_bytes(&self) -> u64 {
        self.small_twin(self.data_flags())
    }

    /// Offset, in the slots part, of what lies beside the [twin](Self::twin) of this number as a small put does beside a flag.
    #[must_use]
    pub fn small_twin(&self, number: u32) -> u64 {
        self.rings()[0].place(self.ranks, 0) + u64::from(number) * self.small_stride()
    }

    /// Data flags of each ordered pair: F, a power of two.
    #[must_use]
    pub fn data_flags(&self) -> u32 {
        self.depth.max(FLAGS).next_power_of_two()
    }

    /// Those of them that are used but between CPUs: a device's batch of commands is then soon the same again, and
    /// who is through with a call leaves fewer signals behind.
    #[must_use]
    pub fn few_flags(&self) -> u32 {
        self.depth.max(FEW_FLAGS)
    }

    /// Puts that are given back by one credit. So a channel holds at least `depth - credit + 1`
    /// puts, which is not less than 2 where `depth` is not.
    #[must_use]
    pub fn credit(&self) -> u64 {
        u64::from(self.depth / 2).max(1)
    }

    /// The same between CPUs that share memory, whose long puts go round in so many slots.
    #[must_use]
    pub fn shared_credit(&self, long_slots: u32) -> u64 {
        u64::from(long_slots / 2).max(1)
    }

    /// Slots that long puts go round in, between CPUs that share memory and whose cores have a cache of `core_cache` bytes
    /// each, as far as is known. On an EPYC 7003, where that is 512 KiB, four of 128 KiB in place of eight made an all_to_all
    /// of 4 MiB 1.2 to 1.4 times as fast with four ranks and with eight, a reduce_scatter 1.1 to 1.35 times, and two ranks'
    /// all_to_all 1.15 times (`unisono bench all_to_all,reduce_scatter --ranks 4 -b 4M -e 4M --dirty`, in turns with the
    /// build before it). On an EPYC 9004, where it is 1 MiB, four and eight ranks gain as much. But two ranks gain by all
    /// eight: by the time that a line is written again it has left the cache of the core that read it, so nobody has to be
    /// told: a broadcast of 256 KiB to 4 MiB took 0.45 of the time, a reduce of 4 MiB 0.6, an all_to_all of 256 KiB 0.7, a
    /// broadcast of 64 MiB 0.8 (`unisono bench broadcast,reduce,all_to_all --ranks 2 -b 256K -e 64M --dirty`, likewise).
    #[must_use]
    pub fn long_slots(&self, core_cache: u64) -> u32 {
        let all = u64::from(self.depth) * self.slot_bytes;
        match self.depth {
            SPLIT.. if self.ranks > 2 || core_cache < all => self.depth / 2,
            depth => depth,
        }
    }

    /// The rings of each ordered pair, between CPUs that share memory, whose places have no bytes where slots are too few for
    /// long puts to go round in half of them, or longer than a core's cache.
    #[must_use]
    pub fn rings(&self) -> [Ring; RINGS] {
        let peers = u64::from(self.ranks.saturating_sub(1).max(1));
        let most = match self.depth {
            // Longer slots are those of accelerators, or of CPUs that are to have what no cache holds.
            SPLIT.. if self.slot_bytes <= CACHED => {
                let cached = CACHED / (u64::from(self.depth) * peers);
                cached.min(self.slot_bytes / 2) / LINE * LINE
            }
            _ => 0,
        };
        // None holds more than the first.
        let held = u64::from(self.depth) * most;
        std::array::from_fn(|number| Ring {
            bytes: (most >> number) / LINE * LINE,
            places: (self.depth.saturating_mul(1 << number)).min(PLACES.max(self.depth)),
            first: self.medium(self.ranks, 0) + number as u64 * held,
            stride: RINGS as u64 * held,
        })
    }

    /// Offset of data flag `number` that `peer` raises, in the signal part.
    #[must_use]
    pub fn data_flag(&self, peer: u32, number: u32) -> u64 {
        self.block(peer) + u64::from(number) * LINE
    }

    /// Offset of the twin of data flag `number` of this rank's pair with itself, in the signal part.
    #[must_use]
    pub fn twin(&self, number: u32) -> u64 {
        self.block(self.ranks) + u64::from(number) * LINE
    }

    /// Offset of the flag by which `peer` gives credits back.
    #[must_use]
    pub fn credit_flag(&self, peer: u32) -> u64 {
        self.block(peer) + u64::from(self.data_flags()) * LINE
    }

    /// Offset of the flag by which the stream rings the link to `peer`.
    #[must_use]
    pub fn doorbell_flag(&self, peer: u32) -> u64 {
        self.credit_flag(peer) + LINE
    }

    /// Offset of the flag by which the link to `peer` says that sources may be reused.
    #[must_use]
    pub fn done_flag(&self, peer: u32) -> u64 {
        self.credit_flag(peer) + 2 * LINE
    }

    /// Offset of a counter of the pair with `peer`.
    #[must_use]
    pub fn counter(&self, peer: u32, counter: Counter) -> u64 {
        let flags = u64::from(self.data_flags());
        let index = match counter {
            Counter::DataWait(flag) => u64::from(flag),
            Counter::DataSignal(flag) => flags + u64::from(flag),
            Counter::ShownWait(flag) => 2 * flags + u64::from(flag),
            Counter::CreditWait => 3 * flags,
            Counter::CreditSignal => 3 * flags + 1,
            Counter::DoorbellSignal => 3 * flags + 2,
            Counter::DoorbellWait => 3 * flags + 3,
            Counter::DoneSignal => 3 * flags + 4,
            Counter::DoneWait => 3 * flags + 5,
        };
        self.credit_flag(peer) + 3 * LINE + index * COUNTER
    }

    /// Offset of slot `slot` that `peer` fills, in the slots part.
    #[must_use]
    pub fn slot(&self, peer: u32, slot: u32) -> u64 {
        (u64::from(peer) * u64::from(self.depth) + u64::from(slot)) * self.slot_bytes
    }

    /// Offset, in the slots part, of the slots from which this rank sends by posted links or peers fetch: they lie to each
    /// other as those do that it receives into.
    #[must_use]
    pub fn sends(&self) -> u64 {
        u64::from(self.ranks) * u64::from(self.depth) * self.slot_bytes
    }

    /// The most bytes of a small put.
    #[must_use]
    pub fn small_bytes(&self) -> u64 {
        self.small_stride().min(SMALL)
    }

    /// The most bytes of a medium put.
    #[must_use]
    pub fn medium_bytes(&self) -> u64 {
        self.medium_stride().min(MEDIUM)
    }

    /// From one small put to the next: a line more than it needs, so that not all begin in the same sets of a cache.
    #[must_use]
    pub fn small_stride(&self) -> u64 {
        self.stride(self.data_flags(), SMALL, 2)
    }

    fn medium_stride(&self) -> u64 {
        self.stride(self.medium_places(), MEDIUM, 2)
    }

    /// All places together take at most such a part of what slots to receive do.
    fn stride(&self, places: u32, bytes: u64, part: u64) -> u64 {
        let room = u64::from(self.depth) * self.slot_bytes / part / u64::from(places);
        (room / LINE * LINE).min(bytes + LINE)
    }

    /// Offset, in the slots part, of the small put that `peer` tells of by data flag `number`.
    #[must_use]
    pub fn small(&self, peer: u32, number: u32) -> u64 {
        let before = u64::from(peer) * u64::from(self.data_flags()) + u64::from(number);
        2 * self.sends() + before * self.small_stride()
    }

    /// Medium puts of each ordered pair: no fewer than slots, as so many are given back at once.
    #[must_use]
    pub fn medium_places(&self) -> u32 {
        self.depth.max(MEDIUM_PLACES)
    }

    /// Offset, in the slots part, of the medium put that is the `number`-th of `peer`, modulo their places.
    #[must_use]
    pub fn medium(&self, peer: u32, number: u32) -> u64 {
        let before = u64::from(peer) * u64::from(self.medium_places()) + u64::from(number);
        self.small(self.ranks, 0) + before * self.medium_stride()
    }

    /// Offset, among the slots to send from, of what fills the small put of this number before a posted link sends it to
    /// `peer`.
    #[must_use]
    pub fn small_fill(&self, peer: u32, number: u32) -> u64 {
        self.slot(peer, 0) + u64::from(number) * self.small_stride()
    }

    /// The same of a medium put.
    #[must_use]
    pub fn medium_fill(&self, peer: u32, number: u32) -> u64 {
        self.slot(peer, 0) + u64::from(number) * self.medium_stride()
    }

    /// Offsets of every flag line of the pair with `peer`: what an abort releases.
    pub fn flags_of(self, peer: u32) -> impl Iterator<Item = u64> {
        let lines = 0..u64::from(self.data_flags()) + 3;
        lines.map(move |line| self.block(peer) + line * LINE)
    }

    fn block(&self, peer: u32) -> u64 {
        self.block_bytes() * u64::from(peer)
    }

    fn block_bytes(&self) -> u64 {
        let flags = u64::from(self.data_flags());
        let counters = (3 * flags + 6) * COUNTER;
        (flags + 3) * LINE + counters.next_multiple_of(LINE)
    }
}

/// Ends every wait on a flag, as the contract says: by a step that no number of calls reaches.
#[allow(unsafe_code, reason = "flags are words at addresses of the arena")]
pub(crate) fn poison(flag: u64) {
    use std::sync::atomic::{AtomicU64, Ordering};
    // SAFETY: the address is that of a flag line in the caller's own arena, which is mapped and
    // aligned; all sides access its counter atomically.
    let counter = unsafe { AtomicU64::from_ptr(flag as *mut u64) };
    // Once it is far ahead, more steps could make it wrap.
    if counter.load(Ordering::Relaxed) < unisono_abi::ABORT_AHEAD {
        counter.fetch_add(unisono_abi::ABORT_STEP, Ordering::SeqCst);
    }
}

/// The counter of a flag in the caller's own arena.
#[allow(unsafe_code, reason = "flags are words at addresses of the arena")]
pub(crate) fn read(flag: u64) -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    // SAFETY: as in `poison`.
    unsafe { AtomicU64::from_ptr(flag as *mut u64) }.load(Ordering::Acquire)
}

/// Sets a word in the caller's own arena that nobody uses yet.
#[allow(unsafe_code, reason = "counters are words at addresses of the arena")]
pub(crate) fn set(word: u64, value: u64) {
    use std::sync::atomic::{AtomicU64, Ordering};
    // SAFETY: as in `poison`.
    unsafe { AtomicU64::from_ptr(word as *mut u64) }.store(value, Ordering::Release);
}

/// The words beside the counter of a flag in the caller's own arena, or in one that it has imported. A peer may be writing
/// those of a later call, the first word first: it is read last, so that a mix is taken for the later call's.
#[allow(unsafe_code, reason = "flags are words at addresses of the arena")]
pub(crate) fn words(flag: u64) -> [u64; 3] {
    use std::sync::atomic::{AtomicU64, Ordering};
    // SAFETY: as in `poison`; the words lie in the flag's line, behind its counter.
    let word = |at| unsafe { AtomicU64::from_ptr((flag + at) as *mut u64) }.load(Ordering::Acquire);
    let [third, second, first] = [24, 16, 8].map(word);
    [first, second, third]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_things_share_bytes() {
        let arena = Arena {
            ranks: 3,
            depth: 5,
            slot_bytes: 4096,
        };
        let mut used = BTreeSet::new();
        let mut take = |from: u64, bytes: u64| {
            for byte in from..from + bytes {
                assert!(used.insert(byte), "byte {byte} is used twice");
            }
        };
        for peer in 0..3 {
            for flag in 0..arena.data_flags() {
                take(arena.data_flag(peer, flag), LINE);
                take(arena.counter(peer, Counter::DataWait(flag)), COUNTER);
                take(arena.counter(peer, Counter::DataSignal(flag)), COUNTER);
                take(arena.counter(peer, Counter::ShownWait(flag)), COUNTER);
            }
            take(arena.credit_flag(peer), LINE);
            take(arena.doorbell_flag(peer), LINE);
            take(arena.done_flag(peer), LINE);
            for counter in [
                Counter::CreditWait,
                Counter::CreditSignal,
                Counter::DoorbellSignal,
                Counter::DoorbellWait,
                Counter::DoneSignal,
                Counter::DoneWait,
            ] {
                take(arena.counter(peer, counter), COUNTER);
            }
        }
        for flag in 0..arena.data_flags() {
            take(arena.twin(flag), LINE);
        }
        assert!(used.last().is_some_and(|last| *last < arena.signal_bytes()));
        assert_eq!(arena.flags_of(2).count(), 256 + 3);
        assert_eq!(arena.flags_of(2).next(), Some(arena.data_flag(2, 0)));
        assert!(arena.sends() + arena.slot(2, 4) + 4096 <= arena.slots_bytes());
        assert!(arena.slot(2, 4) + 4096 <= arena.sends());
    }

    #[test]
    fn small_puts_lie_apart_behind_the_slots() {
        for (depth, slot_bytes) in [(2, 4096), (5, 4096), (8, 4096), (8, 1 << 20), (100, 4096)] {
            let arena = Arena {
                ranks: 3,
                depth,
                slot_bytes,
            };
            let mut free = arena.sends() + arena.slot(3, 0);
            for peer in 0..3 {
                for flag in 0..arena.data_flags() {
                    let at = arena.small(peer, flag);
                    assert!(at >= free && at.is_multiple_of(LINE), "{arena:?}");
                    free = at + arena.small_bytes();
                }
            }
            for peer in 0..3 {
                for number in 0..arena.medium_places() {
                    let at = arena.medium(peer, number);
                    assert!(at >= free && at.is_multiple_of(LINE), "{arena:?}");
                    free = at + arena.medium_bytes();
                }
            }
            assert!(free <= arena.slots_bytes(), "{arena:?}");
            let places = arena.medium(3, 0) - 2 * arena.sends();
            assert!(places <= arena.sends(), "{arena:?}");
            let last = [
                arena.small_fill(1, arena.data_flags() - 1) + arena.small_bytes(),
                arena.medium_fill(1, arena.medium_places() - 1) + arena.medium_bytes(),
            ];
            assert!(last.iter().all(|end| *end <= arena.slot(2, 0)), "{arena:?}");
        }
    }

    #[test]
    fn rings_and_twins_lie_behind_all_else() {
        for (ranks, depth, slot_bytes) in [
            (2, 8, 128 << 10),
            (8, 8, 128 << 10),
            (3, 9, 4160),
            (4, 100, 64 << 10),
            (2, 8, 1 << 20),
        ] {
            let arena = Arena {
                ranks,
                depth,
                slot_bytes,
            };
            let rings = arena.rings();
            assert!(rings[0].bytes > 0 && rings[0].bytes <= slot_bytes / 2);
            let mut free = arena.medium(ranks, 0);
            for peer in 0..ranks {
                for ring in rings {
                    assert!((depth..=arena.data_flags()).contains(&ring.places));
                    for number in 0..ring.places {
                        let at = ring.place(peer, number);
                        assert!(at >= free && at.is_multiple_of(LINE), "{arena:?}");
                        free = at + ring.bytes;
                    }
                }
            }
            let held = free - arena.medium(ranks, 0);
            assert!(held <= 8 << 20, "{arena:?}");
            for number in 0..arena.data_flags() {
                let at = arena.small_twin(number);
                assert!(at >= free && at.is_multiple_of(LINE), "{arena:?}");
                free = at + arena.small_bytes();
            }
            assert!(free <= arena.slots_bytes(), "{arena:?}");
        }
        // None at all where nothing is put.
        for (depth, slot_bytes, long_slots) in [(0, 0, 0), (7, 4096, 7), (8, 8 << 20, 4)] {
            let none = Arena {
                ranks: 2,
                depth,
                slot_bytes,
            };
            assert_eq!(none.small_twin(0), none.medium(2, 0));
            assert!(none.rings().iter().all(|ring| ring.bytes == 0));
            assert_eq!(none.long_slots(0), long_slots);
        }
    }

    #[test]
    fn two_ranks_use_all_slots_if_their_caches_hold_them() {
        let of = |ranks, core_cache| {
            let arena = Arena {
                ranks,
                depth: 8,
                slot_bytes: 128 << 10,
            };
            arena.long_slots(core_cache)
        };
        assert_eq!([of(2, 1 << 20), of(2, 512 << 10), of(2, 0)], [8, 4, 4]);
        assert_eq!([of(3, 1 << 20), of(8, 1 << 30)], [4, 4]);
    }

    #[test]
    fn a_channel_holds_two_puts_however_credits_are_given() {
        for depth in (2..=64).chain([255, 256, 257, 1000]) {
            let arena = Arena {
                ranks: 2,
                depth,
                slot_bytes: 64,
            };
            assert!(arena.credit() >= 1);
            assert!(u64::from(depth) + 1 - arena.credit() >= 2, "{depth} slots");
            for cache in [0, 1 << 20] {
                let long = arena.long_slots(cache);
                let credit = arena.shared_credit(long);
                assert!(u64::from(long) + 1 - credit >= 2, "{depth} slots");
            }
            assert!(arena.data_flags() >= depth && arena.medium_places() >= depth);
            assert!(arena.data_flags().is_power_of_two());
        }
    }
}
