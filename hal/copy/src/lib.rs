//! How a core moves bytes: [`copy`] is `memcpy`, but on processors where that is up to twenty times slower than it could be;
//! [`copy_past`] leaves the caches alone; [`Ways`] tells which of the two suits what another core reads next.
//!
//! C libraries and the kernel copy with one instruction, `rep movsb`, where a processor says that it is fast at it. AMD's
//! since Zen 3 say so, and are, as long as one core's caches hold both ends. But where the destination lies less than
//! [`NEAR`] bytes behind the source, modulo a page, it moves 3 GB/s instead of 60 on Zen 3 (glibc bug 30994; 2.39 no longer
//! uses the instruction there, what most machines run does). That is no rare case: `malloc` gives memory of more than
//! 128 KiB 16 bytes behind a page's start, and what is copied there out of memory that starts with a page is off by just so
//! much. And what comes from memory, or from another core, it fetches slowly: on an EPYC 9004 9 GB/s of what the other core
//! has just written past its caches, where a loop of vectors copies 15, and 34 instead of 42 of what it wrote through them,
//! if the two share a cache. So on such processors a loop of vectors copies all that is longer than 2 KiB.
//! `cargo bench -p unisono-copy` shows it (`offsets` and `fetched`).
//! Intel's copy and reduce faster by several runs of addresses at once, where lines come from memory or another core
//! ([`side_by_side`]): [`copy_shared`] does so between cores.
//!
//! The same holds for the kernel's copies, those of `process_vm_readv` for one. Nothing here changes them, but
//! [`is_slow`] tells of it.
#![allow(unsafe_code, reason = "copies bytes at addresses")]

mod ahead;
mod past;
mod runs;
mod shared;
mod vectors;
mod ways;

pub use ahead::{fetch_to_read, fetch_to_write};
pub use past::{LINE, can_stream, copy_past, fence_streamed, stream_block};
pub use runs::{are_runs_faster, side_by_side};
pub use shared::copy_shared;
pub use ways::{WORTH, Ways};

/// How far behind its source, modulo a page, a destination is too near: the bytes that the instruction moves at once.
pub const NEAR: usize = 32;

/// As far as addresses are compared by what moves the bytes.
const PAGE: usize = 4096;

/// Bytes up to which no C library uses the instruction: glibc's bound is 2112 at the least.
const BLOCK: usize = 2048;

/// Copies `bytes` bytes. Any thread.
///
/// # Safety
/// As for [`core::ptr::copy_nonoverlapping`] of bytes.
#[inline]
pub unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    if bytes > BLOCK && processor::is_affected() {
        // SAFETY: the caller's promise.
        unsafe { copy_long(dst, src, bytes) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { core::ptr::copy_nonoverlapping(src, dst, bytes) };
    }
}

/// Whether one `rep movsb` from `src` to `dst` is slow on this machine. Any thread.
#[inline]
#[must_use]
pub fn is_slow(dst: usize, src: usize) -> bool {
    is_near(dst, src) && processor::is_affected()
}

/// Whether cores of one processor may have no cache in common: AMD's have one for a few cores each. Any thread.
#[must_use]
pub fn has_caches_apart() -> bool {
    processor::is_of_amd_design()
}

/// Whether a core that reads what another has just written takes the line over, so that it can write it at once and the other
/// can't. Seen on a Xeon with AMX-FP16, where who has read 128 KiB writes it again in a quarter of the time
/// (`cargo bench -p unisono-copy --bench fetched`, `written again`), and taken to be so on all of Intel's; of others' nothing
/// is known. Any thread.
#[must_use]
pub fn hands_lines_on() -> bool {
    processor::is_intels()
}

/// Bytes of the second-level cache of a core of such a processor; 0 of others. Any thread.
#[must_use]
pub fn core_cache() -> u64 {
    processor::core_cache()
}

/// Whether the destination lies little behind the source, modulo a page.
#[inline]
fn is_near(dst: usize, src: usize) -> bool {
    (1..NEAR).contains(&(dst.wrapping_sub(src) % PAGE))
}

/// Copies without the instruction.
///
/// # Safety
/// As for [`copy`]; more than a [`BLOCK`].
#[inline(never)]
unsafe fn copy_long(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise; they are there.
    unsafe {
        match vectors::are_there() {
            true => vectors::copy(dst, src, bytes),
            false => copy_in_blocks(dst, src, bytes),
        }
    }
}

/// Copies by calls that are each too short for the instruction.
///
/// # Safety
/// As for [`copy`].
#[cold]
unsafe fn copy_in_blocks(dst: *mut u8, src: *const u8, bytes: usize) {
    let mut done = 0;
    while done < bytes {
        let block = BLOCK.min(bytes - done);
        // SAFETY: the caller's promise, of a part.
        unsafe { core::ptr::copy_nonoverlapping(src.add(done), dst.add(done), block) };
        done += block;
    }
}

/// What the processor says of itself.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod processor {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    use std::sync::OnceLock;

    /// Of the seventh leaf, EBX: `rep movsb` is fast. AMD's have it since Zen 3.
    const ENHANCED: u32 = 1 << 9;
    /// Who makes them: EBX, EDX and ECX of leaf 0. The second has AMD's design.
    const MAKERS: [[u8; 12]; 2] = [*b"AuthenticAMD", *b"HygonGenuine"];

    /// Whether this is one on which C libraries use the instruction, and it is slow between some addresses and out of
    /// what is not in the core's caches. Asked once: within a virtual machine
    /// the question goes to the host.
    pub(super) fn is_affected() -> bool {
        static IS_AFFECTED: OnceLock<bool> = OnceLock::new();
        *IS_AFFECTED.get_or_init(|| {
            is_of_amd_design() && __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx & ENHANCED != 0
        })
    }

    /// Leaf 0x8000_0006 has it in ECX, in KiB in the upper half (AMD64 Architecture Programmer's Manual, volume 3).
    pub(super) fn core_cache() -> u64 {
        const CACHES: u32 = 0x8000_0006;
        match is_of_amd_design() && __cpuid(0x8000_0000).eax >= CACHES {
            true => u64::from(__cpuid(CACHES).ecx >> 16) << 10,
            false => 0,
        }
    }

    pub(super) fn is_of_amd_design() -> bool {
        MAKERS.contains(&maker())
    }

    pub(super) fn is_intels() -> bool {
        maker() == *b"GenuineIntel"
    }

    fn maker() -> [u8; 12] {
        let of_all = __cpuid(0);
        let words = [of_all.ebx, of_all.edx, of_all.ecx].map(u32::to_le_bytes);
        let mut maker = [0; 12];
        maker.copy_from_slice(words.as_flattened());
        maker
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod processor {
    /// Others have no such instruction.
    pub(super) fn is_affected() -> bool {
        false
    }

    pub(super) fn is_of_amd_design() -> bool {
        false
    }

    pub(super) fn is_intels() -> bool {
        false
    }

    pub(super) fn core_cache() -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn near_is_less_than_a_vector_behind_modulo_a_page() {
        for page in [0, PAGE, 7 * PAGE] {
            for offset in [0, 16, 4090] {
                let src = 16 * PAGE + offset;
                let is_near =
                    |distance: isize| is_near((src + page).wrapping_add_signed(distance), src);
                assert!([1, 16, 31].into_iter().all(is_near), "{page} {offset}");
                let others = [-32, -16, -1, 0, 32, 64, 2048];
                assert!(!others.into_iter().any(is_near), "{page} {offset}");
            }
        }
    }

    type Copy = unsafe fn(*mut u8, *const u8, usize);

    /// `bytes` bytes are copied from and to such offsets, and nothing before or behind.
    pub(crate) fn copies(copy: Copy, bytes: usize, from: usize, to: usize) {
        let source: Vec<u8> = (0..64 + bytes).map(|i| (i % 251) as u8 + 1).collect();
        let mut target = vec![0; 128 + bytes];
        // SAFETY: both hold so many bytes there, and are apart.
        unsafe { copy(target[to..].as_mut_ptr(), source[from..].as_ptr(), bytes) };
        let (copied, end) = (&source[from..from + bytes], to + bytes);
        assert_eq!(&target[to..end], copied);
        let mut around = target[..to].iter().chain(&target[end..]);
        assert!(around.all(|byte| *byte == 0));
    }

    proptest! {
        #[test]
        fn bytes_are_copied(bytes in 0_usize..3 * BLOCK, from in 0_usize..64, to in 0_usize..64, way in 0..3) {
            let copy = match way {
                0 => copy_in_blocks as Copy,
                1 if bytes > BLOCK => copy_long,
                _ => copy,
            };
            copies(copy, bytes, from, to);
        }

        #[test]
        fn bytes_are_copied_past_the_caches(bytes in 0_usize..20 * PAGE, from in 0_usize..64, to in 0_usize..64) {
            copies(copy_past, bytes, from, to);
        }
    }
}
