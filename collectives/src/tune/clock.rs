//! How long calls take, each on data that its rank has just written.
//!
//! Programs compute what they hand over. Where peers read it from this rank's caches, as over windows, that costs
//! them more than data that nobody has touched since the call before, which lies in their own caches by then: on
//! some machines several times more. So each input is rewritten before its call, and what rewriting takes is left
//! out of the figure.

use std::time::Instant;

use unisono_plan::{Buffer, Op};

use super::memory::{DTYPE, Elements};
use crate::communicator::Forced;
use crate::error::Result;
use crate::{Communicator, ReduceOp};

/// The most calls in a round.
const MOST_CALLS: u32 = 1000;
/// Bytes that are rewritten for a figure of what that takes.
const REWRITTEN: usize = 4 << 20;

/// What calls read and write.
pub(super) struct Buffers {
    send: Elements,
    recv: Elements,
}

impl Buffers {
    pub(super) fn new(on: &Communicator, elements: usize, windowed: bool) -> Result<Self> {
        Ok(Self {
            send: Elements::new(on, elements, windowed)?,
            recv: Elements::new(on, elements, windowed)?,
        })
    }
}

/// Calls of a round.
pub(super) struct Fill {
    pub(super) calls: u32,
    /// Whether one takes longer than all rounds of short ones.
    pub(super) is_long: bool,
}

/// What rewriting the input takes before each call.
#[derive(Clone, Copy, Default)]
pub(super) struct Rewriting {
    seconds: f64,
}

/// Times calls of one operation and size.
pub(super) struct Clock<'a> {
    on: &'a Communicator,
    buffers: &'a mut Buffers,
    op: Op,
    count: u64,
    /// Elements that this rank hands over.
    own: usize,
}

impl<'a> Clock<'a> {
    pub(super) fn new(on: &'a Communicator, buffers: &'a mut Buffers, op: Op, bytes: u64) -> Self {
        let count = bytes / DTYPE.size() as u64;
        let held = op.holds(Buffer::In, on.rank(), on.size());
        let parts = u64::from(held.end - held.start);
        let own = match op.has_block_per_rank() {
            true => parts * (count / u64::from(on.size())),
            false => parts * count,
        };
        Self {
            on,
            buffers,
            op,
            count,
            own: own as usize,
        }
    }

    /// What fills a round of so many seconds; a call is long that takes more than `long`.
    pub(super) fn fill(&mut self, forced: Forced, round: f64, long: f64) -> Result<Fill> {
        // The first call makes the plan and may touch memory for the first time.
        self.call(forced)?;
        let (mut calls, mut least, mut is_sure) = (1, f64::INFINITY, false);
        loop {
            let mut once = [self.seconds(forced, calls, Rewriting::default())?];
            self.on.all_reduce_in_place(&mut once, ReduceOp::Max)?;
            least = least.min(once[0].max(1e-9));
            let fill = (round / least).clamp(1.0, f64::from(MOST_CALLS)) as u32;
            let is_long = least > long;
            if fill > calls {
                // Few calls tell little where ranks are more than cores: some wake up late.
                calls = fill.min(8 * calls);
            } else if is_sure || is_long {
                return Ok(Fill {
                    calls: fill,
                    is_long,
                });
            } else {
                // One that woke up very late would leave every round with few calls.
                is_sure = true;
            }
        }
    }

    /// Seconds of one of so many calls; if there are several, behind one that lets all ranks begin together.
    pub(super) fn seconds(
        &mut self,
        forced: Forced,
        calls: u32,
        rewriting: Rewriting,
    ) -> Result<f64> {
        self.on.barrier()?;
        if calls > 1 {
            self.rewrite();
            self.call(forced)?;
        }
        let start = Instant::now();
        for _ in 0..calls {
            self.rewrite();
            self.call(forced)?;
        }
        let took = start.elapsed().as_secs_f64() / f64::from(calls);
        // A clock that does not tell so little time apart has measured something all the same.
        Ok((took - rewriting.seconds).max(1e-9))
    }

    /// What rewriting takes the slowest where all ranks do it, as they do in a round: they may share cores.
    pub(super) fn rewriting(&mut self) -> Result<Rewriting> {
        let bytes = (self.own * DTYPE.size()).max(1);
        let times = (REWRITTEN / bytes).clamp(1, MOST_CALLS as usize);
        self.on.barrier()?;
        let start = Instant::now();
        (0..times).for_each(|_| self.rewrite());
        self.on.barrier()?;
        // Who rewrites little or nothing waits in a call for the others: a broadcast's root has all of the input.
        let mut longest = [start.elapsed().as_secs_f64() / times as f64];
        self.on.all_reduce_in_place(&mut longest, ReduceOp::Max)?;
        Ok(Rewriting {
            seconds: longest[0],
        })
    }

    fn rewrite(&mut self) {
        self.buffers.send.rewrite(self.own);
    }

    fn call(&mut self, forced: Forced) -> Result<()> {
        let reduction = self.op.reduces().then_some(ReduceOp::Max);
        let ends = [self.buffers.send.place(), self.buffers.recv.place()];
        (self.on).run_at(self.op, self.count, reduction, ends, Some(forced))
    }
}
