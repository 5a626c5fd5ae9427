//! SIGNAL and WAIT: counters, words and bells.
#![allow(
    unsafe_code,
    reason = "commands carry the addresses of flags and counters"
)]

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};

use unisono_plugin::abi::{ABORT_AHEAD, CMD_WORDS, CommandSignal, CommandWait};

use crate::bell;

/// A flag line as it is used: any process that maps it may look at any time.
#[repr(C)]
struct Line {
    counter: AtomicU64,
    words: [AtomicU64; 3],
}

/// A counter of this side. Atomic only so that the host may look at it; one thread writes.
#[repr(C)]
struct Counter {
    value: AtomicU64,
    seen: AtomicU64,
}

impl Counter {
    /// Counts one and returns the value then.
    #[inline]
    fn advance(&self) -> u64 {
        let value = self.value.load(Ordering::Relaxed).wrapping_add(1);
        self.value.store(value, Ordering::Relaxed);
        value
    }
}

/// # Safety
/// An aligned address of mapped memory that holds a `T` for as long as it is used.
#[inline]
unsafe fn at<'a, T>(address: u64) -> &'a T {
    // SAFETY: the caller's promise.
    unsafe { &*(address as usize as *const T) }
}

/// Raises a flag and wakes who waits for it.
///
/// # Safety
/// The command's flag, counter and bell are mapped.
#[inline]
pub(super) unsafe fn signal(command: &CommandSignal) {
    // SAFETY: the caller's promise.
    let (flag, counter): (&Line, &Counter) = unsafe { (at(command.flag), at(command.counter)) };
    let value = counter.advance();
    if command.head.flags & CMD_WORDS != 0 {
        for (place, word) in flag.words.iter().zip(command.words) {
            place.store(word, Ordering::Relaxed);
        }
    }
    flag.counter.store(value, Ordering::Release);
    if command.bell != 0 {
        // SAFETY: the caller's promise.
        unsafe { bell::ring(command.bell) };
    }
}

/// How a WAIT stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// The flag was raised, or the wait aborted.
    Done,
    /// Not yet.
    Pending,
    /// The flag was raised with these words instead of the expected ones.
    Mismatch([u64; 3]),
}

/// Begins a WAIT: its counter advances once however often the flag is looked at.
///
/// # Safety
/// The command's flag and counter are mapped.
#[inline]
pub(super) unsafe fn begin(command: &CommandWait) {
    // SAFETY: the caller's promise.
    unsafe { at::<Counter>(command.counter) }.advance();
}

/// Looks at the flag of a WAIT that has begun, up to `spin` times.
///
/// # Safety
/// As for `begin`.
#[inline]
pub(super) unsafe fn wait(command: &CommandWait, spin: u32) -> Waited {
    // SAFETY: the caller's promise.
    let (flag, counter): (&Line, &Counter) = unsafe { (at(command.flag), at(command.counter)) };
    let value = counter.value.load(Ordering::Relaxed);
    let ahead = |flag: u64| flag.wrapping_sub(value);
    let mut seen = counter.seen.load(Ordering::Relaxed);
    let mut looks = 0;
    while ahead(seen).cast_signed() < 0 {
        if looks == spin {
            return Waited::Pending;
        }
        if looks > 0 {
            spin_loop();
        }
        looks += 1;
        seen = flag.counter.load(Ordering::Acquire);
        counter.seen.store(seen, Ordering::Relaxed);
    }
    if command.head.flags & CMD_WORDS != 0 && ahead(seen) < ABORT_AHEAD {
        let found = [0, 1, 2].map(|i| flag.words[i].load(Ordering::Relaxed));
        if found != command.words {
            return Waited::Mismatch(found);
        }
    }
    Waited::Done
}

/// Whether the flag of a WAIT that has begun is raised.
///
/// # Safety
/// As for `begin`.
pub(super) unsafe fn is_raised(command: &CommandWait) -> bool {
    // SAFETY: the caller's promise.
    let (flag, counter): (&Line, &Counter) = unsafe { (at(command.flag), at(command.counter)) };
    let value = counter.value.load(Ordering::Relaxed);
    flag.counter
        .load(Ordering::Acquire)
        .wrapping_sub(value)
        .cast_signed()
        >= 0
}
