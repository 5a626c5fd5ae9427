//! The two fences of the [`protocol`](super::protocol): a dear one for who is about to sleep, so
//! that the one for who rings costs nothing.
//!
//! A full fence waits until earlier stores are in the cache, which for a flag that another core reads
//! is the time that its line takes between cores: as long as a small message itself. Linux can have
//! the sleeper pay for both (`membarrier(2)`): its `GLOBAL_EXPEDITED` command makes every running
//! thread of every registered process pass a full barrier before it returns. Where that barrier falls
//! in the ringer's program decides:
//!
//! - before it raises the flag: it then looks at the word after the sleeper set its bit, and sees it;
//! - after it raised the flag: the sleeper looks at the flag after that, and sees it raised.
//!
//! Hence a ringer needs no fence of its own, but the compiler's, if it is registered and the bell's
//! owner calls membarrier before it sleeps. Both are settled before the first ring; where either is
//! missing (an old kernel, a sandbox that forbids the call) the ringer fences.

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence, fence};

use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};

/// Whether this process lets sleepers of others fence for it, and can fence for others.
pub(super) fn is_shared() -> bool {
    static SHARED: OnceLock<bool> = OnceLock::new();
    *SHARED.get_or_init(|| {
        let needed = MembarrierQuery::GLOBAL_EXPEDITED | MembarrierQuery::REGISTER_GLOBAL_EXPEDITED;
        // ThreadSanitizer knows of no barrier but its own.
        !cfg!(tsan)
            && membarrier_query().contains(needed)
            && membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
    })
}

/// Between setting the sleeper's bit and the last look at the flag. False if it could not be done, and
/// nobody may sleep.
pub(super) fn before_sleep() -> bool {
    fence(Ordering::SeqCst);
    !is_shared() || membarrier(MembarrierCommand::GlobalExpedited).is_ok()
}

/// Between raising flags and looking at words; `shared` if all their owners, and this process, have
/// agreed to it.
#[inline]
pub(super) fn after_raise(shared: bool) {
    if shared {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    /// The store-buffering test that the two fences are for: never do both sides miss the other.
    #[test]
    fn one_of_the_two_sees_the_other() {
        const ROUNDS: u32 = 2_000;
        let shared = is_shared();
        let (flag, word) = (AtomicU32::new(0), AtomicU32::new(0));
        let (saw_flag, saw_word) = (AtomicU32::new(0), AtomicU32::new(0));
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    start.wait();
                    flag.store(round, Ordering::Release);
                    after_raise(shared);
                    saw_word.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
                    start.wait();
                }
            });
            for round in 1..=ROUNDS {
                start.wait();
                word.store(round, Ordering::Relaxed);
                assert!(before_sleep());
                saw_flag.store(flag.load(Ordering::Acquire), Ordering::Relaxed);
                start.wait();
                let saw = [&saw_flag, &saw_word].map(|saw| saw.load(Ordering::Relaxed) == round);
                assert!(saw[0] || saw[1], "round {round}: both missed the other");
            }
        });
    }
}
