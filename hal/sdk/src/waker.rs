//! The way a plugin ends a host's sleep.
#![allow(
    unsafe_code,
    reason = "a function pointer and a context, both the host's"
)]

use std::ffi::c_void;

/// Ends a host's sleep when armed work may go on: from any thread, but never from inside a call of
/// the host on the same queue. It may be called too often.
///
/// Valid until `disarm` returns or the queue is dropped: keep it no longer than that.
#[derive(Clone, Copy, Debug)]
pub struct Waker {
    wake: unsafe extern "C" fn(*mut c_void),
    context: *mut c_void,
}

// SAFETY: the contract lets any thread call the waker.
unsafe impl Send for Waker {}
// SAFETY: as above; calling it does not change it.
unsafe impl Sync for Waker {}

impl Waker {
    /// Takes the host's waker; `None` if it has no function.
    ///
    /// # Safety
    /// The function may be called with the context, from any thread, as long as the waker is kept.
    #[must_use]
    pub unsafe fn from_raw(raw: &unisono_abi::Waker) -> Option<Self> {
        raw.wake.map(|wake| Self {
            wake,
            context: raw.context,
        })
    }

    /// Ends the sleep. Async-signal-safe; never blocks.
    pub fn wake(&self) {
        // SAFETY: `from_raw`'s caller promised that the pair may be called while it is kept.
        unsafe { (self.wake)(self.context) };
    }
}
