//! A long message between two cores whose memory is their own: one copies it out of its memory to slots, the other out of
//! them to its own memory, as ranks do that share no other memory. Nothing else is done, so this is how long such a message
//! takes at least. Then what each of the two takes alone, while the other neither reads nor writes memory of its own. The
//! sender rewrites the message each time, which is not counted.
//!
//! `cargo bench -p unisono-copy --bench slots`
#![allow(unsafe_code, reason = "copies take addresses")]

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rustix::thread::{CpuSet, sched_setaffinity};

const MESSAGE: usize = 64 << 20;
const SLOT: usize = 64 << 10;
const SLOTS: u64 = 4;
const STOP: u64 = u64::MAX;

/// What the two have done, each in a line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Count(AtomicU64);

#[derive(Default)]
struct Counts {
    /// Messages that are wanted, and messages that are written anew.
    wanted: Count,
    ready: Count,
    /// Slots that were filled, and slots that were read.
    filled: Count,
    taken: Count,
}

/// The slots.
#[derive(Clone, Copy)]
struct Room(*mut u8);

// SAFETY: the counts say who uses which of them.
unsafe impl Send for Room {}

impl Room {
    fn slot(self, number: u64) -> *mut u8 {
        self.0.wrapping_add((number % SLOTS) as usize * SLOT)
    }
}

fn bind(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    // Where it may not, the figures are of whatever cores the two threads get.
    let _ = sched_setaffinity(None, &set);
}

fn until(count: &Count, least: u64) -> u64 {
    loop {
        match count.0.load(Ordering::Acquire) {
            count if count >= least => return count,
            _ => spin_loop(),
        }
    }
}

/// Sends messages until it is told to stop, all of each out of one slot's room if it `keeps` to that.
fn send(room: Room, keeps: bool, counts: &Counts) {
    bind(1);
    let mut message = vec![0_u8; MESSAGE];
    let mut filled = 0;
    for number in 1.. {
        message.fill(number as u8);
        counts.ready.0.store(number, Ordering::Release);
        if until(&counts.wanted, number) == STOP {
            return;
        }
        for begin in (0..MESSAGE).step_by(SLOT) {
            until(&counts.taken, (filled + 1_u64).saturating_sub(SLOTS));
            let from = if keeps { 0 } else { begin };
            // SAFETY: the slot was taken.
            unsafe {
                unisono_copy::copy_shared(room.slot(filled), message[from..].as_ptr(), SLOT);
            }
            filled += 1;
            counts.filled.0.store(filled, Ordering::Release);
        }
    }
}

fn slots(c: &mut Criterion) {
    bind(0);
    let mut room = vec![0_u8; SLOTS as usize * SLOT + SLOT];
    let skip = room.as_ptr().align_offset(4096);
    let room = Room(room[skip..].as_mut_ptr());
    let mut target = vec![0_u8; MESSAGE];
    let mut group = c.benchmark_group(format!("{MESSAGE} B by slots"));
    group.throughput(Throughput::Bytes(MESSAGE as u64));
    group.sample_size(10);
    for (name, sends, receives) in [
        ("from memory to memory", true, true),
        ("from memory", true, false),
        ("to memory", false, true),
    ] {
        let counts = &Counts::default();
        thread::scope(|scope| {
            scope.spawn(move || send(room, !sends, counts));
            let (mut number, mut taken) = (0, 0);
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter_custom(|count| {
                    let mut took = Duration::ZERO;
                    for _ in 0..count {
                        number += 1;
                        until(&counts.ready, number);
                        let begun = Instant::now();
                        counts.wanted.0.store(number, Ordering::Release);
                        for begin in (0..MESSAGE).step_by(SLOT) {
                            until(&counts.filled, taken + 1);
                            let (slot, to) = (room.slot(taken), target.as_mut_ptr());
                            // SAFETY: the slot was filled; the target holds the message.
                            unsafe {
                                match receives {
                                    true => unisono_copy::copy_past(to.add(begin), slot, SLOT),
                                    false => unisono_copy::copy_shared(to, slot, SLOT),
                                }
                            }
                            taken += 1;
                            counts.taken.0.store(taken, Ordering::Release);
                        }
                        took += begun.elapsed();
                    }
                    took
                });
            });
            counts.wanted.0.store(STOP, Ordering::Release);
        });
    }
    group.finish();
}

criterion_group!(benches, slots);
criterion_main!(benches);
