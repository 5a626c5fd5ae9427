//! Flags and windows: the words of host memory that a link itself reads and writes.
//!
//! All of it is memory that the host process named: a command's flags are alive until the command
//! is complete or the link is gone, a window's bytes until it is closed or the link is gone. That is
//! the contract's promise, and every `SAFETY` here and at the callers leans on it.
#![allow(
    unsafe_code,
    reason = "flag lines and windows are addresses in the contract"
)]

use std::sync::atomic::{AtomicU64, Ordering, fence};

use unisono_plugin::abi::{ABORT_AHEAD, Counter, FlagLine};

/// What a flag says to one who waits for `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    No,
    Yes,
    /// The owner of the flag ended all waits.
    Aborted,
}

fn judge(flag: u64, value: u64) -> Reached {
    match flag.wrapping_sub(value) {
        ahead if ahead.cast_signed() < 0 => Reached::No,
        ahead if ahead >= ABORT_AHEAD => Reached::Aborted,
        _ => Reached::Yes,
    }
}

/// Begins a WAIT: `counter.value += 1`; returns what to wait for.
///
/// # Safety
/// `counter` is the address of a living [`Counter`] that only this queue uses.
pub(crate) unsafe fn begin_wait(counter: u64) -> u64 {
    let counter = counter as *mut Counter;
    // SAFETY: by the caller's promise.
    unsafe {
        (*counter).value = (*counter).value.wrapping_add(1);
        (*counter).value
    }
}

/// Whether a flag has reached `value`; what was read of it is kept in the counter's `seen`.
///
/// # Safety
/// As for [`begin_wait`]; `flag` is the address of a living [`FlagLine`].
pub(crate) unsafe fn reached(flag: u64, counter: u64, value: u64) -> Reached {
    let (flag, counter) = (flag as *mut FlagLine, counter as *mut Counter);
    // SAFETY: by the caller's promise. Others change the flag's counter, so it is read atomically.
    unsafe {
        match judge((*counter).seen, value) {
            Reached::No => {}
            other => return other,
        }
        let now = AtomicU64::from_ptr(&raw mut (*flag).counter).load(Ordering::Acquire);
        (*counter).seen = now;
        judge(now, value)
    }
}

/// Whether the flag at an address has reached a value, or its owner ended all waits.
pub(crate) fn was_raised((flag, value): (u64, u64)) -> bool {
    let flag = flag as *mut FlagLine;
    // SAFETY: the host keeps the flags of what it asked for alive until they are raised.
    let now = unsafe { AtomicU64::from_ptr(&raw mut (*flag).counter).load(Ordering::Acquire) };
    judge(now, value) != Reached::No
}

/// The words beside a flag that was reached.
///
/// # Safety
/// `flag` is the address of a living [`FlagLine`].
pub(crate) unsafe fn words(flag: u64) -> [u64; 3] {
    let flag = flag as *mut FlagLine;
    fence(Ordering::Acquire);
    // SAFETY: by the caller's promise; the words are atomics to all who share them.
    [0, 1, 2]
        .map(|i| unsafe { AtomicU64::from_ptr(&raw mut (*flag).words[i]).load(Ordering::Relaxed) })
}

/// A local signal: `counter.value += 1`, then the flag's counter = value, unless the flag was
/// aborted meanwhile: then it stays so.
///
/// # Safety
/// As for [`reached`].
pub(crate) unsafe fn signal(flag: u64, counter: u64) {
    // SAFETY: by the caller's promise.
    let (value, counter) = unsafe {
        let line = flag as *mut FlagLine;
        (
            begin_wait(counter),
            AtomicU64::from_ptr(&raw mut (*line).counter),
        )
    };
    let _ = counter.fetch_update(Ordering::Release, Ordering::Relaxed, |now| {
        (judge(now, value) != Reached::Aborted).then_some(value)
    });
}

/// A peer's signal: the words, then the flag's counter goes up by one.
///
/// # Safety
/// `flag` points to a living, aligned [`FlagLine`].
pub(crate) unsafe fn raise(flag: *mut FlagLine, words: Option<[u64; 3]>) {
    // SAFETY: by the caller's promise; all words are atomics to all who share them.
    unsafe {
        for (i, word) in words.iter().flatten().enumerate() {
            AtomicU64::from_ptr(&raw mut (*flag).words[i]).store(*word, Ordering::Relaxed);
        }
        AtomicU64::from_ptr(&raw mut (*flag).counter).fetch_add(1, Ordering::Release);
    }
}

/// Copies bytes to a window.
///
/// # Safety
/// `to` points to as many writable bytes.
pub(crate) unsafe fn copy_in(from: &[u8], to: *mut u8) {
    // SAFETY: by the caller's promise; a window never overlaps this crate's own buffers.
    unsafe { unisono_copy::copy(to, from.as_ptr(), from.len()) };
}

/// Appends bytes of a put's source, or of a header, to a buffer.
///
/// # Safety
/// `from` points to `length` readable bytes.
pub(crate) unsafe fn copy_out(from: *const u8, length: usize, to: &mut Vec<u8>) {
    to.reserve(length);
    let held = to.len();
    // SAFETY: by the caller's promise; there is room behind what the buffer holds, and a source
    // never overlaps this crate's own buffers.
    unsafe {
        unisono_copy::copy(to.as_mut_ptr().add(held), from, length);
        to.set_len(held + length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(counter: u64) -> Box<FlagLine> {
        Box::new(FlagLine {
            counter,
            words: [0; 3],
            reserved: [0; 4],
        })
    }

    #[test]
    fn a_wait_counts_remembers_and_ends_by_abort() {
        let mut flag = line(1);
        let mut counter = Counter { value: 0, seen: 0 };
        let (at, c) = (&raw mut *flag as u64, &raw mut counter as u64);
        // SAFETY: both live to the end of the test.
        unsafe {
            let value = begin_wait(c);
            assert_eq!(value, 1);
            assert_eq!(reached(at, c, value), Reached::Yes);
            let value = begin_wait(c);
            assert_eq!(reached(at, c, value), Reached::No);
            raise(at as *mut FlagLine, Some([7, 8, 9]));
            assert_eq!(reached(at, c, value), Reached::Yes);
            assert_eq!(words(at), [7, 8, 9]);
            flag.counter += 1 << 62;
            let value = begin_wait(c);
            assert_eq!(reached(at, c, value), Reached::Aborted);
        }
    }

    #[test]
    fn a_signal_sets_the_value_but_never_undoes_an_abort() {
        let mut flag = line(0);
        let mut counter = Counter { value: 4, seen: 0 };
        let (at, c) = (&raw mut *flag as u64, &raw mut counter as u64);
        // SAFETY: both live to the end of the test.
        unsafe {
            signal(at, c);
            assert_eq!((flag.counter, counter.value), (5, 5));
            flag.counter += 1 << 62;
            signal(at, c);
        }
        assert_eq!(flag.counter, (1 << 62) + 5);
    }
}
