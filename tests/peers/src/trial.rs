//! The clock: barrier, warm-up, barrier, calls back to back, the slowest rank's mean.

use std::env;
use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use unisono::{Communicator, ReduceOp};

use crate::call::Op;
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
    on: &Communicator,
    op: Op,
    cell: &Cell,
    send: &mut [f32],
    recv: &mut [f32],
) -> Result<Figures> {
    let elements = op.elements(cell.bytes, on.size() as usize);
    let (send, recv) = (&mut send[..elements], &mut recv[..elements]);
    on.barrier()?;
    let start = Instant::now();
    let warmup = cell.warmup.max(1);
    for _ in 0..warmup {
        op.call(on, send, recv)?;
    }
    let once = slowest(on, microseconds(start) / f64::from(warmup))?;
    let mut iters = cell.iters;
    if cell.cap_us > 0.0 && once > 0.0 && iters as f64 * once > cell.cap_us {
        iters = (cell.cap_us / once) as u64;
    }
    iters = iters.max(2);
    let dirty = op != Op::Barrier && env::var("PEERS_DIRTY").is_ok_and(|v| v == "1");
    on.barrier()?;
    let mut touching = 0.0;
    if dirty {
        let start = Instant::now();
        (0..iters).for_each(|_| touch(send));
        touching = microseconds(start) / iters as f64;
        on.barrier()?;
    }
    let start = Instant::now();
    for _ in 0..iters {
        if dirty {
            touch(send);
        }
        op.call(on, send, recv)?;
    }
    let mut usec = microseconds(start) / iters as f64 - touching;
    if op == Op::SendRecv {
        usec /= 2.0;
    }
    let usec = slowest(on, usec)?;
    let mut wrong = -1.0;
    if cell.verify && op != Op::Barrier {
        recv.fill(0.0);
        on.barrier()?;
        op.call(on, send, recv)?;
        wrong = slowest(on, op.wrong(on, recv) as f64)?;
    }
    Ok(Figures { usec, iters, wrong })
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

/// The largest value of all ranks.
fn slowest(on: &Communicator, value: f64) -> Result<f64> {
    let mut values = [value];
    on.all_reduce_in_place(&mut values, ReduceOp::Max)?;
    Ok(values[0])
}
