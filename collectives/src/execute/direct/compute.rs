//! Copies and reductions of the calling thread.
#![allow(
    unsafe_code,
    reason = "copies and combines at the addresses of calls and arenas"
)]

use std::ops::Range;

use unisono_copy::{LINE, WORTH, Ways, are_runs_faster, fetch_to_write};
use unisono_hal::Reduce;

use super::{Move, Space, Spot};
use crate::execute::common::Common;
use crate::execute::op::Planned;

/// So many bytes of a result are asked for before it is put together where a peer reads it. Those of less were asked for when
/// a put some before was told of (`fetch_ahead`); of more a kernel of the host's asks for the lines as it goes on. Among four ranks on two cores of a Xeon
/// with AMX-FP16 reduces of 4 to 16 KiB took 0.8 of the time so, among eight 0.86 to 0.96 (`cargo xtask peers -- --dirty
/// --ranks 4,8 --ops reduce --sizes 4K,8K,16K`, in turns with a build without it).
const ASKED_FOR: Range<u64> = (1 << 10) + 1..32 << 10;

impl Common {
    /// Combines a few elements by the plugin's function, if it has one and that is all that the move says. What
    /// [`compute`](Self::compute) does for them too, but for all else it has to save registers first.
    #[inline(never)]
    pub(super) fn combine_few(&self, step: &Move, planned: &Planned, bases: &[u64; 4]) -> bool {
        let (
            &Move::Reduce {
                dst,
                a,
                b,
                elements,
                last,
            },
            Some(combiner),
        ) = (step, &planned.combiner)
        else {
            return false;
        };
        let is_divided = last && planned.divisor != 0;
        if is_divided || u64::from(elements) * planned.element >= ASKED_FOR.start {
            return false;
        }
        let (dst, a, b) = (self.at(bases, dst), self.at(bases, a), self.at(bases, b));
        // SAFETY: as in `compute`.
        unsafe { combiner.combine(dst, a, b, elements.into()) };
        true
    }

    /// Copies or combines.
    #[inline]
    pub(super) fn compute(
        &mut self,
        step: &Move,
        planned: &Planned,
        bases: &[u64; 4],
    ) -> Result<(), Box<unisono_hal::Error>> {
        match *step {
            Move::Copy { dst, src, bytes } => {
                let is_fill = dst.space_index() == Space::Fill.index();
                let is_fetched = src.space_index() >= Space::Slot(0).index();
                let (dst, src) = (self.at(bases, dst), self.at(bases, src));
                if u64::from(bytes) >= WORTH && is_fill {
                    let ways = &mut self.peers[self.own.rank as usize].ways;
                    // SAFETY: as below; what is filled is no place of the call's.
                    unsafe { fill(ways, dst, src, bytes) };
                } else if u64::from(bytes) >= WORTH && is_fetched {
                    // SAFETY: as below.
                    unsafe { fetch(dst, src, bytes) };
                } else if dst != src {
                    // SAFETY: the call's buffers, scratch and slots, which are plain memory here;
                    // the plan's verifier has shown that nothing else uses the destination now.
                    // Two places of one plan are equal or apart.
                    unsafe { copy(dst, src, bytes) };
                }
                Ok(())
            }
            Move::Reduce {
                dst,
                a,
                b,
                elements,
                last,
            } => {
                let bytes = u64::from(elements) * planned.element;
                if dst.space_index() == Space::Fill.index()
                    && ASKED_FOR.contains(&bytes)
                    && are_runs_faster()
                {
                    ask_for(self.at(bases, dst), bytes);
                }
                let divisor = if last { planned.divisor } else { 0 };
                let (dst, a, b) = (self.at(bases, dst), self.at(bases, a), self.at(bases, b));
                if let Some(combiner) = planned.combiner.as_ref().filter(|_| divisor == 0) {
                    // SAFETY: as above.
                    unsafe { combiner.combine(dst, a, b, elements.into()) };
                    return Ok(());
                }
                let reduce = Reduce {
                    dst,
                    a,
                    b,
                    elements: u64::from(elements),
                    repeat: 1,
                    dst_stride: 0,
                    a_stride: 0,
                    b_stride: 0,
                    dtype: planned.dtype,
                    reduction: planned.reduction,
                    divisor,
                    streaming: false,
                };
                // SAFETY: as above.
                unsafe { self.running_cpu().reduce(&reduce) }.map_err(Box::new)
            }
            _ => Ok(()),
        }
    }

    /// An address, by where the spaces begin that are no peer's.
    #[inline]
    pub(super) fn at(&self, bases: &[u64; 4], spot: Spot) -> u64 {
        let space = bases.get(spot.space_index());
        let base = space.copied().unwrap_or_else(|| {
            let peer = &self.peers[spot.rank() as usize];
            peer.current_slot(&self.own)
        });
        base + spot.offset()
    }
}

/// Copies bytes, of which there often are as many as one element has.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline]
pub(super) unsafe fn copy(dst: u64, src: u64, bytes: u32) {
    let (dst, src) = (dst as usize as *mut u8, src as usize as *const u8);
    // SAFETY: the caller's promise. Numbers that are known make single moves.
    unsafe {
        match bytes {
            4 => std::ptr::copy_nonoverlapping(src, dst, 4),
            8 => std::ptr::copy_nonoverlapping(src, dst, 8),
            _ => unisono_copy::copy(dst, src, bytes as usize),
        }
    }
}

/// Asks for all lines of a place that a peer has read, before a result is written there: of one after the other each is
/// waited for. One that changes hands lies in this core's caches, where it is asked for in no time.
#[inline]
fn ask_for(address: u64, bytes: u64) {
    for line in (0..bytes).step_by(LINE) {
        fetch_to_write((address + line) as usize as *const u8);
    }
}

/// Copies bytes that another rank has put.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn fetch(dst: u64, src: u64, bytes: u32) {
    let (dst, src) = (dst as usize as *mut u8, src as usize as *const u8);
    // SAFETY: the caller's promise.
    unsafe { unisono_copy::copy_shared(dst, src, bytes as usize) };
}

/// Copies bytes to where another rank reads them next.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub(super) unsafe fn fill(ways: &mut Ways, dst: u64, src: u64, bytes: u32) {
    ways.write(bytes.into(), |past| {
        let (to, from) = (dst as usize as *mut u8, src as usize as *const u8);
        // SAFETY: the caller's promise.
        unsafe {
            match past {
                true => unisono_copy::copy_past(to, from, bytes as usize),
                false => unisono_copy::copy_shared(to, from, bytes as usize),
            }
        }
    });
}
