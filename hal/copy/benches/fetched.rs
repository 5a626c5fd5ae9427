//! Copies of what another core has just written, through its caches or past them, by this crate and by `memcpy`, in the
//! same run. Only the copy is timed, not the writing. Then how long it takes to write again what the other core has read, and
//! what this core has read itself.
//!
//! `cargo bench -p unisono-copy --bench fetched`
#![allow(unsafe_code, reason = "copies take addresses")]

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use rustix::thread::{CpuSet, sched_setaffinity};

const SIZE: usize = 128 << 10;
const STOP: u64 = u64::MAX;
const PAGE: usize = 4096;

type Copy = unsafe fn(*mut u8, *const u8, usize);

/// What the other core is asked for, and what it has done.
#[derive(Default)]
struct Turns {
    asked: AtomicU64,
    done: AtomicU64,
}

/// Memory that two threads use in turns.
#[derive(Clone, Copy)]
struct Shared(*mut u8);

// SAFETY: the turns say who uses it.
unsafe impl Send for Shared {}

fn bind(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    // Where it may not, the figures are of whatever cores the two threads get.
    let _ = sched_setaffinity(None, &set);
}

/// Writes what it has, whenever it is asked, or `reads` what is there.
fn other(Shared(room): Shared, by: Copy, reads: bool, turns: &Turns) {
    bind(1);
    let mut source = vec![7_u8; SIZE];
    for turn in 1.. {
        let asked = loop {
            match turns.asked.load(Ordering::Acquire) {
                asked if asked >= turn => break asked,
                _ => spin_loop(),
            }
        };
        if asked == STOP {
            return;
        }
        // SAFETY: the room holds as much, and the other thread waits.
        unsafe {
            match reads {
                true => by(source.as_mut_ptr(), room, SIZE),
                false => by(room, source.as_ptr(), SIZE),
            }
        }
        turns.done.store(turn, Ordering::Release);
    }
}

impl Turns {
    /// Has the other do its part.
    fn ask(&self, turn: &mut u64) {
        *turn += 1;
        self.asked.store(*turn, Ordering::Release);
        while self.done.load(Ordering::Acquire) < *turn {
            spin_loop();
        }
    }
}

/// Room that begins with a page, as slots do.
fn of_pages(room: &mut [u8]) -> Shared {
    let skip = room.as_ptr().align_offset(PAGE);
    Shared(room[skip..].as_mut_ptr())
}

fn group(c: &mut Criterion, name: String) -> BenchmarkGroup<'_, WallTime> {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Bytes(SIZE as u64));
    group.warm_up_time(Duration::from_millis(200));
    group
        .measurement_time(Duration::from_secs(1))
        .sample_size(10);
    group
}

fn fetched(c: &mut Criterion) {
    bind(0);
    let mut room = vec![0_u8; SIZE + PAGE];
    let mut target = vec![0_u8; SIZE];
    let room = of_pages(&mut room);
    let plain: Copy = |dst, src, bytes| {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(src, dst, bytes) };
    };
    for (how, by) in [
        ("through", unisono_copy::copy as Copy),
        ("past", unisono_copy::copy_past),
    ] {
        let mut group = group(c, format!("fetch {SIZE} B written {how} the caches"));
        for (name, copy) in [
            ("memcpy", plain),
            ("copy", unisono_copy::copy as Copy),
            ("copy_shared", unisono_copy::copy_shared),
        ] {
            let turns = &Turns::default();
            thread::scope(|scope| {
                scope.spawn(move || other(room, by, false, turns));
                let mut turn = 0;
                group.bench_function(BenchmarkId::from_parameter(name), |b| {
                    b.iter_custom(|count| {
                        let mut took = Duration::ZERO;
                        for _ in 0..count {
                            turns.ask(&mut turn);
                            let begun = Instant::now();
                            // SAFETY: both hold as much, and the other thread waits.
                            unsafe { copy(target.as_mut_ptr(), room.0, SIZE) };
                            took += begun.elapsed();
                        }
                        took
                    });
                });
                turns.asked.store(STOP, Ordering::Release);
            });
        }
        group.finish();
    }
}

/// Room that one core has written and one has read, this one or the other, is written by this one.
fn written_again(c: &mut Criterion) {
    bind(0);
    let mut room = vec![0_u8; SIZE + PAGE];
    let mut target = vec![1_u8; SIZE];
    let room = of_pages(&mut room);
    let mut group = group(c, format!("written again {SIZE} B"));
    for (name, reads) in [
        ("that the other has read", true),
        ("that it has read", false),
    ] {
        let turns = &Turns::default();
        thread::scope(|scope| {
            scope.spawn(move || other(room, unisono_copy::copy, reads, turns));
            let mut turn = 0;
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                b.iter_custom(|count| {
                    let mut took = Duration::ZERO;
                    for _ in 0..count {
                        turns.ask(&mut turn);
                        // SAFETY: both hold as much, and the other thread waits.
                        unsafe {
                            if !reads {
                                unisono_copy::copy(target.as_mut_ptr(), room.0, SIZE);
                            }
                            let begun = Instant::now();
                            unisono_copy::copy(room.0, target.as_ptr(), SIZE);
                            took += begun.elapsed();
                        }
                    }
                    took
                });
            });
            turns.asked.store(STOP, Ordering::Release);
        });
    }
    group.finish();
}

criterion_group!(benches, fetched, written_again);
criterion_main!(benches);
