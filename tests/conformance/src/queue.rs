//! Driving queues: handing over, polling until done, and never for longer than a check may take.

#![allow(
    unsafe_code,
    reason = "the one place where checks answer for the addresses in their batches"
)]

use std::time::{Duration, Instant};

use unisono_hal::{Batch, Queue, QueueState, State};

use crate::outcome::{Checked, Stop, ensure};

/// The longest that anything may take which should take microseconds: machines can be busy.
pub const LIMIT: Duration = Duration::from_secs(20);
/// What a call that must not block may take, on a machine where other processes run.
pub const PROMPT: Duration = Duration::from_secs(2);
/// Bytes for a poll.
pub const BUDGET: u64 = 1 << 20;

/// A batch that a check fills with addresses of its own memory.
#[must_use]
pub fn batch() -> Batch {
    // SAFETY: checks fill batches with addresses of `Store`s and `Flags` that live until the queue
    // is drained or destroyed, touch those again only then or atomically, and hold the events that
    // they name that long.
    unsafe { Batch::new() }
}

/// Repeats `step` until it gives true; polls and the like must not need longer than [`LIMIT`].
///
/// # Errors
/// What `step` gives, or that it took too long for `what`.
pub fn until(what: &str, mut step: impl FnMut() -> Checked<bool>) -> Checked {
    let end = Instant::now() + LIMIT;
    let mut idle = 0_u32;
    while !step()? {
        ensure!(
            Instant::now() < end,
            "{what} did not happen within {LIMIT:?}"
        );
        idle += 1;
        if idle > 1000 {
            std::thread::sleep(Duration::from_micros(50));
        } else {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Hands over a batch, polling while the queue is full.
///
/// # Errors
/// What the plugin says, or that it takes nothing for too long.
pub fn submit(queue: &mut dyn Queue, batch: &mut Batch) -> Checked {
    until("taking a whole batch", || {
        prompt("submit", || queue.submit(batch))?;
        if batch.is_empty() {
            return Ok(true);
        }
        queue.poll(BUDGET)?;
        Ok(false)
    })
}

/// Polls until the queue is idle.
///
/// # Errors
/// What the plugin says, or that it takes too long.
pub fn drain(queue: &mut dyn Queue) -> Checked<QueueState> {
    let mut last = None;
    until("running what was accepted", || {
        let state = queue.poll(BUDGET)?;
        ensure!(
            state.completed <= state.accepted,
            "{} of {} commands are complete",
            state.completed,
            state.accepted
        );
        last = Some(state);
        Ok(state.state == State::Idle)
    })?;
    last.ok_or_else(|| Stop::failed("no poll"))
}

/// Hands over a batch and polls until all is done.
///
/// # Errors
/// As [`submit`] and [`drain`].
pub fn run(queue: &mut dyn Queue, batch: &mut Batch) -> Checked {
    submit(queue, batch)?;
    drain(queue).map(|_| ())
}

/// Polls until the queue fails, and gives its error.
///
/// # Errors
/// If it does not fail, or without a message.
pub fn failure(what: &str, queue: &mut dyn Queue) -> Checked<unisono_hal::Error> {
    let mut found = None;
    until(what, || {
        found = queue.poll(BUDGET).err();
        Ok(found.is_some())
    })?;
    let error = found.ok_or_else(|| Stop::failed("no error"))?;
    ensure!(
        !error.message.trim().is_empty(),
        "{what}: {error}, without a message"
    );
    Ok(error)
}

/// Polls a little, so that what could run now has run.
///
/// # Errors
/// What the plugin says.
pub fn settle(queue: &mut dyn Queue) -> Checked<QueueState> {
    let end = Instant::now() + Duration::from_millis(30);
    loop {
        let state = prompt("poll", || queue.poll(BUDGET))?;
        if Instant::now() >= end {
            return Ok(state);
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A call that must not block: fails if it took long.
///
/// # Errors
/// What the call gives, or that it took long.
pub fn prompt<T>(what: &str, call: impl FnOnce() -> unisono_hal::Result<T>) -> Checked<T> {
    let start = Instant::now();
    let answer = call();
    let took = start.elapsed();
    ensure!(took < PROMPT, "{what} must not block and took {took:?}");
    Ok(answer?)
}

/// As [`until`], for work that moves many megabytes: three times as long.
///
/// # Errors
/// As there.
pub fn until_slow(what: &str, mut step: impl FnMut() -> Checked<bool>) -> Checked {
    let start = Instant::now();
    while !step()? {
        ensure!(
            start.elapsed() < 3 * LIMIT,
            "{what} did not happen within {:?}",
            3 * LIMIT
        );
        std::thread::yield_now();
    }
    Ok(())
}
