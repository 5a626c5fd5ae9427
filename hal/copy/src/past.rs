//! Stores past the caches: for what is not read again soon, or next by a core that is far away.
//!
//! A streaming store writes whole cache lines to memory without first reading them, which saves a
//! third of the traffic of a large copy, and leaves the caches to others. It is weakly ordered:
//! [`fence_streamed`] must come before the flag that tells of it.

use crate::{are_runs_faster, copy, vectors};

/// How far ahead of the loads to prefetch: the hardware stops at each page.
const AHEAD: usize = 512;

/// From so many bytes on several [runs of addresses](crate::side_by_side) are worth it.
const WORTH: usize = 32 << 10;

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// Whether this CPU has streaming stores of whole vectors. Any thread.
///
/// Not under ThreadSanitizer, nor under Miri: they do not see them, and what races with them would go unseen.
#[inline]
#[must_use]
pub fn can_stream() -> bool {
    #[cfg(all(target_arch = "x86_64", not(tsan), not(miri)))]
    {
        is_x86_feature_detected!("avx2")
    }
    #[cfg(not(all(target_arch = "x86_64", not(tsan), not(miri))))]
    {
        false
    }
}

/// Orders this thread's streaming stores before its later stores.
pub fn fence_streamed() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64.
    unsafe {
        core::arch::x86_64::_mm_sfence();
    }
}

/// Copies `bytes` bytes past the caches, where the CPU can. A later store of this thread that releases tells of them. Any
/// thread.
///
/// # Safety
/// Both pointers are good for `bytes` bytes, at any alignment, do not overlap, and nobody else
/// writes there meanwhile or reads `dst`.
pub unsafe fn copy_past(dst: *mut u8, src: *const u8, bytes: usize) {
    if !can_stream() {
        // SAFETY: the caller's contract.
        unsafe { copy(dst, src, bytes) };
        return;
    }
    let head = dst.align_offset(LINE).min(bytes);
    // SAFETY: the caller's contract; the head ends where `dst` is aligned. The vectors are there.
    unsafe {
        core::ptr::copy_nonoverlapping(src, dst, head);
        let (dst, src, bytes) = (dst.add(head), src.add(head), bytes - head);
        match bytes >= WORTH && are_runs_faster() && vectors::are_lines() {
            #[cfg(target_arch = "x86_64")]
            true => x86::stream_runs(dst, src, bytes),
            _ => stream::<AHEAD>(dst, src, bytes),
        }
    }
    fence_streamed();
}

/// Streams the whole lines of `bytes` bytes that the first-level cache holds, and copies the rest. No fence. Any thread.
///
/// # Safety
/// As for [`copy_past`]; `dst` is 64-byte aligned.
#[inline]
pub unsafe fn stream_block(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's contract.
    unsafe { stream::<0>(dst, src, bytes) };
}

/// The same from anywhere: asks for what lies so far ahead, if it is not 0.
///
/// # Safety
/// As for [`stream_block`].
#[inline]
unsafe fn stream<const FETCHED: usize>(dst: *mut u8, src: *const u8, bytes: usize) {
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if can_stream() {
        let lines = bytes / LINE;
        // SAFETY: the caller's contract; the CPU has what the function is compiled for.
        unsafe {
            match vectors::are_lines() {
                true => x86::stream_512::<FETCHED>(dst, src, lines),
                false => x86::stream_256::<FETCHED>(dst, src, lines),
            }
        }
        done = lines * LINE;
    }
    // SAFETY: the caller's contract; the rest begins where the lines end.
    unsafe { core::ptr::copy_nonoverlapping(src.add(done), dst.add(done), bytes - done) };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::{
        _mm256_loadu_si256, _mm256_stream_si256, _mm512_loadu_si512, _mm512_stream_si512,
    };

    use super::LINE;
    use crate::{fetch_to_read, side_by_side};

    /// # Safety
    /// Both good for `lines` lines, `dst` aligned to one; the CPU has AVX-512 F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn stream_512<const FETCHED: usize>(
        dst: *mut u8,
        src: *const u8,
        lines: usize,
    ) {
        for offset in (0..lines * LINE).step_by(LINE) {
            if FETCHED > 0 {
                fetch_to_read(src.wrapping_add(offset + FETCHED));
            }
            // SAFETY: the line lies within both.
            unsafe {
                let line = _mm512_loadu_si512(src.add(offset).cast());
                _mm512_stream_si512(dst.add(offset).cast(), line);
            }
        }
    }

    /// # Safety
    /// Both good for `lines` lines, `dst` aligned to one; the CPU has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn stream_256<const FETCHED: usize>(
        dst: *mut u8,
        src: *const u8,
        lines: usize,
    ) {
        for offset in (0..lines * LINE).step_by(LINE) {
            if FETCHED > 0 {
                fetch_to_read(src.wrapping_add(offset + FETCHED));
            }
            // SAFETY: the line lies within both.
            unsafe {
                let low = _mm256_loadu_si256(src.add(offset).cast());
                let high = _mm256_loadu_si256(src.add(offset + LINE / 2).cast());
                _mm256_stream_si256(dst.add(offset).cast(), low);
                _mm256_stream_si256(dst.add(offset + LINE / 2).cast(), high);
            }
        }
    }

    /// By several runs of addresses. A copy of 64 MiB from memory takes 0.8 of the time so while another core makes one, too
    /// (seen in a program made for that: no command shows it).
    ///
    /// # Safety
    /// Both good for `bytes` bytes, `dst` aligned to a line; the CPU has AVX-512 F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn stream_runs(dst: *mut u8, src: *const u8, bytes: usize) {
        const LINES: [usize; 2] = [0, LINE];

        let done = side_by_side::<4>(bytes, LINES.len() * LINE, |at| {
            // SAFETY: the lines lie within both.
            unsafe {
                let (to, from) = (dst.add(at), src.add(at));
                let lines = LINES.map(|line| _mm512_loadu_si512(from.add(line).cast()));
                for (line, vector) in LINES.into_iter().zip(lines) {
                    _mm512_stream_si512(to.add(line).cast(), vector);
                }
            }
        });
        // SAFETY: what is left, which begins with a line.
        unsafe { super::stream::<0>(dst.add(done), src.add(done), bytes - done) };
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_runs_are_streamed(bytes in 0_usize..20 << 10, from in 0_usize..64) {
            if vectors::are_lines() && can_stream() {
                crate::tests::copies(in_runs, bytes + LINE, from, 0);
            }
        }
    }

    /// What lies before the first line is copied.
    unsafe fn in_runs(dst: *mut u8, src: *const u8, bytes: usize) {
        let head = dst.align_offset(LINE);
        // SAFETY: the caller's promise; there is a line, in which the head lies.
        unsafe {
            core::ptr::copy_nonoverlapping(src, dst, head);
            x86::stream_runs(dst.add(head), src.add(head), bytes - head);
        }
        fence_streamed();
    }
}
