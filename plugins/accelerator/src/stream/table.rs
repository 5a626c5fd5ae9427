//! What of a graph differs from one launch to the next: numbers, in memory that its kernels read.
//!
//! Flags' values go up, words hold a call's number, and a stream numbers its commands. Kernels'
//! parameters are copied when a graph is made, so all that is in a table beside it, which the host writes
//! anew before each launch. One kernel does all writes and waits between two pieces of other work.
#![allow(
    unsafe_code,
    reason = "writes words of registered memory, which a device reads"
)]

use std::sync::atomic::{AtomicU64, Ordering, fence};

use unisono_plugin::Result;

use super::step::Step;
use crate::lines::Piece;
use crate::{MemoryOperation, Runtime};

/// Bytes of a table.
pub(crate) const TABLE: u64 = 4096;
/// Tables of a device, hence graphs. A communicator uses its flags in turn, so a call that is repeated comes
/// in up to sixteen shapes. All are registered when the device is opened: later, registering might wait for
/// calls of other ranks.
pub(crate) const TABLES: u64 = 64;
/// Words of an entry: see `replay` in `kernels.cpp` of `unisono-kernels`.
const WORDS: usize = 3;
/// Entries that a comparison takes.
pub(super) const CHECK: usize = 3;
/// Entries of a table.
pub(super) const ENTRIES: usize = TABLE as usize / (WORDS * 8);

/// Entries that a step takes: none if it is no matter of flags.
const fn entries(step: &Step) -> usize {
    match step {
        Step::Memory(_) => 1,
        Step::Check(_) => CHECK,
        Step::Copy(_) | Step::Reduce(_) | Step::Scale(_) => 0,
    }
}

/// Writes what steps need into a table. No graph that reads it is under way.
pub(super) fn fill(table: &Piece, steps: &[Step]) {
    let mut at = table.host();
    let end = at + TABLE;
    let mut put = |words: [u64; WORDS]| {
        for word in words {
            assert!(at < end, "a table has room for {ENTRIES} entries");
            // SAFETY: a word of a piece of registered memory, which nobody else writes.
            unsafe { AtomicU64::from_ptr(at as usize as *mut u64) }.store(word, Ordering::Relaxed);
            at += 8;
        }
    };
    for step in steps {
        match step {
            Step::Memory(
                MemoryOperation::Word { address, value }
                | MemoryOperation::Write { address, value },
            ) => put([0, *address, *value]),
            Step::Memory(MemoryOperation::Wait { address, value }) => put([1, *address, *value]),
            Step::Check(on) => {
                put([2, on.flag, on.value]);
                put(on.words);
                put([on.found, on.command, 0]);
            }
            Step::Copy(_) | Step::Reduce(_) | Step::Scale(_) => {}
        }
    }
    // Before the launch, which is what makes a device look.
    fence(Ordering::Release);
}

/// Records steps whose numbers are in a table.
///
/// # Safety
/// As for [`Step::record`]; the table is kept as long as what is recorded.
pub(super) unsafe fn record<R: Runtime>(
    runtime: &R,
    stream: R::Stream,
    table: &Piece,
    steps: &[Step],
) -> Result<()> {
    let (mut first, mut count) = (0, 0);
    // SAFETY: the caller's promise; entries of the table.
    let flags = |first: usize, count: usize| unsafe {
        if count == 0 {
            return Ok(());
        }
        let at = table.device() + (first * WORDS * 8) as u64;
        runtime.replay(stream, at, count as u64)
    };
    for step in steps {
        match entries(step) {
            0 => {
                flags(first, count)?;
                (first, count) = (first + count, 0);
                // SAFETY: the caller's promise.
                unsafe { step.record(runtime, stream) }?;
            }
            more => count += more,
        }
    }
    flags(first, count)
}
