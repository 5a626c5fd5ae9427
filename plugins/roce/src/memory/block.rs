//! A lane's own registered memory: slots for messages each way, and staging for what is copied.
#![allow(unsafe_code, reason = "memory that a device reads and writes")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::Arc;

use unisono_plugin::{Error, HostRange, Result, Status};

use super::registry::Memory;
use crate::nic::Rails;
use crate::verbs::Access;
use crate::wire::Record;

/// Bytes of a slot: the longest message.
pub(crate) const SLOT: usize = Record::MAX;
const PAGE: usize = 4096;

/// The memory, in this order: receive slots, send slots, staging.
#[derive(Debug)]
pub(crate) struct Block {
    held: Arc<Held>,
    receives: u32,
    sends: u32,
    staging: u64,
}

/// The registered pages: there for as long as a queue pair may use them.
#[derive(Debug)]
pub(crate) struct Held {
    /// Deregistered before the pages go.
    memory: Memory,
    pages: Pages,
}

impl Block {
    /// Memory for so many slots each way and bytes of staging, registered on all rails.
    pub(crate) fn new(rails: &Rails, receives: u32, sends: u32, staging: u64) -> Result<Self> {
        let slots = (u64::from(receives) + u64::from(sends)) * SLOT as u64;
        let pages = Pages::new((slots + staging) as usize)?;
        // SAFETY: the pages live in the same struct, behind the registration.
        let memory = unsafe { Memory::host(rails, pages.range(), Access::Write) }?;
        Ok(Self {
            held: Arc::new(Held { memory, pages }),
            receives,
            sends,
            staging,
        })
    }

    /// Keeps the memory while a queue pair may receive into it.
    pub(crate) fn hold(&self) -> Arc<Held> {
        Arc::clone(&self.held)
    }

    pub(crate) fn local_key(&self, rail: usize) -> u32 {
        self.held.memory.local_key(rail)
    }

    pub(crate) const fn receives(&self) -> u32 {
        self.receives
    }

    /// The address of a receive slot.
    pub(crate) fn receive_slot(&self, slot: u32) -> u64 {
        self.held.pages.range().address + u64::from(slot % self.receives) * SLOT as u64
    }

    /// The address of the send slot of a numbered message.
    pub(crate) fn send_slot(&self, number: u64) -> u64 {
        let slot = u64::from(self.receives) + number % u64::from(self.sends);
        self.held.pages.range().address + slot * SLOT as u64
    }

    /// The address of a place in the staging part.
    pub(crate) fn staged(&self, place: u64) -> u64 {
        let slots = (u64::from(self.receives) + u64::from(self.sends)) * SLOT as u64;
        self.held.pages.range().address + slots + place % self.staging
    }

    /// What came in a receive slot.
    pub(crate) fn received(&self, slot: u32, bytes: usize) -> [u8; SLOT] {
        let mut out = [0; SLOT];
        let bytes = bytes.min(SLOT);
        // SAFETY: a slot is as long; its receive is complete, so the device does not write it.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.receive_slot(slot) as *const u8,
                out.as_mut_ptr(),
                bytes,
            );
        }
        out
    }

    /// Fills a send slot that no message uses.
    pub(crate) fn write(&mut self, number: u64, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(SLOT)];
        // SAFETY: a slot is as long; the lane reuses it only when its message is acknowledged.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                self.send_slot(number) as *mut u8,
                bytes.len(),
            );
        }
    }
}

/// Zeroed pages of this process.
#[derive(Debug)]
struct Pages {
    at: *mut u8,
    layout: Layout,
}

// SAFETY: it is only an allocation; who touches it when is the lane's business, which is one's own.
unsafe impl Send for Pages {}
// SAFETY: as above; they give their address and nothing else.
unsafe impl Sync for Pages {}

impl Pages {
    fn new(bytes: usize) -> Result<Self> {
        let none = || Error::new(Status::OutOfMemory, "no memory for a link's slots");
        let layout = Layout::from_size_align(bytes.next_multiple_of(PAGE).max(PAGE), PAGE)
            .map_err(|_| none())?;
        // SAFETY: the layout is not empty.
        let at = unsafe { alloc_zeroed(layout) };
        if at.is_null() {
            return Err(none());
        }
        Ok(Self { at, layout })
    }

    fn range(&self) -> HostRange {
        HostRange {
            address: self.at as u64,
            bytes: self.layout.size() as u64,
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed once.
        unsafe { dealloc(self.at, self.layout) };
    }
}

/// Room in a ring of bytes that is given back in the order in which it was taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    bytes: u64,
    /// Counted from the beginning, never wrapped.
    taken: u64,
    given: u64,
}

impl Ring {
    pub(crate) const fn new(bytes: u64) -> Self {
        Self {
            bytes,
            taken: 0,
            given: 0,
        }
    }

    /// Room for at most `wanted` bytes in one piece: its place, its length, and what to give back
    /// with it. `None` if less than `least` can be had now.
    pub(crate) fn take(&mut self, wanted: u64, least: u64) -> Option<(u64, u64, u64)> {
        if self.taken == self.given {
            // Empty: begin at the edge, where all of it is in one piece.
            self.taken = self.taken.next_multiple_of(self.bytes);
            self.given = self.taken;
        }
        let free = self.bytes - (self.taken - self.given);
        let to_edge = self.bytes - self.taken % self.bytes;
        // What is left before the edge is passed over if it is too short.
        let skipped = if to_edge >= least { 0 } else { to_edge };
        let room =
            (free.checked_sub(skipped)?).min(self.bytes - (self.taken + skipped) % self.bytes);
        if room < least || room == 0 {
            return None;
        }
        let place = self.taken + skipped;
        let length = wanted.min(room);
        self.taken = place + length;
        Some((place, length, self.taken))
    }

    /// Gives back everything up to a place.
    pub(crate) fn give(&mut self, upto: u64) {
        self.given = self.given.max(upto);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn a_ring_gives_pieces_in_one_piece() {
        let mut ring = Ring::new(100);
        assert_eq!(ring.take(60, 60), Some((0, 60, 60)));
        assert_eq!(ring.take(60, 60), None);
        assert_eq!(ring.take(60, 10), Some((60, 40, 100)));
        assert_eq!(ring.take(1, 1), None);
        ring.give(60);
        assert_eq!(ring.take(70, 50), Some((100, 60, 160)));
        ring.give(160);
        // 40 bytes are left before the edge: too few.
        assert_eq!(ring.take(50, 50), Some((200, 50, 250)));
    }

    proptest! {
        /// No two pieces in use share a byte, none crosses the edge, and an empty ring serves all
        /// that is no longer than itself.
        #[test]
        fn pieces_never_overlap(
            steps in prop::collection::vec((1u64..200, 1u64..200, any::<bool>()), 1..200),
        ) {
            let size = 256;
            let mut ring = Ring::new(size);
            let mut used: VecDeque<(u64, u64, u64)> = VecDeque::new();
            for (wanted, least, free) in steps {
                let least = least.min(wanted);
                if free && let Some((.., upto)) = used.pop_front() {
                    ring.give(upto);
                }
                match ring.take(wanted, least) {
                    Some((place, length, upto)) => {
                        prop_assert!((least..=wanted).contains(&length));
                        prop_assert!(place % size + length <= size);
                        for (other, bytes, _) in &used {
                            let (a, b) = (place % size, other % size);
                            prop_assert!(a + length <= b || b + bytes <= a);
                        }
                        used.push_back((place, length, upto));
                    }
                    None => prop_assert!(!used.is_empty()),
                }
            }
        }
    }
}
