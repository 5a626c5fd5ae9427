//! Whether this process was forked from the one that made a communicator.
//!
//! A forked child has copies of the mappings and descriptors but none of the threads. It may not
//! touch them; it gets an error instead.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How often this process was forked since its ancestor first asked. Two calls give different
/// numbers if a fork lies between them.
#[allow(unsafe_code, reason = "the C library is the one who knows of forks")]
pub(crate) fn generation() -> u32 {
    static REGISTERED: OnceLock<()> = OnceLock::new();
    REGISTERED.get_or_init(|| {
        // SAFETY: the handler only adds to an atomic, which is safe in a forked child.
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
    GENERATION.load(Ordering::Relaxed)
}

/// Cheaper: for callers that have asked [`generation`] before.
pub(crate) fn is(generation: u32) -> bool {
    GENERATION.load(Ordering::Relaxed) == generation
}

#[allow(unsafe_code, reason = "called by the C library")]
unsafe extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
