//! Copies to what is handed on: memory that another core reads next, and has mostly read before.
//!
//! Who has read a line has it, and gives it back line by line to who writes it again. Stores go one after the other, so each
//! waits until its line is there, unless it was asked for before. Messages, all_gathers and all_to_alls of 16 and 64 MiB
//! between two ranks on a Xeon with AMX-FP16 took 0.93 to 0.97 of the time so, those of 1 and 4 MiB 0.99 to 1.01 (`cargo xtask
//! peers -- --dirty --ranks 2 --ops send_recv,all_gather,all_to_all --sizes 1M,4M,16M,64M`, in turns with a build without
//! it). It is not worth it without vectors of a whole line: more stores wait, and what was asked for is lost again.

use crate::{copy_fetched, vectors};

/// From so many bytes on.
const WORTH: usize = 8 << 10;

/// Copies `bytes` bytes to where another core reads them next. Any thread.
///
/// # Safety
/// As for [`core::ptr::copy_nonoverlapping`] of bytes.
#[inline]
pub unsafe fn copy_handed(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise; the vectors are there.
    unsafe {
        match bytes >= WORTH && crate::are_runs_faster() && vectors::are_lines() {
            #[cfg(target_arch = "x86_64")]
            true => copy_runs(dst, src, bytes),
            _ => copy_fetched(dst, src, bytes),
        }
    }
}

/// # Safety
/// As for [`copy_handed`]; the vectors are there, and there are no fewer bytes than a line.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn copy_runs(dst: *mut u8, src: *const u8, bytes: usize) {
    use core::arch::x86_64::{_mm512_loadu_si512, _mm512_store_si512};

    use crate::{LINE, fetch_to_write, side_by_side};

    /// Lines of a run that are copied in one go.
    const LINES: [usize; 4] = [0, LINE, 2 * LINE, 3 * LINE];
    /// How far ahead of the stores lines are asked for.
    const AHEAD: usize = 8 * LINE;

    let head = dst.align_offset(LINE);
    // SAFETY: there is a line, in which the head lies.
    let (to, from) = unsafe {
        core::ptr::copy_nonoverlapping(src, dst, LINE);
        (dst.add(head), src.add(head))
    };
    let done = side_by_side::<4>(bytes - head, LINES.len() * LINE, |at| {
        for line in LINES {
            fetch_to_write(to.wrapping_add(at + AHEAD + line));
        }
        // SAFETY: the lines lie within both; `to` is aligned to one.
        unsafe {
            let (to, from) = (to.add(at), from.add(at));
            let lines = LINES.map(|line| _mm512_loadu_si512(from.add(line).cast()));
            for (line, vector) in LINES.into_iter().zip(lines) {
                _mm512_store_si512(to.add(line).cast(), vector);
            }
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
            if vectors::are_lines() {
                crate::tests::copies(copy_runs, bytes, from, to);
            }
        }
    }
}
