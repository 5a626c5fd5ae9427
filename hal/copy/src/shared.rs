//! Copies between cores: of what another core has just written, or to where another core reads next.
//!
//! Lines come from the other core's cache, those that are read as well as those that are written, which the other has read
//! before. So several [runs of addresses](crate::side_by_side) are copied at once; and as stores go one after the other, each
//! of which waits until its line is there, lines are asked for before they are written. On a Xeon with AMX-FP16 broadcasts of
//! 16 to 256 KiB between two ranks took 0.8 to 0.88 of the time so, all_gathers and messages of 256 KiB 0.81 to 0.86 (`cargo
//! xtask peers -- --dirty --ranks 2 --ops broadcast,all_gather,send_recv --sizes 16K,64K,256K`, in turns with builds without
//! it). Stores are to whole lines, or all of that is lost again.

use crate::{copy, vectors};

/// From so many bytes on: broadcasts of 8 KiB take 0.88 of the time so, those of 4 and 6 KiB as long (likewise).
const WORTH: usize = 8 << 10;
/// By halves of lines: a message of 64 KiB in puts of 16 KiB took 1.2 times as long so (`cargo xtask peers -- --dirty --ranks 2
/// --ops send_recv --sizes 64K`, likewise).
#[cfg(target_arch = "x86_64")]
const WORTH_HALVES: usize = 32 << 10;

/// Copies `bytes` bytes that another core has written, or reads next. Any thread.
///
/// # Safety
/// As for [`core::ptr::copy_nonoverlapping`] of bytes.
#[inline]
pub unsafe fn copy_shared(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise; the vectors are there.
    unsafe {
        match bytes >= WORTH && crate::are_runs_faster() {
            #[cfg(target_arch = "x86_64")]
            true if vectors::are_lines() => x86::copy_512(dst, src, bytes),
            #[cfg(target_arch = "x86_64")]
            true if vectors::are_there() && bytes >= WORTH_HALVES => x86::copy_256(dst, src, bytes),
            _ => copy(dst, src, bytes),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::{
        _mm256_loadu_si256, _mm256_store_si256, _mm512_loadu_si512, _mm512_store_si512,
    };

    use crate::{LINE, fetch_to_write, side_by_side};

    /// Lines of a run that are copied in one go, and how far ahead of the stores lines are asked for. The first lines of most
    /// pages are not, as a run goes on elsewhere then: to ask for them too took 1.0 to 1.1 times as long (tried in a build made
    /// for that: no command shows it).
    const LINES: [usize; 4] = [0, LINE, 2 * LINE, 3 * LINE];
    const AHEAD: usize = 8 * LINE;

    /// # Safety
    /// As for [`copy_shared`](super::copy_shared); the CPU has AVX-512 F, and there are no fewer bytes than a line.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn copy_512(dst: *mut u8, src: *const u8, bytes: usize) {
        let lines = |to: *mut u8, from: *const u8| {
            for line in LINES {
                fetch_to_write(to.wrapping_add(AHEAD + line));
            }
            // SAFETY: the lines lie within both; `to` is aligned to one.
            unsafe {
                let vectors = LINES.map(|line| _mm512_loadu_si512(from.add(line).cast()));
                for (line, vector) in LINES.into_iter().zip(vectors) {
                    _mm512_store_si512(to.add(line).cast(), vector);
                }
            }
        };
        // SAFETY: the caller's promise.
        unsafe { copy_runs(dst, src, bytes, LINES.len() * LINE, lines) };
    }

    /// The same by halves of lines, of which more stores wait, so that nothing is gained by asking for lines.
    ///
    /// # Safety
    /// As for [`copy_512`], but the CPU has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn copy_256(dst: *mut u8, src: *const u8, bytes: usize) {
        let line = |to: *mut u8, from: *const u8| {
            // SAFETY: the line lies within both; `to` is aligned to one.
            unsafe {
                let halves = [0, 32].map(|half| _mm256_loadu_si256(from.add(half).cast()));
                _mm256_store_si256(to.cast(), halves[0]);
                _mm256_store_si256(to.add(32).cast(), halves[1]);
            }
        };
        // SAFETY: the caller's promise.
        unsafe { copy_runs(dst, src, bytes, LINE, line) };
    }

    /// Copies by runs of addresses, a `piece` of lines at a time.
    ///
    /// # Safety
    /// As for [`copy_512`], but for the vectors.
    #[inline(always)]
    unsafe fn copy_runs(
        dst: *mut u8,
        src: *const u8,
        bytes: usize,
        piece: usize,
        copy: impl Fn(*mut u8, *const u8),
    ) {
        let head = dst.align_offset(LINE);
        // SAFETY: there is a line, in which the head lies.
        let (to, from) = unsafe {
            core::ptr::copy_nonoverlapping(src, dst, LINE);
            (dst.add(head), src.add(head))
        };
        let rest = bytes - head;
        let done = side_by_side::<4>(rest, piece, |at| {
            copy(to.wrapping_add(at), from.wrapping_add(at))
        });
        // SAFETY: what is left.
        unsafe { core::ptr::copy_nonoverlapping(from.add(done), to.add(done), rest - done) };
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_runs_are_copied(bytes in 64..5 * WORTH, from in 0_usize..64, to in 0_usize..64) {
            if vectors::are_lines() {
                crate::tests::copies(x86::copy_512, bytes, from, to);
            }
            if vectors::are_there() {
                crate::tests::copies(x86::copy_256, bytes, from, to);
            }
        }
    }
}
