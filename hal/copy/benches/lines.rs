//! A short message from one core to another and one back, by lines that both share: flag and bytes are written by one, and
//! looked for and read by the other. Nothing else is done, so this is how long a short message takes at least, one way: half
//! of the time of both. Up to 56 bytes lie in the flag's line, more in lines of their own.
//!
//! `cargo bench -p unisono-copy --bench lines`
#![allow(unsafe_code, reason = "copies take addresses")]

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rustix::thread::{CpuSet, sched_setaffinity};

const BESIDE: usize = 56;
const MOST: usize = 1024;
/// Places that messages go round in, so that none is written where the last was read.
const PLACES: u64 = 16;
const STOP: u64 = u64::MAX;

/// Where a message lies, and its number. The two are a line, and what is apart begins with one.
#[repr(C, align(128))]
struct Place {
    number: AtomicU64,
    beside: UnsafeCell<[u8; BESIDE]>,
    apart: UnsafeCell<[u8; MOST]>,
}

/// One way.
struct Way([Place; PLACES as usize]);

// SAFETY: of each place the number says whose turn it is.
unsafe impl Sync for Way {}

impl Way {
    fn new() -> Box<Self> {
        let place = |_| Place {
            number: AtomicU64::new(0),
            beside: UnsafeCell::new([0; BESIDE]),
            apart: UnsafeCell::new([0; MOST]),
        };
        Box::new(Self(std::array::from_fn(place)))
    }

    fn place(&self, number: u64) -> &Place {
        &self.0[(number % PLACES) as usize]
    }

    fn send(&self, number: u64, message: &[u8]) {
        let place = self.place(number);
        // SAFETY: the other has read what lay here, as it has answered since.
        unsafe { unisono_copy::copy(place.bytes(message.len()), message.as_ptr(), message.len()) };
        place.number.store(number, Ordering::Release);
    }

    /// False if there is no more.
    fn recv(&self, number: u64, message: &mut [u8]) -> bool {
        let place = self.place(number);
        loop {
            match place.number.load(Ordering::Acquire) {
                STOP => return false,
                seen if seen == number => break,
                _ => spin_loop(),
            }
        }
        let (to, bytes) = (message.as_mut_ptr(), message.len());
        // SAFETY: the number says that it is there.
        unsafe { unisono_copy::copy(to, place.bytes(bytes), bytes) };
        true
    }
}

impl Place {
    fn bytes(&self, count: usize) -> *mut u8 {
        match count <= BESIDE {
            true => self.beside.get().cast(),
            false => self.apart.get().cast(),
        }
    }
}

fn bind(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    // Where it may not, the figures are of whatever cores the two threads get.
    let _ = sched_setaffinity(None, &set);
}

fn lines(c: &mut Criterion) {
    bind(0);
    let mut group = c.benchmark_group("message by lines, one way");
    for bytes in [4, 64, 1024] {
        let [there, back] = &[Way::new(), Way::new()];
        thread::scope(|scope| {
            scope.spawn(move || {
                bind(1);
                let mut message = vec![0_u8; bytes];
                for number in 1.. {
                    if !there.recv(number, &mut message) {
                        return;
                    }
                    message[0] = message[0].wrapping_add(1);
                    back.send(number, &message);
                }
            });
            let mut message = vec![0_u8; bytes];
            let mut number = 0;
            group.bench_function(BenchmarkId::from_parameter(format!("{bytes} B")), |b| {
                b.iter_custom(|count| {
                    let begun = Instant::now();
                    for _ in 0..count {
                        number += 1;
                        there.send(number, &message);
                        assert!(back.recv(number, &mut message), "nobody stops it");
                    }
                    begun.elapsed() / 2
                });
            });
            assert_eq!(message[0], number as u8, "each was sent on once");
            there
                .place(number + 1)
                .number
                .store(STOP, Ordering::Release);
        });
    }
    group.finish();
}

criterion_group!(benches, lines);
criterion_main!(benches);
