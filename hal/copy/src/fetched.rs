//! Copies of what another core has just written, by several [runs of addresses](crate::side_by_side).
//!
//! By four of them two ranks on a Xeon with AMX-FP16 took 0.86 of the time for an all_gather of 256 KiB and 0.81 for a message
//! of as much (`cargo xtask peers -- --dirty --ranks 2 --ops all_gather,send_recv --sizes 64K,256K`, in turns with a build
//! without it). Stores are to whole lines, or all of that is lost again.

use crate::{copy, vectors};

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
        match bytes >= WORTH && crate::are_runs_faster() && vectors::are_there() {
            #[cfg(target_arch = "x86_64")]
            true => copy_runs(dst, src, bytes),
            _ => copy(dst, src, bytes),
        }
    }
}

/// # Safety
/// As for [`copy_fetched`]; the vectors are there, and there are no fewer bytes than a line.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn copy_runs(dst: *mut u8, src: *const u8, bytes: usize) {
    use core::arch::x86_64::{_mm256_loadu_si256, _mm256_store_si256};

    use crate::{LINE, side_by_side};

    let head = dst.align_offset(LINE);
    // SAFETY: there is a line, in which the head lies.
    let (to, from) = unsafe {
        core::ptr::copy_nonoverlapping(src, dst, LINE);
        (dst.add(head), src.add(head))
    };
    let done = side_by_side::<4>(bytes - head, LINE, |at| {
        // SAFETY: the line lies within both; `to` is aligned to one.
        unsafe {
            let (to, from) = (to.add(at), from.add(at));
            let halves = [0, 32].map(|half| _mm256_loadu_si256(from.add(half).cast()));
            _mm256_store_si256(to.cast(), halves[0]);
            _mm256_store_si256(to.add(32).cast(), halves[1]);
        }
    });
    // SAFETY: what is left.
    unsafe { core::ptr::copy_nonoverlapping(from.add(done), to.add(done), bytes - head - done) };
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_runs_are_copied(bytes in 64..5 * WORTH, from in 0_usize..64, to in 0_usize..64) {
            if vectors::are_there() {
                crate::tests::copies(copy_runs, bytes, from, to);
            }
        }
    }
}
