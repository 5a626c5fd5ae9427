//! The clock: barrier, warm-up, barrier, calls back to back, the slowest rank's mean.

use std::env;
use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;

use crate::call::{Caller, Op, pattern};
use crate::command::Cell;

/// What a trial found.
pub struct Figures {
    pub usec: f64,
    pub iters: u64,
    /// Wrong elements of the worst rank, -1 if nothing was checked.
    pub wrong: f64,
}

/// Measures one cell on buffers of enough elements; all ranks call this.
pub fn measure(
    on: &impl Caller,
    op: Op,
    cell: &Cell,
    send: &mut [f32],
    recv: &mut [f32],
) -> Result<Figures> {
    let elements = op.elements(cell.bytes, on.size() as usize);
    let (send, recv) = (&mut send[..elements], &mut recv[..elements]);
    let into_send = op == Op::Broadcast && on.broadcasts_into_send();
    barrier(on)?;
    let start = Instant::now();
    let warmup = cell.warmup.max(1);
    for _ in 0..warmup {
        on.call(op, send, recv)?;
    }
    let mut usec = on.slowest(microseconds(start) / f64::from(warmup))?;
    let mut iters = cell.iters_within(usec, 2);
    let dirty = op != Op::Barrier && env::var("PEERS_DIRTY").is_ok_and(|v| v == "1");
    loop {
        usec = timed(on, op, send, recv, iters, dirty)?;
        // Where the first calls were slow, the time of a few calls is not that of many: where ranks share a core, each may
        // do all of its own in one turn, and no clock sees that others had to wait for it.
        match cell.iters_within(usec, iters) {
            more if more > 2 * iters => iters = more,
            _ => break,
        }
    }
    let mut wrong = -1.0;
    if cell.verify && op != Op::Barrier {
        recv.fill(0.0);
        barrier(on)?;
        on.call(op, send, recv)?;
        let got = if into_send { &*send } else { &*recv };
        wrong = on.slowest(op.wrong(on.rank() as usize, on.size() as usize, got) as f64)?;
    }
    if into_send {
        fill(send, on.rank());
    }
    if op == Op::SendRecv {
        usec /= 2.0;
    }
    Ok(Figures { usec, iters, wrong })
}

/// Microseconds of one of so many calls, on the slowest rank.
fn timed(
    on: &impl Caller,
    op: Op,
    send: &mut [f32],
    recv: &mut [f32],
    iters: u64,
    dirty: bool,
) -> Result<f64> {
    barrier(on)?;
    // Who gets what is broadcast in `send` has no input there: it rewrites what others do not read either.
    let is_target = op == Op::Broadcast && on.broadcasts_into_send() && on.rank() != 0;
    let mut touching = 0.0;
    if dirty {
        let rewritten = if is_target { &mut *recv } else { &mut *send };
        let start = Instant::now();
        (0..iters).for_each(|_| touch(rewritten));
        touching = microseconds(start) / iters as f64;
        barrier(on)?;
    }
    let start = Instant::now();
    for _ in 0..iters {
        if dirty {
            touch(if is_target { recv } else { send });
        }
        on.call(op, send, recv)?;
    }
    on.slowest(microseconds(start) / iters as f64 - touching)
}

/// What a rank sends.
pub fn fill(send: &mut [f32], rank: u32) {
    for (i, value) in send.iter_mut().enumerate() {
        *value = pattern(rank as usize, i);
    }
}

/// Rewrites one word of every cache line, as a program that computes its input would.
fn touch(data: &mut [f32]) {
    for word in data.iter_mut().step_by(16) {
        *word = black_box(*word);
    }
}

fn microseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

fn barrier(on: &impl Caller) -> Result<()> {
    on.call(Op::Barrier, &mut [], &mut [])
}
