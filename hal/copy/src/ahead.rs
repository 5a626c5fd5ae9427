//! What a core asks for before it comes to it.
//!
//! What prefetches for a core stops at the end of a page, and takes the first few lines of the next to see that it is read
//! from end to end. Who reads a long run from memory may ask for these a page ahead. With eight ranks on two cores of a Xeon
//! with AMX-FP16 reduces, reduce_scatters and all_reduces of 4 and 64 MiB took 0.93 to 1.0 of the time so, with two ranks
//! 0.95 to 1.05 (`cargo xtask peers -- --dirty --ranks 2,8 --ops reduce,reduce_scatter,all_reduce --sizes 4M,64M`, in turns
//! with a build without it).

use crate::PAGE;
use crate::past::LINE;

/// Bytes of a page's start that are asked for.
const START: usize = 1024;

/// Asks for the start of the page's worth of bytes that comes one behind `address`. It need be nobody's memory. Any thread.
#[inline]
pub fn fetch_next(address: *const u8) {
    for line in (0..START).step_by(LINE) {
        fetch(address.wrapping_add(PAGE + line));
    }
}

#[inline]
fn fetch(address: *const u8) {
    // SAFETY: a hint, which may name any address.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
