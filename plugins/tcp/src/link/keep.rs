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
#[derive(Debug, Default)]
pub(crate) struct Keep {
    ring: Vec<u8>,
    /// Bytes ever taken and given back; what lies between is in use.
    taken: u64,
    given: u64,
}

/// A copy: where its bytes are, behind their header, and what it uses of the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) address: u64,
    pub(crate) used: u64,
}

impl Keep {
    /// Takes room for `bytes` bytes and their header, if there is any.
    pub(crate) fn room(&mut self, bytes: u64) -> Option<Kept> {
        let whole = FRAME_BYTES as u64 + bytes;
        let at = self.taken % RING;
        // A copy lies in one piece.
        let skipped = if at + whole > RING { RING - at } else { 0 };
        if bytes > KEEP_MAX || self.taken + skipped + whole - self.given > RING {
            return None;
        }
        if self.ring.is_empty() {
            self.ring = vec![0; RING as usize];
        }
        let start = (self.taken + skipped) % RING;
        self.taken += skipped + whole;
        Some(Kept {
            address: self.ring.as_ptr() as u64 + start + FRAME_BYTES as u64,
            used: skipped + whole,
        })
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
                std::ptr::copy_nonoverlapping(from as *const u8, to.as_mut_ptr(), run as usize);
            }
            done += run;
        }
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
                match keep.room(bytes) {
                    Some(kept) => {
                        let source = Source::one(own.as_ptr() as u64, bytes);
                        // SAFETY: the vector is as long, and there is room.
                        unsafe { keep.copy(kept, &[number as u8; FRAME_BYTES], &source, bytes) };
                        held.push_back((kept, own));
                    }
                    None => {
                        let most = KEEP_MAX + FRAME_BYTES as u64;
                        prop_assert!((held.len() as u64 + 2) * most > RING);
                    }
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
}
