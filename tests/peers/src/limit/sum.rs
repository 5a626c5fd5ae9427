//! Sums of all ranks' buffers, at the speed that memory allows.

#![allow(unsafe_code, reason = "reads buffers of other threads by address")]

use std::ops::Range;

/// Elements of a part that stays in the first cache while all ranks' are added to it.
const PART: usize = 2048;

/// Writes to `to` the sum of the `range` of each buffer.
///
/// # Safety
/// Each buffer can be read in `range`, `to` can be written for as many elements and lies in none
/// of those ranges, and nobody writes either at the same time.
pub unsafe fn sum(to: *mut f32, buffers: &[*const f32], range: Range<usize>) {
    let (mut at, mut to) = (range.start, to);
    while at < range.end {
        let part = PART.min(range.end - at);
        // SAFETY: inside the range, by the caller's promise.
        let target = unsafe { std::slice::from_raw_parts_mut(to, part) };
        for (index, buffer) in buffers.iter().enumerate() {
            // SAFETY: as above.
            let source = unsafe { std::slice::from_raw_parts(buffer.add(at), part) };
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has it.
                unsafe { wide(target, source, index == 0) };
                continue;
            }
            add(target, source, index == 0);
        }
        (at, to) = (at + part, to.wrapping_add(part));
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide(target: &mut [f32], source: &[f32], first: bool) {
    add(target, source, first);
}

/// Adds, or begins with the first.
#[inline(always)]
fn add(target: &mut [f32], source: &[f32], first: bool) {
    if first {
        target.copy_from_slice(source);
        return;
    }
    for (sum, value) in target.iter_mut().zip(source) {
        *sum += value;
    }
}
