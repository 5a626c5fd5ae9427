//! Copies of small puts until the peer has them: their sources may be reused at once. Each lies behind its header, and
//! the next behind it, so that the kernel is given one run of bytes.
//!
//! A ring. Frames of one connection are acknowledged in the order in which they were made, so copies
//! are let go in the order in which they were taken.
#![allow(unsafe_code, reason = "sources of puts are addresses")]

use super::put::Source;
use crate::wire::FRAME_BYTES;

/// Bytes of copies at once. A put that finds no room waits for the peer's word instead.
const RING: u64 = 512 << 10;
/// Longer puts are not copied: the peer's word, a call of the operating system and a frame, costs less. A shorter one does
/// not wait for a peer that does not look.
pub(crate) const KEEP_MAX: u64 = 64 << 10;

/// The copies of one connection's puts; its memory is there from the first on.
///
/// What is in use lies from `oldest` to `next`, or from `oldest` to `end` and then from the start to `next`. It goes back
/// to the start as soon as there is room for as much as was in use since nothing was: memory that was used a short while ago
/// is in the cache.
#[derive(Debug, Default)]
pub(crate) struct Keep {
    ring: Vec<u8>,
    oldest: u64,
    next: u64,
    /// Where the copies end behind which those at the start are.
    end: Option<u64>,
    /// The most that was in use since nothing was.
    most: u64,
}

/// A copy: where its bytes are, behind their header, and what it uses of the memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) address: u64,
    pub(crate) used: u64,
}

impl Keep {
    /// Takes room for `bytes` bytes and their header, if there is any.
    pub(crate) fn room(&mut self, bytes: u64) -> Option<Kept> {
        let used = FRAME_BYTES as u64 + bytes;
        if bytes > KEEP_MAX {
            return None;
        }
        let in_use = self.next + self.end.unwrap_or(0) - self.oldest;
        let most = self.most.max(in_use + used);
        let is_at_end = self.next + used > RING;
        if self.end.is_none() && self.oldest >= if is_at_end { used } else { most } {
            self.end = Some(self.next);
            self.next = 0;
        }
        // A copy lies in one piece.
        let free = self.end.map_or(RING, |_| self.oldest);
        if self.next + used > free {
            return None;
        }
        if self.ring.is_empty() {
            self.ring = vec![0; RING as usize];
        }
        let address = self.ring.as_ptr() as u64 + self.next + FRAME_BYTES as u64;
        self.next += used;
        self.most = most;
        self.forget_end();
        Some(Kept { address, used })
    }

    /// Copies a header and the `bytes` bytes of a source to where `kept` is.
    ///
    /// # Safety
    /// The source is readable memory of that length; `kept` is room for as many bytes, and not given back.
    pub(crate) unsafe fn copy(
        &mut self,
        kept: Kept,
        header: &[u8; FRAME_BYTES],
        source: &Source,
        bytes: u64,
    ) {
        let start = (kept.address - self.ring.as_ptr() as u64) as usize;
        self.ring[start - FRAME_BYTES..start].copy_from_slice(header);
        let mut done = 0;
        while done < bytes {
            let (from, run) = source.run(done);
            let run = run.min(bytes - done);
            let to = &mut self.ring[start + done as usize..][..run as usize];
            // SAFETY: by the caller's promise; the ring is this crate's own.
            unsafe {
                unisono_copy::copy(to.as_mut_ptr(), from as *const u8, run as usize);
            }
            done += run;
        }
    }

    /// Gives the oldest copy back.
    pub(crate) fn give_back(&mut self, used: u64) {
        self.oldest += used;
        self.forget_end();
    }

    /// Those before the end are all given back: the oldest is at the start; or all are.
    fn forget_end(&mut self) {
        if self.end == Some(self.oldest) {
            (self.oldest, self.end) = (0, None);
        }
        if self.end.is_none() && self.oldest == self.next {
            (self.oldest, self.next, self.most) = (0, 0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is taken and given back, each copy stays what it was until it is given back.
        #[test]
        fn copies_stay_what_they_were(sizes in prop::collection::vec((1..=KEEP_MAX, 0usize..3), 1..300)) {
            let mut keep = Keep::default();
            let mut held: VecDeque<(Kept, Vec<u8>)> = VecDeque::new();
            for (number, (bytes, back)) in sizes.into_iter().enumerate() {
                let own = vec![number as u8; bytes as usize];
                match keep.room(bytes) {
                    Some(kept) => {
                        let source = Source::one(own.as_ptr() as u64, bytes);
                        // SAFETY: the vector is as long, and there is room.
                        unsafe { keep.copy(kept, &[number as u8; FRAME_BYTES], &source, bytes) };
                        held.push_back((kept, own));
                    }
                    None => prop_assert!(!held.is_empty()),
                }
                for _ in 0..back {
                    if let Some((kept, own)) = held.pop_front() {
                        // SAFETY: the copy is in use, in the ring.
                        let copy = unsafe { std::slice::from_raw_parts(kept.address as *const u8, own.len()) };
                        prop_assert_eq!(copy, own.as_slice());
                        let before = kept.address as usize - FRAME_BYTES;
                        // SAFETY: as above: its header, which is of the same bytes.
                        let header = unsafe { std::slice::from_raw_parts(before as *const u8, FRAME_BYTES) };
                        prop_assert_eq!(header, &own[..1].repeat(FRAME_BYTES));
                        keep.give_back(kept.used);
                    }
                }
            }
        }
    }

    /// Copies that are acknowledged some at a time: none of them finds no room, and all lie in little more than is in use.
    #[test]
    fn copies_go_round_in_little_memory() {
        for (bytes, together) in [(600, 16), (8 << 10, 2), (16 << 10, 9)] {
            let mut keep = Keep::default();
            let mut held = VecDeque::new();
            for number in 0..1000 {
                let kept = keep.room(bytes).expect("room");
                let end = kept.address - keep.ring.as_ptr() as u64 + bytes;
                held.push_back(kept.used);
                if number > 100 {
                    let most = 3 * (together + 3) * (bytes + FRAME_BYTES as u64);
                    assert!(end <= most, "{end} of {bytes} bytes");
                }
                if held.len() as u64 == together + 2 {
                    held.drain(..together as usize)
                        .for_each(|used| keep.give_back(used));
                }
            }
        }
    }

    /// What is in use for once may be all that there is.
    #[test]
    fn much_may_be_in_use() {
        let mut keep = Keep::default();
        let mut held = VecDeque::new();
        for _ in 0..3 {
            while let Some(kept) = keep.room(KEEP_MAX) {
                held.push_back(kept.used);
            }
            let in_use = held.iter().sum::<u64>();
            assert!(
                in_use + 2 * (KEEP_MAX + FRAME_BYTES as u64) > RING,
                "{in_use}"
            );
            for _ in 0..20 {
                keep.give_back(held.pop_front().expect("one"));
                held.push_back(keep.room(KEEP_MAX).expect("as much again").used);
            }
        }
    }
}
