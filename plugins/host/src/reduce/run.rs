//! A kernel: the loops for one type and reduction, run on the operands of a command.
#![allow(unsafe_code, reason = "commands carry addresses")]

use core::mem::MaybeUninit;

use unisono_copy::{
    LINE, are_runs_faster, can_stream, fence_streamed, fetch_to_write, side_by_side, stream_block,
};

use super::kernel::{Division, Loops};
use super::table::find;
use super::types::{Dtype, Reduction};
use crate::cpu::Isa;

/// Results that are divided or streamed go through a block of this size in the first-level cache.
pub(super) const BLOCK: usize = 4096;

/// Operands of so many bytes may come from memory or another core: several [runs of addresses](side_by_side) are combined side
/// by side, where that is faster. Between two ranks on a Xeon with AMX-FP16 reduces of 64 MiB took 0.72 of the time so,
/// reduce_scatters 0.8 and all_reduces 0.84; of 256 KiB 0.88 to 0.92 (`cargo xtask peers -- --dirty --ranks 2 --ops
/// reduce,reduce_scatter,all_reduce --sizes 256K,64M`, in turns with a build without it).
pub(super) const LONG: usize = 32 << 10;

/// Bytes of a run that are combined in one go, and so far ahead lines of the result are asked for: a peer may have them.
const PIECE: usize = 1024;

/// The same of results that go past the caches, through a block: no page of them, so that loads and such stores overlap. Of
/// 256 to 1024 bytes it was all the same (tried in a build made for that: no command shows it).
const STREAMED: usize = 512;

/// Where results go that come through a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Results {
    /// Into the caches.
    Kept,
    /// Past them.
    Streamed,
    /// The same, by several runs of addresses.
    StreamedInRuns,
}

#[repr(C, align(64))]
struct Block(MaybeUninit<[u8; BLOCK]>);

/// The loops for one type and reduction on this CPU.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    loops: Loops,
    element: usize,
}

impl Kernel {
    /// Picks the loops, `None` where the reduction is not defined on the type.
    ///
    /// `isa` must be available on this CPU (see [`Isa::best`]), else `None` too.
    #[must_use]
    pub fn new(isa: Isa, dtype: Dtype, reduction: Reduction) -> Option<Self> {
        if !isa.available() {
            return None;
        }
        let loops = find(isa, dtype, reduction)?;
        Some(Self {
            loops,
            element: dtype.bytes(),
        })
    }

    /// `dst[i] = a[i] op b[i]`, divided by `divisor` if that is not 0.
    ///
    /// With `streaming`, where `dst` is neither operand and its elements are aligned, results go past
    /// the caches, and are visible to whoever sees a later release store of this thread.
    ///
    /// # Safety
    /// Each pointer is good for `elements` elements, at any alignment, and nobody else writes there
    /// meanwhile or reads `dst`. `dst` is `a`, or `b`, or overlaps neither.
    pub unsafe fn run(
        &self,
        dst: *mut u8,
        a: *const u8,
        b: *const u8,
        elements: usize,
        divisor: u32,
        streaming: bool,
    ) {
        let in_place = core::ptr::eq(dst, a) || core::ptr::eq(dst, b);
        let before = dst.align_offset(LINE);
        let streaming =
            streaming && !in_place && can_stream() && before.is_multiple_of(self.element);
        // SAFETY: the caller's contract; what streams begins with a line.
        unsafe {
            if streaming {
                let head = (before / self.element).min(elements);
                let from = head * self.element;
                let (line, left, right) = (dst.add(from), a.add(from), b.add(from));
                self.by_blocks(dst, a, b, head, divisor, Results::Kept);
                let results = match (elements - head) * self.element >= LONG && are_runs_faster() {
                    true => Results::StreamedInRuns,
                    false => Results::Streamed,
                };
                self.by_blocks(line, left, right, elements - head, divisor, results);
            } else if divisor != 0 {
                self.by_blocks(dst, a, b, elements, divisor, Results::Kept);
            } else {
                self.run_plain(dst, a, b, elements);
            }
        }
    }

    /// [`run`](Self::run) without division or streaming.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    #[inline]
    pub(crate) unsafe fn run_plain(
        &self,
        dst: *mut u8,
        a: *const u8,
        b: *const u8,
        elements: usize,
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            match elements * self.element >= LONG {
                true => self.run_long(dst, a, b, elements),
                false => self.run_piece(dst, a, b, elements),
            }
        }
    }

    /// By itself, so that a short one is nothing but a jump to its loop.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    #[inline(never)]
    unsafe fn run_long(&self, dst: *mut u8, a: *const u8, b: *const u8, elements: usize) {
        // SAFETY: the caller's contract.
        unsafe {
            match are_runs_faster() {
                true => self.run_in_runs(dst, a, b, elements),
                false => self.run_piece(dst, a, b, elements),
            }
        }
    }

    /// [`run_plain`](Self::run_plain) by several runs of addresses.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    #[inline(never)]
    pub(super) unsafe fn run_in_runs(
        &self,
        dst: *mut u8,
        a: *const u8,
        b: *const u8,
        elements: usize,
    ) {
        // SAFETY: the caller's contract, of a part.
        let run = |offset: usize, elements| unsafe {
            self.run_piece(dst.add(offset), a.add(offset), b.add(offset), elements);
        };
        let done = side_by_side::<2>(elements * self.element, PIECE, |offset| {
            for line in (0..PIECE).step_by(LINE) {
                fetch_to_write(dst.wrapping_add(offset + PIECE + line));
            }
            run(offset, PIECE / self.element);
        });
        run(done, elements - done / self.element);
    }

    /// # Safety
    /// As for [`run`](Self::run).
    #[inline]
    unsafe fn run_piece(&self, dst: *mut u8, a: *const u8, b: *const u8, elements: usize) {
        // SAFETY: the caller's contract. All reductions commute, so `b = a op b` is a fold as well.
        unsafe {
            if core::ptr::eq(dst, a) {
                (self.loops.fold)(dst, b, elements);
            } else if core::ptr::eq(dst, b) {
                (self.loops.fold)(dst, a, elements);
            } else {
                (self.loops.combine)(dst, a, b, elements);
            }
        }
    }

    /// `dst[i] = a[i] op factor`, where `factor` holds an element in its first bytes.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    pub unsafe fn run_with(&self, dst: *mut u8, a: *const u8, factor: &[u8; 8], elements: usize) {
        // The operand that the loops want, as long as a block.
        let mut factors = [0_u8; BLOCK];
        let step = BLOCK / self.element;
        let used = step.min(elements) * self.element;
        for place in factors[..used].chunks_exact_mut(self.element) {
            place.copy_from_slice(&factor[..self.element]);
        }
        for start in (0..elements).step_by(step) {
            let n = step.min(elements - start);
            let offset = start * self.element;
            // SAFETY: the caller's contract; `factors` holds `step` elements.
            unsafe {
                self.run(
                    dst.add(offset),
                    a.add(offset),
                    factors.as_ptr(),
                    n,
                    0,
                    false,
                )
            };
        }
    }

    /// Through a block in the first-level cache.
    ///
    /// # Safety
    /// As for `run`; `dst` is 64-byte aligned unless results are kept.
    pub(super) unsafe fn by_blocks(
        &self,
        dst: *mut u8,
        a: *const u8,
        b: *const u8,
        elements: usize,
        divisor: u32,
        results: Results,
    ) {
        let mut block = Block(MaybeUninit::uninit());
        let block = block.0.as_mut_ptr().cast::<u8>();
        let run = |offset: usize, elements: usize| {
            // SAFETY: the block holds as many elements; the piece lies within the operands.
            unsafe {
                self.combine(block, a.add(offset), b.add(offset), elements, divisor);
                let (dst, bytes) = (dst.add(offset), elements * self.element);
                match results {
                    Results::Kept => core::ptr::copy_nonoverlapping(block, dst, bytes),
                    Results::Streamed | Results::StreamedInRuns => stream_block(dst, block, bytes),
                }
            }
        };
        let bytes = elements * self.element;
        let mut done = 0;
        if results == Results::StreamedInRuns {
            done = side_by_side::<4>(bytes, STREAMED, |offset| {
                run(offset, STREAMED / self.element);
            });
        }
        for offset in (done..bytes).step_by(BLOCK) {
            run(offset, BLOCK.min(bytes - offset) / self.element);
        }
        if results != Results::Kept {
            fence_streamed();
        }
    }

    /// `dst[i] = a[i] op b[i]`, divided by `divisor` if that is not 0, of a block at most.
    ///
    /// # Safety
    /// As for [`run`](Self::run); `dst` is aligned and neither operand.
    #[inline]
    unsafe fn combine(
        &self,
        dst: *mut u8,
        a: *const u8,
        b: *const u8,
        elements: usize,
        divisor: u32,
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            match self.loops.division {
                Division::Within(divided) if divisor != 0 => divided(dst, a, b, elements, divisor),
                Division::After(divide) if divisor != 0 => {
                    (self.loops.combine)(dst, a, b, elements);
                    divide(dst, elements, divisor);
                }
                Division::Within(_) | Division::After(_) => {
                    (self.loops.combine)(dst, a, b, elements);
                }
            }
        }
    }
}
