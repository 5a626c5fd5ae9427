//! What a core asks for before it comes to it.

/// Asks for a cache line that is about to be read. Hints of no effect but on time: any address, any thread.
#[inline(always)]
pub fn fetch_to_read(address: *const u8) {
    // SAFETY: a hint: it changes no memory and never faults.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("prefetcht0 [{}]", in(reg) address.addr(), options(nomem, nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Asks for a cache line that is about to be written, so that no other core has it by then. As [`fetch_to_read`].
#[inline(always)]
pub fn fetch_to_write(address: *const u8) {
    // SAFETY: as in `fetch_to_read`. Processors that do not know it do nothing.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) address.addr(), options(nomem, nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{}]", in(reg) address.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}
