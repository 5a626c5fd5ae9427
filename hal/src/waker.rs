//! What a plugin calls when an armed queue can go on.

#![allow(
    unsafe_code,
    reason = "hands a Rust closure to C as a function and a context"
)]

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use unisono_abi as abi;

/// A function that wakes whoever sleeps.
///
/// It is called on any thread, perhaps in a signal handler: it must be async-signal-safe (an
/// atomic, a futex, a write to an eventfd), must not block and must not call a queue.
#[derive(Clone)]
pub struct Waker(Arc<Inner>);

struct Inner {
    raw: abi::Waker,
    wake: Box<dyn Fn() + Send + Sync>,
}

// SAFETY: `raw.context` points to this very `Inner`, which is immutable, and whose closure is
// `Send + Sync`.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Waker {
    /// A waker that calls `wake`.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        let wake = Box::new(wake);
        Self(Arc::new_cyclic(|weak: &std::sync::Weak<Inner>| Inner {
            raw: abi::Waker {
                wake: Some(trampoline),
                context: weak.as_ptr().cast_mut().cast(),
            },
            wake,
        }))
    }

    /// Wakes.
    pub fn wake(&self) {
        (self.0.wake)();
    }

    /// The C struct. It is valid as long as a clone of this waker lives.
    pub(crate) fn raw(&self) -> *const abi::Waker {
        &raw const self.0.raw
    }

    /// Whether both are clones of one waker.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Waker").field(&Arc::as_ptr(&self.0)).finish()
    }
}

unsafe extern "C" fn trampoline(context: *mut c_void) {
    // SAFETY: the context is the `Inner` that this waker's queue keeps alive while it is armed.
    let inner = unsafe { &*context.cast::<Inner>() };
    // A panic cannot be reported from here and must not cross.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (inner.wake)()));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn the_c_side_calls_the_closure_and_a_panic_stays_inside() {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let waker = Waker::new(|| {
            if CALLS.fetch_add(1, Ordering::Relaxed) == 1 {
                std::panic::resume_unwind(Box::new("no"));
            }
        });
        // SAFETY: the waker lives.
        let raw = unsafe { *waker.raw() };
        for _ in 0..3 {
            // SAFETY: as above.
            unsafe { raw.wake.unwrap()(raw.context) };
        }
        assert_eq!(CALLS.load(Ordering::Relaxed), 3);
    }
}
