//! Copies of small puts until the peer has them: their sources may be reused at once.
//!
//! A ring. Frames of one connection are acknowledged in the order in which they were made, so copies
//! are let go in the order in which they were taken.
#![allow(unsafe_code, reason = "sources of puts are addresses")]

use super::put::Source;

/// Bytes of copies at once. A put that finds no room waits for the peer's word instead.
const RING: u64 = 256 << 10;
/// Longer puts are not copied: the peer's word costs less. A shorter one does not wait for a peer that
/// does not look.
pub(crate) const KEEP_MAX: u64 = 16 << 10;

/// The copies of one connection's puts; its memory is there from the first on.
#[derive(Debug, Default)]
pub(crate) struct Keep {
    ring: Vec<u8>,
    /// Bytes ever taken and given back; what lies between is in use.
    taken: u64,
    given: u64,
}

/// A copy: where it is, and what of the ring it uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) address: u64,
    pub(crate) used: u64,
}

impl Keep {
    /// Copies the `bytes` bytes of a source, if there is room.
    ///
    /// # Safety
    /// The source is readable memory of that length.
    pub(crate) unsafe fn copy(&mut self, source: &Source, bytes: u64) -> Option<Kept> {
        if bytes == 0 {
            return Some(Kept {
                address: 0,
                used: 0,
            });
        }
        let at = self.taken % RING;
        // A copy lies in one piece.
        let skipped = if at + bytes > RING { RING - at } else { 0 };
        if bytes > KEEP_MAX || self.taken + skipped + bytes - self.given > RING {
            return None;
        }
        if self.ring.is_empty() {
            self.ring = vec![0; RING as usize];
        }
        let start = (self.taken + skipped) % RING;
        let mut done = 0;
        while done < bytes {
            let (from, run) = source.run(done);
            let run = run.min(bytes - done);
            let to = &mut self.ring[(start + done) as usize..][..run as usize];
            // SAFETY: by the caller's promise; the ring is this crate's own.
            unsafe {
                std::ptr::copy_nonoverlapping(from as *const u8, to.as_mut_ptr(), run as usize);
            }
            done += run;
        }
        self.taken += skipped + bytes;
        Some(Kept {
            address: self.ring.as_ptr() as u64 + start,
            used: skipped + bytes,
        })
    }

    /// Gives the oldest copy back.
    pub(crate) const fn give_back(&mut self, used: u64) {
        self.given += used;
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
                // SAFETY: the vector is as long.
                let kept = unsafe { keep.copy(&Source::one(own.as_ptr() as u64, bytes), bytes) };
                match kept {
                    Some(kept) => held.push_back((kept, own)),
                    None => prop_assert!(held.len() as u64 * KEEP_MAX + 2 * KEEP_MAX > RING),
                }
                for _ in 0..back {
                    if let Some((kept, own)) = held.pop_front() {
                        // SAFETY: the copy is in use, in the ring.
                        let copy = unsafe { std::slice::from_raw_parts(kept.address as *const u8, own.len()) };
                        prop_assert_eq!(copy, own.as_slice());
                        keep.give_back(kept.used);
                    }
                }
            }
        }
    }
}
