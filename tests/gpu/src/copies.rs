//! How fast the device copies its own memory: what every collective on one device is held against.
#![allow(unsafe_code, reason = "hands addresses to streams")]

use std::time::{Duration, Instant};

use unisono::hal::{Batch, Device, Queue, Reduce, State, Stream};
use unisono_emulated_tests::Values;

/// How long a stream may take before it is taken for stuck.
const PATIENCE: Duration = Duration::from_secs(120);

/// Numbers of the contract: a sum of floats of 32 bits.
const F32: u16 = 11;
const SUM: u16 = 1;

/// Adds as many floats of 32 bits to others, in place.
pub fn add(batch: &mut Batch, to: u64, from: u64, elements: u64) {
    batch.reduce(&Reduce {
        dst: to,
        a: to,
        b: from,
        elements,
        repeat: 1,
        dst_stride: 0,
        a_stride: 0,
        b_stride: 0,
        dtype: F32,
        reduction: SUM,
        divisor: 0,
        streaming: false,
    });
}

/// Hands a batch over and waits; how long it took.
///
/// # Panics
/// If the stream refuses it or does not end.
pub fn run(stream: &mut Stream, batch: &mut Batch) -> Duration {
    let since = start(stream, batch);
    finish(stream, since)
}

/// Hands a batch over, as often as it is emptied in part; when that began.
pub fn start(stream: &mut Stream, batch: &mut Batch) -> Instant {
    let since = Instant::now();
    batch.rewind();
    while !batch.is_empty() {
        stream.submit(batch).expect("the stream takes commands");
        stream.poll(1 << 20).expect("the stream works");
        assert!(since.elapsed() < PATIENCE, "the stream is stuck");
    }
    since
}

/// Waits for a stream; how long since it was given its work.
pub fn finish(stream: &mut Stream, since: Instant) -> Duration {
    while stream.poll(1 << 20).expect("the stream works").state != State::Idle {
        assert!(since.elapsed() < PATIENCE, "the stream is stuck");
    }
    since.elapsed()
}

/// Bytes a second, counted read and written: the best of some runs of several copies.
pub fn rate(device: &Device, bytes: usize, repeats: usize) -> f64 {
    const COPIES: usize = 8;
    let (from, to) = (
        Values::<u8>::new(device, bytes),
        Values::<u8>::new(device, bytes),
    );
    let mut stream = device.stream(0).expect("a stream");
    // SAFETY: memory of this function's, which waits for all that uses it.
    let mut batch = unsafe { Batch::new() };
    for _ in 0..COPIES {
        batch.copy(to.address(), from.address(), bytes as u64);
    }
    let best = (0..=repeats).map(|_| run(&mut stream, &mut batch)).min();
    let moved = (2 * bytes * COPIES) as f64;
    moved / best.unwrap_or_default().as_secs_f64().max(1e-9)
}
