//! Flags, counters and windows: words of host memory that the link itself reads and writes.
//!
//! All of it is memory that the host named. A command's flags live until the command is complete or
//! the link is gone, a window's bytes until it is closed or the link is gone: that is the contract's
//! promise, and every `SAFETY` at the callers leans on it.
#![allow(
    unsafe_code,
    reason = "flags and windows are addresses in the contract"
)]

use std::sync::atomic::{AtomicU64, Ordering, fence};

use unisono_plugin::abi::{ABORT_AHEAD, Counter, FlagLine};

/// What a flag says to one who waits for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    No,
    Yes,
    /// The flag's owner has ended all waits.
    Aborted,
}

impl Reached {
    const fn of(flag: u64, value: u64) -> Self {
        let ahead = flag.wrapping_sub(value);
        if ahead.cast_signed() < 0 {
            Self::No
        } else if ahead >= ABORT_AHEAD {
            Self::Aborted
        } else {
            Self::Yes
        }
    }
}

/// One more on a counter: the value to wait for, or to signal.
///
/// # Safety
/// `counter` is the address of a living [`Counter`] that only this queue uses.
pub(crate) unsafe fn begin_wait(counter: u64) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe {
        let value = &raw mut (*(counter as *mut Counter)).value;
        *value = (*value).wrapping_add(1);
        *value
    }
}

/// Whether a flag has reached a value. What was read of it stays in the counter's `seen`.
///
/// # Safety
/// As for [`begin_wait`]; `flag` is the address of a living [`FlagLine`].
pub(crate) unsafe fn reached(flag: u64, counter: u64, value: u64) -> Reached {
    // SAFETY: by the caller's promise. Others change the flag, so it is read atomically.
    unsafe {
        let seen = &raw mut (*(counter as *mut Counter)).seen;
        let known = Reached::of(*seen, value);
        if known != Reached::No {
            return known;
        }
        *seen = counter_of(flag).load(Ordering::Acquire);
        Reached::of(*seen, value)
    }
}

/// The words beside a flag that was reached.
///
/// # Safety
/// `flag` is the address of a living [`FlagLine`].
pub(crate) unsafe fn words(flag: u64) -> [u64; 3] {
    fence(Ordering::Acquire);
    // SAFETY: by the caller's promise; all who share the words use them as atomics.
    std::array::from_fn(|i| unsafe { word_of(flag, i).load(Ordering::Relaxed) })
}

/// A local signal: one more on the counter, and the flag is set to it; an abort of the flag stays.
///
/// # Safety
/// As for [`reached`].
pub(crate) unsafe fn signal(flag: u64, counter: u64) {
    // SAFETY: by the caller's promise.
    let (value, flag) = unsafe { (begin_wait(counter), counter_of(flag)) };
    let set = |now| (Reached::of(now, value) != Reached::Aborted).then_some(value);
    let _ = flag.fetch_update(Ordering::Release, Ordering::Relaxed, set);
}

/// A peer's signal: the words, then one more on the flag.
///
/// # Safety
/// `flag` is the address of a living [`FlagLine`].
pub(crate) unsafe fn raise(flag: u64, words: Option<[u64; 3]>) {
    // SAFETY: by the caller's promise.
    unsafe {
        for (i, word) in words.iter().flatten().enumerate() {
            word_of(flag, i).store(*word, Ordering::Relaxed);
        }
        counter_of(flag).fetch_add(1, Ordering::Release);
    }
}

/// Copies bytes between places that do not overlap.
///
/// # Safety
/// As many bytes are readable at `from` and writable at `to`, and nobody else writes them meanwhile.
pub(crate) unsafe fn copy(from: u64, to: u64, bytes: u64) {
    // SAFETY: by the caller's promise.
    unsafe {
        std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes as usize);
    }
}

unsafe fn counter_of<'a>(flag: u64) -> &'a AtomicU64 {
    // SAFETY: the callers' promise.
    unsafe { AtomicU64::from_ptr(&raw mut (*(flag as *mut FlagLine)).counter) }
}

unsafe fn word_of<'a>(flag: u64, index: usize) -> &'a AtomicU64 {
    // SAFETY: the callers' promise; the index is below three.
    unsafe { AtomicU64::from_ptr(&raw mut (*(flag as *mut FlagLine)).words[index]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_count_remember_and_end_by_abort_and_signals_keep_it() {
        let mut line = FlagLine {
            counter: 1,
            words: [0; 3],
            reserved: [0; 4],
        };
        let mut counters = [Counter { value: 0, seen: 0 }; 2];
        let flag = &raw mut line as u64;
        let [wait, done] = [0, 1].map(|i| &raw mut counters[i] as u64);
        // SAFETY: all of it lives to the end of the test.
        unsafe {
            assert_eq!(begin_wait(wait), 1);
            assert_eq!(reached(flag, wait, 1), Reached::Yes);
            assert_eq!(begin_wait(wait), 2);
            assert_eq!(reached(flag, wait, 2), Reached::No);
            raise(flag, Some([7, 8, 9]));
            assert_eq!(reached(flag, wait, 2), Reached::Yes);
            assert_eq!(words(flag), [7, 8, 9]);
            // What was seen is not read again.
            line.counter = 0;
            assert_eq!(reached(flag, wait, 2), Reached::Yes);
            signal(flag, done);
            assert_eq!(line.counter, 1);
            line.counter += 1 << 62;
            assert_eq!(reached(flag, wait, 3), Reached::Aborted);
            signal(flag, done);
        }
        assert_eq!(line.counter, (1 << 62) + 1);
        assert_eq!(counters[1].value, 2);
    }

    #[test]
    fn counters_wrap() {
        assert_eq!(Reached::of(u64::MAX, 0), Reached::No);
        assert_eq!(Reached::of(0, u64::MAX), Reached::Yes);
        assert_eq!(Reached::of(3, 3), Reached::Yes);
    }
}
