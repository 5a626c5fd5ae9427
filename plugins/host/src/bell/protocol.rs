//! How a sleeper tells that it sleeps, and how a ringer wakes it, without losing a wake-up.
//!
//! One word: two bits say how the bell's owner sleeps, the rest counts the rings. The two sides are
//! the two halves of a store-buffering test, each with a full fence between its halves:
//!
//! | sleeper                       | ringer                      |
//! |-------------------------------|-----------------------------|
//! | set its bit in the word       | raise the flag              |
//! | fence                         | fence                       |
//! | look at the flag once more    | look at the word            |
//! | sleep while the word is equal | clear the bits, count, wake |
//!
//! So at least one of them sees the other. The count makes each sleep's word unlike any before it:
//! who is about to sleep on a word from before a ring does not fall asleep.
//!
//! Generic over the atomic, so that the same code runs on shared memory and under the model checker.

/// A thread of the owner sleeps on the word as a futex.
pub(crate) const FUTEX: u32 = 1;
/// A thread of the owner sleeps on the pipe.
pub(crate) const PIPE: u32 = 2;
const MODES: u32 = FUTEX | PIPE;
/// One ring.
const RING: u32 = MODES + 1;

/// A 32-bit atomic word.
pub(crate) trait Word {
    /// A relaxed load.
    fn load(&self) -> u32;
    /// Sets bits, sequentially consistent; the value before.
    fn set(&self, bits: u32) -> u32;
    /// Clears bits, sequentially consistent.
    fn clear(&self, bits: u32);
    /// Replaces `old` by `new`, sequentially consistent; the value found if it is not `old`.
    fn replace(&self, old: u32, new: u32) -> Result<u32, u32>;
    /// A full fence: the sleeper's between its bit and its last look, the ringer's between its flags
    /// and its look at the word.
    fn fence();
}

impl Word for std::sync::atomic::AtomicU32 {
    #[inline]
    fn load(&self) -> u32 {
        self.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn set(&self, bits: u32) -> u32 {
        self.fetch_or(bits, std::sync::atomic::Ordering::SeqCst)
    }

    fn clear(&self, bits: u32) {
        self.fetch_and(!bits, std::sync::atomic::Ordering::SeqCst);
    }

    fn replace(&self, old: u32, new: u32) -> Result<u32, u32> {
        use std::sync::atomic::Ordering::{Relaxed, SeqCst};
        self.compare_exchange(old, new, SeqCst, Relaxed)
    }

    #[inline]
    fn fence() {
        // The ringer's could be the sleeper's to pay for (membarrier(2), GLOBAL_EXPEDITED), but Linux 6.18
        // passes over a core on which a thread of the same process has ended just before: of 50,000
        // rounds in which each side looked for the other's store, up to 14 were missed by both.
        #[cfg(not(all(target_arch = "x86_64", not(tsan))))]
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        // What the compiler makes of that, MFENCE, takes about twice as long on a Xeon as a locked instruction. Those order as much, but for stores past the caches, which who makes them fences.
        // SAFETY: a word of this thread's own stack keeps its value. It may touch memory, as far as the compiler knows.
        #[cfg(all(target_arch = "x86_64", not(tsan)))]
        unsafe {
            std::arch::asm!("lock or dword ptr [rsp], 0", options(nostack));
        }
    }
}

/// The owner's armed sleepers, by way. Lives under a lock of the owner's.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    futex: u32,
    pipe: u32,
}

impl Sleepers {
    fn count(&mut self, mode: u32) -> &mut u32 {
        if mode == FUTEX {
            &mut self.futex
        } else {
            &mut self.pipe
        }
    }

    /// Prepares one sleep in a way (`FUTEX` or `PIPE`). The word's value to sleep on, or `None` if
    /// `ready` says that what it would wait for has come.
    ///
    /// Also `None` while another sleeper that was rung has not left: one thread may sleep for
    /// several, and must not mix words from before and after a ring.
    pub(crate) fn arm<W: Word>(
        &mut self,
        word: &W,
        mode: u32,
        ready: impl FnOnce() -> bool,
    ) -> Option<u32> {
        if *self.count(mode) > 0 && word.load() & mode == 0 {
            return None;
        }
        let value = word.set(mode) | mode;
        *self.count(mode) += 1;
        W::fence();
        if ready() {
            self.leave(word, mode);
            return None;
        }
        Some(value)
    }

    /// Ends one sleep; `true` if it was the last of its way.
    pub(crate) fn leave<W: Word>(&mut self, word: &W, mode: u32) -> bool {
        let count = self.count(mode);
        *count = count.saturating_sub(1);
        let last = *count == 0;
        if last {
            word.clear(mode);
        }
        last
    }
}

/// After a flag was raised: the ways in which the owner slept and must now be woken, 0 if it did
/// not. Of several ringers one gets them.
#[inline]
pub(crate) fn ring<W: Word>(word: &W) -> u32 {
    W::fence();
    look(word)
}

/// The second half of [`ring`], for several bells after one fence.
#[inline]
pub(crate) fn look<W: Word>(word: &W) -> u32 {
    let value = word.load();
    if value & MODES == 0 {
        0
    } else {
        claim(word, value)
    }
}

#[cold]
fn claim<W: Word>(word: &W, mut value: u32) -> u32 {
    while value & MODES != 0 {
        match word.replace(value, (value & !MODES).wrapping_add(RING)) {
            Ok(before) => return before & MODES,
            Err(found) => value = found,
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn a_ring_wakes_all_ways_once() {
        let word = AtomicU32::new(0);
        let mut sleepers = Sleepers::default();
        assert_eq!(ring(&word), 0);
        let first = sleepers.arm(&word, FUTEX, || false);
        assert_eq!(first, Some(FUTEX));
        assert!(sleepers.arm(&word, PIPE, || false).is_some());
        assert_eq!(ring(&word), FUTEX | PIPE);
        assert_eq!(ring(&word), 0, "one ringer claims the wake-up");
        assert_ne!(Some(word.load(std::sync::atomic::Ordering::Relaxed)), first);
    }

    #[test]
    fn the_word_after_a_ring_is_new() {
        let word = AtomicU32::new(0);
        let mut sleepers = Sleepers::default();
        let before = sleepers.arm(&word, FUTEX, || false);
        assert_eq!(ring(&word), FUTEX);
        assert_eq!(
            sleepers.arm(&word, FUTEX, || false),
            None,
            "the rung sleeper has not left"
        );
        assert!(sleepers.leave(&word, FUTEX));
        let after = sleepers.arm(&word, FUTEX, || false);
        assert!(after.is_some() && after != before);
    }

    #[test]
    fn what_is_ready_does_not_sleep_and_leaves_no_trace() {
        let word = AtomicU32::new(0);
        let mut sleepers = Sleepers::default();
        assert_eq!(sleepers.arm(&word, FUTEX, || true), None);
        assert_eq!(ring(&word), 0);
    }

    #[test]
    fn the_last_of_a_way_clears_it() {
        let word = AtomicU32::new(0);
        let mut sleepers = Sleepers::default();
        for _ in 0..2 {
            assert!(sleepers.arm(&word, PIPE, || false).is_some());
        }
        assert!(!sleepers.leave(&word, PIPE));
        assert_eq!(word.load(std::sync::atomic::Ordering::Relaxed) & PIPE, PIPE);
        assert!(sleepers.leave(&word, PIPE));
        assert_eq!(ring(&word), 0);
    }

    #[test]
    fn rings_are_counted_around_the_end() {
        let word = AtomicU32::new(u32::MAX);
        assert_eq!(ring(&word), FUTEX | PIPE);
        assert_eq!(word.into_inner(), 0);
    }
}
