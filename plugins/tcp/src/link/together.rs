//! Short runs of bytes that go to the kernel in one piece: copying them costs less than a piece of its own for each, and a
//! call with one piece less than one with several.
#![allow(unsafe_code, reason = "copies from addresses of the host's")]

use std::cell::UnsafeCell;
use std::ptr;

/// Runs of up to so many bytes are copied.
pub(super) const SHORT: u64 = 1 << 10;
/// Bytes that one call copies, at most.
pub(super) const ROOM: usize = 16 << 10;

/// Copies for one call, one behind the other.
#[derive(Default)]
pub(super) struct Together {
    /// Named by address alone: the pieces of a call point into it while more is copied.
    room: Option<Box<UnsafeCell<[u8; ROOM]>>>,
    used: usize,
}

impl Together {
    /// Forgets the copies of the last call.
    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    /// Where a copy of the run lies; where the run itself lies if it is long or there is no room.
    ///
    /// # Safety
    /// The run is readable, and nobody writes to it meanwhile.
    pub(super) unsafe fn copy(&mut self, address: u64, bytes: u64) -> u64 {
        if bytes > SHORT || self.used + bytes as usize > ROOM {
            return address;
        }
        let bytes = bytes as usize;
        let room = self.room.get_or_insert_with(|| Box::new([0; ROOM].into()));
        let copy = room.get().cast::<u8>().wrapping_add(self.used);
        // SAFETY: the caller's promise; there is room for so many bytes, which is this call's alone.
        unsafe { ptr::copy_nonoverlapping(address as usize as *const u8, copy, bytes) };
        self.used += bytes;
        copy as u64
    }
}

impl std::fmt::Debug for Together {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (f.debug_struct("Together").field("used", &self.used)).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_runs_lie_one_behind_the_other_and_long_ones_where_they_were() {
        let mut together = Together::default();
        let bytes: Vec<u8> = (0..=255).cycle().take(2 << 10).collect();
        let mut copy = |bytes: &[u8]| {
            // SAFETY: a slice.
            unsafe { together.copy(bytes.as_ptr() as u64, bytes.len() as u64) }
        };
        let first = copy(&bytes[..20]);
        assert_eq!(copy(&bytes[20..24]), first + 20);
        assert_eq!(copy(&bytes), bytes.as_ptr() as u64);
        assert_eq!(copy(&bytes[24..1048]), first + 24);
        // SAFETY: so much was copied there.
        let copied = unsafe { std::slice::from_raw_parts(first as usize as *const u8, 1048) };
        assert_eq!(copied, &bytes[..1048]);
        while copy(&bytes[..1000]) != bytes.as_ptr() as u64 {}
        together.clear();
        // SAFETY: a slice.
        let again = unsafe { together.copy(bytes.as_ptr() as u64, 7) };
        assert_eq!(again, first);
    }
}
