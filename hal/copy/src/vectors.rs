//! Copies by whole vectors, for processors on which the instruction that copies strings is not worth it.

/// What is copied by one turn of the loop.
#[cfg(target_arch = "x86_64")]
const TURN: usize = 128;

/// Whether this CPU has the vectors. Any thread. Not under ThreadSanitizer, which does not see accesses of more than 16 bytes.
pub(crate) fn are_there() -> bool {
    #[cfg(all(target_arch = "x86_64", not(tsan)))]
    {
        is_x86_feature_detected!("avx2")
    }
    #[cfg(not(all(target_arch = "x86_64", not(tsan))))]
    {
        false
    }
}

/// Whether this CPU has vectors of a whole line. As [`are_there`].
#[inline]
pub(crate) fn are_lines() -> bool {
    #[cfg(all(target_arch = "x86_64", not(tsan)))]
    {
        is_x86_feature_detected!("avx512f")
    }
    #[cfg(not(all(target_arch = "x86_64", not(tsan))))]
    {
        false
    }
}

/// Copies `bytes` bytes, no fewer than two turns.
///
/// # Safety
/// As for [`core::ptr::copy_nonoverlapping`] of bytes; [`are_there`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    use core::arch::x86_64::{_mm256_loadu_si256, _mm256_store_si256};

    use crate::LINE;

    debug_assert!(bytes >= 2 * TURN, "both ends are copied as a whole");
    // Stores to whole lines, whatever the loads: a store that crosses lines costs twice.
    let head = dst.align_offset(LINE);
    let turns = (bytes - head) / TURN;
    // SAFETY: the caller's promise; the head is shorter than a line, the tail than a turn, and `bytes` no less than both.
    // Between them every turn lies within, and its stores where `dst` is aligned.
    unsafe {
        core::ptr::copy_nonoverlapping(src, dst, LINE);
        for turn in 0..turns {
            let (to, from) = (dst.add(head + turn * TURN), src.add(head + turn * TURN));
            let vectors = [0, 32, 64, 96].map(|at| _mm256_loadu_si256(from.add(at).cast()));
            for (at, vector) in [0, 32, 64, 96].into_iter().zip(vectors) {
                _mm256_store_si256(to.add(at).cast(), vector);
            }
        }
        let tail = bytes - TURN;
        core::ptr::copy_nonoverlapping(src.add(tail), dst.add(tail), TURN);
    }
}

/// No processor of another architecture has them.
///
/// # Safety
/// Never called: see [`are_there`].
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { core::ptr::copy_nonoverlapping(src, dst, bytes) };
}
