//! Flags and counters as the contract says that SIGNAL and WAIT use them, for the CPU.
#![allow(
    unsafe_code,
    reason = "flags and counters are words at addresses of arenas"
)]

use std::sync::atomic::{AtomicU64, Ordering};

use unisono_abi::ABORT_AHEAD;

/// `unisono_flag_line`, less what is the host's own.
#[repr(C)]
struct Line {
    counter: AtomicU64,
    words: [AtomicU64; 3],
}

impl Line {
    /// Whether other words than these came with it.
    #[inline]
    fn differs(&self, [a, b, c]: &[u64; 3]) -> bool {
        // Word by word: an array would go through memory, from which more is read at once than was written
        // at once, and that waits for the stores.
        let [x, y, z] = &self.words;
        let differing = |own: &u64, other: &AtomicU64| own ^ other.load(Ordering::Relaxed);
        differing(a, x) | differing(b, y) | differing(c, z) != 0
    }
}

/// `unisono_counter`. Atomic as the stream may look at it on another thread; whoever holds the
/// lane's lock writes.
#[repr(C)]
struct Counter {
    value: AtomicU64,
    seen: AtomicU64,
}

/// # Safety
/// The address of a `T` in an arena that stays mapped while the result is used.
#[inline]
unsafe fn at<'a, T>(address: u64) -> &'a T {
    // SAFETY: the caller's promise.
    unsafe { &*(address as usize as *const T) }
}

/// Raises a flag, as SIGNAL does. Who waits for it is still to be rung.
///
/// # Safety
/// A flag and a counter of mapped arenas; the counter is this rank's own, and no stream runs.
#[inline]
pub(in crate::execute) unsafe fn raise(flag: u64, counter: u64, words: Option<&[u64; 3]>) {
    // SAFETY: the caller's promise.
    let (flag, counter): (&Line, &Counter) = unsafe { (at(flag), at(counter)) };
    let value = counter.value.load(Ordering::Relaxed).wrapping_add(1);
    counter.value.store(value, Ordering::Relaxed);
    for (place, word) in flag.words.iter().zip(words.into_iter().flatten()) {
        place.store(*word, Ordering::Relaxed);
    }
    flag.counter.store(value, Ordering::Release);
}

/// Tells by the twin of a flag what [`raise`] has told by that, so that who waits counts both as one.
///
/// # Safety
/// As for [`raise`].
#[inline]
pub(in crate::execute) unsafe fn raise_twin(twin: u64, counter: u64, words: &[u64; 3]) {
    // SAFETY: the caller's promise.
    let (twin, counter): (&Line, &Counter) = unsafe { (at(twin), at(counter)) };
    for (place, word) in twin.words.iter().zip(words) {
        place.store(*word, Ordering::Relaxed);
    }
    let value = counter.value.load(Ordering::Relaxed);
    twin.counter.store(value, Ordering::Release);
}

/// Does what one WAIT does for a flag that is raised once at a time: looks at the flag itself, not first at what was
/// seen of it before. Else as [`pass`].
///
/// # Safety
/// As for [`raise`].
#[inline(always)]
pub(in crate::execute) unsafe fn pass_next(
    flag: u64,
    counter: u64,
    words: Option<&[u64; 3]>,
) -> bool {
    // SAFETY: the caller's promise.
    let (flag, counter): (&Line, &Counter) = unsafe { (at(flag), at(counter)) };
    let value = counter.value.load(Ordering::Relaxed).wrapping_add(1);
    let seen = flag.counter.load(Ordering::Acquire);
    // Behind is far ahead too, in unsigned numbers.
    if seen.wrapping_sub(value) >= ABORT_AHEAD || words.is_some_and(|words| flag.differs(words)) {
        return false;
    }
    counter.value.store(value, Ordering::Relaxed);
    counter.seen.store(seen, Ordering::Relaxed);
    true
}

/// Does what `times` WAITs do, if all of them would be satisfied at once and find these words.
/// Else false, and nothing was done: an abort and words that differ are the stream's to report.
///
/// # Safety
/// As for [`raise`].
#[inline]
pub(in crate::execute) unsafe fn pass(
    flag: u64,
    counter: u64,
    times: u64,
    words: Option<&[u64; 3]>,
) -> bool {
    // SAFETY: the caller's promise.
    let (flag, counter): (&Line, &Counter) = unsafe { (at(flag), at(counter)) };
    let value = counter.value.load(Ordering::Relaxed).wrapping_add(times);
    let ahead = |seen: u64| seen.wrapping_sub(value);
    let mut seen = counter.seen.load(Ordering::Relaxed);
    if ahead(seen) >= ABORT_AHEAD {
        seen = flag.counter.load(Ordering::Acquire);
        // Behind is far ahead too, in unsigned numbers.
        if ahead(seen) >= ABORT_AHEAD {
            return false;
        }
    }
    if words.is_some_and(|words| flag.differs(words)) {
        return false;
    }
    counter.value.store(value, Ordering::Relaxed);
    counter.seen.store(seen, Ordering::Relaxed);
    true
}

/// Whether a WAIT would be satisfied at once, whatever the words are.
///
/// # Safety
/// As for [`raise`].
#[inline]
pub(in crate::execute) unsafe fn is_raised(flag: u64, counter: u64) -> bool {
    // SAFETY: the caller's promise.
    let (flag, counter): (&Line, &Counter) = unsafe { (at(flag), at(counter)) };
    let value = counter.value.load(Ordering::Relaxed).wrapping_add(1);
    flag.counter.load(Ordering::Relaxed).wrapping_sub(value) < ABORT_AHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flag line and two counters, apart.
    #[derive(Default)]
    struct Memory {
        line: [AtomicU64; 8],
        mine: [AtomicU64; 2],
        theirs: [AtomicU64; 2],
    }

    impl Memory {
        fn pass(&self, times: u64, words: Option<[u64; 3]>) -> bool {
            let (line, mine) = (address(&self.line), address(&self.mine));
            // SAFETY: both are as large as what they stand for, and alive.
            unsafe { pass(line, mine, times, words.as_ref()) }
        }

        fn pass_next(&self, words: Option<[u64; 3]>) -> bool {
            let (line, mine) = (address(&self.line), address(&self.mine));
            // SAFETY: as above.
            unsafe { pass_next(line, mine, words.as_ref()) }
        }

        fn is_raised(&self) -> bool {
            // SAFETY: as above.
            unsafe { is_raised(address(&self.line), address(&self.mine)) }
        }

        fn raise(&self, words: Option<[u64; 3]>) {
            let (line, theirs) = (address(&self.line), address(&self.theirs));
            // SAFETY: as above.
            unsafe { raise(line, theirs, words.as_ref()) }
        }
    }

    fn address(words: &[AtomicU64]) -> u64 {
        words.as_ptr() as u64
    }

    #[test]
    fn what_is_raised_passes_once_and_with_its_words() {
        let memory = Memory::default();
        assert!(!memory.pass(1, None), "not yet");
        assert!(!memory.is_raised());
        memory.raise(Some([7, 8, 9]));
        assert!(memory.is_raised());
        assert!(!memory.pass(2, None), "once is not twice");
        assert!(!memory.pass(1, Some([7, 8, 8])), "other words");
        assert!(memory.pass(1, Some([7, 8, 9])));
        assert!(!memory.pass(1, None));
        memory.raise(None);
        memory.raise(None);
        assert!(memory.pass(2, None));
        assert_eq!(memory.mine[0].load(Ordering::Relaxed), 3);
    }

    /// Either way of waiting goes on from where the other was.
    #[test]
    fn who_looks_at_the_flag_itself_passes_what_others_do() {
        let memory = Memory::default();
        assert!(!memory.pass_next(None), "not yet");
        memory.raise(Some([7, 8, 9]));
        assert!(!memory.pass_next(Some([7, 9, 9])), "other words");
        assert!(memory.pass_next(Some([7, 8, 9])));
        assert!(!memory.pass_next(None), "once is not twice");
        memory.raise(None);
        assert!(memory.pass(1, None));
        assert!(!memory.pass_next(None));
        memory.raise(None);
        assert!(memory.pass_next(None));
        assert!(!memory.pass(1, None), "what was seen is what has come");
    }

    #[test]
    fn an_abort_does_not_pass() {
        let memory = Memory::default();
        memory.line[0].fetch_add(unisono_abi::ABORT_STEP, Ordering::SeqCst);
        assert!(!memory.pass(1, None));
        assert!(!memory.pass_next(None));
        assert_eq!(memory.mine[0].load(Ordering::Relaxed), 0);
    }
}
