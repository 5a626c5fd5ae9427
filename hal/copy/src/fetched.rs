//! Copies of what another core has just written.
//!
//! A core asks for few lines at a time, and what prefetches for it stops at the end of a page. So where each line comes from
//! another core, one run of addresses does not keep it busy: by four of them, a page apart, two ranks on a Xeon with
//! AMX-FP16 took 0.86 of the time for an all_gather of 256 KiB and 0.81 for a message of as much
//! (`cargo xtask peers -- --dirty --ranks 2 --ops all_gather,send_recv --sizes 64K,256K`, in turns with a build without it).
//! Stores are to whole lines, or all of that is lost again. Messages and broadcasts of 2 and 4 MiB took 0.93 to 0.95 of the
//! time when streams copied so, too, longer and other calls 0.97 to 1.02; so streams need not say who wrote what they copy.

use crate::copy;

/// Runs of addresses that are copied side by side.
#[cfg(target_arch = "x86_64")]
const RUNS: usize = 4;
/// From one of them to the next at most: a page.
#[cfg(target_arch = "x86_64")]
const APART: usize = 4096;
/// From so many bytes on it is worth it: a message of 64 KiB in puts of 16 KiB took 1.2 times as long so (likewise).
const WORTH: usize = 32 << 10;

/// Copies `bytes` bytes that another core has written and still has. Any thread.
///
/// # Safety
/// As for [`core::ptr::copy_nonoverlapping`] of bytes.
#[inline]
pub unsafe fn copy_fetched(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise; the vectors are there.
    unsafe {
        match bytes >= WORTH && is_faster() {
            true => copy_side_by_side(dst, src, bytes),
            false => copy(dst, src, bytes),
        }
    }
}

/// Whether this processor is one where it was seen to be faster, and has the vectors.
#[cfg(target_arch = "x86_64")]
fn is_faster() -> bool {
    use std::sync::OnceLock;

    static IS_FASTER: OnceLock<bool> = OnceLock::new();
    *IS_FASTER.get_or_init(|| crate::hands_lines_on() && crate::vectors::are_there())
}

#[cfg(not(target_arch = "x86_64"))]
fn is_faster() -> bool {
    false
}

/// Copies several runs of addresses at once.
///
/// # Safety
/// As for [`copy_fetched`]; the vectors are there, and there are no fewer bytes than [`WORTH`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn copy_side_by_side(dst: *mut u8, src: *const u8, bytes: usize) {
    use core::arch::x86_64::{_mm256_loadu_si256, _mm256_store_si256};

    use crate::LINE;

    debug_assert!(bytes >= WORTH, "each run has lines");
    let head = dst.align_offset(LINE);
    // SAFETY: the head is shorter than a line, of which there are many.
    unsafe { core::ptr::copy_nonoverlapping(src, dst, LINE) };
    let mut done = head;
    while bytes - done >= RUNS * LINE {
        let apart = APART.min((bytes - done) / RUNS / LINE * LINE);
        for line in (0..apart).step_by(LINE) {
            for run in 0..RUNS {
                let at = done + run * apart + line;
                // SAFETY: the runs end where `bytes` do or before; `dst` is aligned there.
                unsafe {
                    let (to, from) = (dst.add(at), src.add(at));
                    let halves = [0, 32].map(|half| _mm256_loadu_si256(from.add(half).cast()));
                    _mm256_store_si256(to.cast(), halves[0]);
                    _mm256_store_si256(to.add(32).cast(), halves[1]);
                }
            }
        }
        done += RUNS * apart;
    }
    // SAFETY: what is left.
    unsafe { core::ptr::copy_nonoverlapping(src.add(done), dst.add(done), bytes - done) };
}

/// No processor of another architecture has them.
///
/// # Safety
/// Never called: see [`is_faster`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_side_by_side(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy(dst, src, bytes) };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_runs_are_copied(bytes in WORTH..5 * WORTH, from in 0_usize..64, to in 0_usize..64) {
            let source: Vec<u8> = (0..64 + bytes).map(|i| (i % 251) as u8 + 1).collect();
            let mut target = vec![0; 128 + bytes];
            if !crate::vectors::are_there() {
                return Ok(());
            }
            // SAFETY: both hold so many bytes there, and are apart; the vectors are there.
            unsafe { copy_side_by_side(target[to..].as_mut_ptr(), source[from..].as_ptr(), bytes) };
            crate::tests::check(&source[from..from + bytes], &target, to);
        }
    }
}
