//! What the machine can do at best, measured as a library is: threads that read each other's
//! buffers, with nothing in between but flags.
//!
//! There is no staging, no matching and no fault to look for: each byte is read once by whom it is
//! for, and sums are made of the buffers themselves. A library whose ranks are processes with
//! private memory can come near to it, and below 32 bytes beside it; where it is faster, the two
//! were measured in different moments.
//!
//! A small message lies in the cache line of its flag. Lines are used in turns of two: a rank
//! writes its line of turn n + 2 when it has seen all ranks in turn n + 1, so they have read n.

#![allow(unsafe_code, reason = "threads read each other's buffers by address")]

mod sum;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Result, anyhow};

use crate::call::{Caller, Op};
use crate::memory::Buffers;
use crate::rank::{answer_all, bind, elements};

/// Floats that fit into a flag's line.
const INLINE: usize = 8;
/// Floats up to which every rank sums everything itself: a second barrier costs more.
const ALONE: usize = 4096;

/// Runs the ranks as threads until the driver says `quit` or goes away.
pub fn serve(ranks: usize) -> Result<()> {
    let shared = Shared::new(ranks);
    thread::scope(|scope| {
        let ranks: Vec<_> = (0..ranks)
            .map(|rank| {
                let shared = &shared;
                scope.spawn(move || {
                    bind(rank as u32)?;
                    let mut buffers = Buffers::private(elements(shared.ranks as u32)?)?;
                    let rank = Rank::new(shared, rank);
                    answer_all(&rank, &mut buffers, "limit", "threads and memcpy")
                })
            })
            .collect();
        for rank in ranks {
            rank.join().map_err(|_| anyhow!("a thread panicked"))??;
        }
        Ok(())
    })
}

/// What one rank tells the others at the beginning of a turn.
#[repr(align(64))]
#[derive(Default)]
struct Line {
    turn: AtomicU64,
    send: AtomicU64,
    recv: AtomicU64,
    words: [AtomicU64; INLINE / 2],
}

/// Lines of all ranks, of even and of odd turns.
struct Shared {
    ranks: usize,
    /// Whether each rank has a core to itself.
    spin: bool,
    lines: [Vec<Line>; 2],
}

impl Shared {
    fn new(ranks: usize) -> Self {
        let lines = || (0..ranks).map(|_| Line::default()).collect();
        Self {
            ranks,
            spin: thread::available_parallelism().is_ok_and(|cores| cores.get() >= ranks),
            lines: [lines(), lines()],
        }
    }
}

/// One thread's side.
struct Rank<'a> {
    shared: &'a Shared,
    me: usize,
    turn: Cell<u64>,
}

impl<'a> Rank<'a> {
    fn new(shared: &'a Shared, me: usize) -> Self {
        Self {
            shared,
            me,
            turn: Cell::new(0),
        }
    }

    /// The lines of the turn that this rank begins, after `tell` wrote to its own.
    fn turn(&self, tell: impl FnOnce(&Line)) -> &'a [Line] {
        let turn = self.turn.get() + 1;
        self.turn.set(turn);
        let lines = &self.shared.lines[(turn % 2) as usize];
        tell(&lines[self.me]);
        lines[self.me].turn.store(turn, Ordering::Release);
        for line in lines {
            while line.turn.load(Ordering::Acquire) < turn {
                if self.shared.spin {
                    std::hint::spin_loop();
                } else {
                    thread::yield_now();
                }
            }
        }
        lines
    }

    fn barrier(&self) {
        self.turn(|_| {});
    }

    /// All ranks' small contributions, summed.
    fn all_reduce_small(&self, send: &[f32], recv: &mut [f32]) {
        let bits = |i: usize| u64::from(send.get(i).map_or(0, |value| value.to_bits()));
        let lines = self.turn(|line| {
            for (i, word) in line.words.iter().enumerate() {
                word.store(bits(2 * i) | bits(2 * i + 1) << 32, Ordering::Relaxed);
            }
        });
        for (i, value) in recv.iter_mut().enumerate() {
            let words = lines
                .iter()
                .map(|line| line.words[i / 2].load(Ordering::Relaxed));
            *value = words
                .map(|word| f32::from_bits((word >> (32 * (i % 2))) as u32))
                .sum();
        }
    }

    /// The addresses of all ranks' buffers, which stay as they are until the next turn.
    fn meet(&self, send: *mut f32, recv: *mut f32) -> Vec<(*const f32, *mut f32)> {
        let lines = self.turn(|line| {
            line.send
                .store(send.expose_provenance() as u64, Ordering::Relaxed);
            line.recv
                .store(recv.expose_provenance() as u64, Ordering::Relaxed);
        });
        let address = |word: &AtomicU64| word.load(Ordering::Relaxed) as usize;
        lines
            .iter()
            .map(|line| {
                (
                    std::ptr::with_exposed_provenance(address(&line.send)),
                    std::ptr::with_exposed_provenance_mut(address(&line.recv)),
                )
            })
            .collect()
    }

    /// Everything but barriers and small sums.
    fn move_data(&self, op: Op, send: &mut [f32], recv: &mut [f32]) {
        let (me, ranks, len) = (self.me, self.shared.ranks, recv.len());
        let block = len / ranks;
        // The share of a rank in a sum that is divided; the last has the rest.
        let share = |rank: usize| {
            let to = if rank + 1 == ranks {
                len
            } else {
                (rank + 1) * block
            };
            rank * block..to
        };
        let to = recv.as_mut_ptr();
        let at = self.meet(send.as_mut_ptr(), to);
        let sends: Vec<*const f32> = at.iter().map(|rank| rank.0).collect();
        let copy = |to: *mut f32, from: *const f32, elements: usize| {
            // SAFETY: all ranks call with buffers of this length, and the ranges are inside. Nobody
            // writes a send buffer, nor the same part of a receive buffer, before the last turn of
            // this call; until then owners use their slices through these addresses alone.
            unsafe { std::ptr::copy_nonoverlapping(from, to, elements) }
        };
        let sum = |to: *mut f32, range: std::ops::Range<usize>| {
            // SAFETY: as above: `range` lies inside all buffers, and `to` has as many elements.
            unsafe { sum::sum(to, &sends, range) }
        };
        match op {
            Op::AllReduce if len <= ALONE => sum(to, 0..len),
            Op::AllReduce => {
                sum(to.wrapping_add(share(me).start), share(me));
                self.barrier();
                for other in (1..ranks).map(|step| (me + step) % ranks) {
                    let part = share(other);
                    let from = at[other].1.wrapping_add(part.start);
                    copy(to.wrapping_add(part.start), from, part.len());
                }
            }
            Op::Reduce => sum(at[0].1.wrapping_add(share(me).start), share(me)),
            Op::ReduceScatter => sum(to, me * block..(me + 1) * block),
            Op::AllGather | Op::AllToAll => {
                for other in (0..ranks).map(|step| (me + step) % ranks) {
                    let from = if op == Op::AllGather { 0 } else { me * block };
                    copy(
                        to.wrapping_add(other * block),
                        sends[other].wrapping_add(from),
                        block,
                    );
                }
            }
            Op::Broadcast if me > 0 => copy(to, sends[0], len),
            // There, and after a turn, back.
            Op::SendRecv if ranks == 2 => {
                if me == 1 {
                    copy(to, sends[0], len);
                }
                self.barrier();
                if me == 0 {
                    copy(to, sends[1], len);
                }
            }
            Op::Broadcast | Op::SendRecv | Op::Barrier => {}
        }
        self.barrier();
    }
}

impl Caller for Rank<'_> {
    fn rank(&self) -> u32 {
        self.me as u32
    }

    fn size(&self) -> u32 {
        self.shared.ranks as u32
    }

    fn call(&self, op: Op, send: &mut [f32], recv: &mut [f32]) -> Result<()> {
        match op {
            Op::Barrier => self.barrier(),
            Op::AllReduce if send.len() <= INLINE => self.all_reduce_small(send, recv),
            _ => self.move_data(op, send, recv),
        }
        Ok(())
    }

    fn slowest(&self, value: f64) -> Result<f64> {
        let lines = self.turn(|line| line.words[0].store(value.to_bits(), Ordering::Relaxed));
        let values = lines
            .iter()
            .map(|line| f64::from_bits(line.words[0].load(Ordering::Relaxed)));
        Ok(values.fold(f64::MIN, f64::max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::pattern;

    const OPS: [Op; 7] = [
        Op::AllReduce,
        Op::AllGather,
        Op::ReduceScatter,
        Op::Broadcast,
        Op::AllToAll,
        Op::Reduce,
        Op::SendRecv,
    ];

    #[test]
    fn every_rank_gets_what_it_must() {
        for ranks in [1, 2, 3, 4] {
            for bytes in [4, 32, 36, 4096, 100_000] {
                let shared = Shared::new(ranks);
                thread::scope(|scope| {
                    for me in 0..ranks {
                        let shared = &shared;
                        scope.spawn(move || all_ops(&Rank::new(shared, me), bytes));
                    }
                });
            }
        }
    }

    fn all_ops(rank: &Rank<'_>, bytes: usize) {
        let ranks = rank.shared.ranks;
        for op in OPS {
            if op == Op::SendRecv && ranks != 2 {
                continue;
            }
            let len = op.elements(bytes, ranks);
            let mut send: Vec<f32> = (0..len).map(|i| pattern(rank.me, i)).collect();
            for _ in 0..3 {
                let mut recv = vec![0.0; len];
                rank.barrier();
                rank.call(op, &mut send, &mut recv).unwrap();
                assert_eq!(op.wrong(rank.me, ranks, &recv), 0, "{op:?} {bytes} {ranks}");
            }
        }
        assert_eq!(rank.slowest(rank.me as f64).unwrap(), (ranks - 1) as f64);
    }
}
