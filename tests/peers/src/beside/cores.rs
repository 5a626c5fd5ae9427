//! How far apart two cores are: virtual machines are moved, and what lay on one cache then lies on two.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::machine::cores;

const TRIPS: u32 = 10_000;

/// Round trips that differ by more are of cores that were moved apart or together. Between those that share a cache one
/// takes 90 to 110 ns on an EPYC 9004, and between those that do not 500 to 600.
const MOVED: f64 = 1.5;

/// One word in lines of its own: processors fetch two neighbours together.
#[repr(align(128))]
#[derive(Default)]
struct Word(AtomicU32);

impl Word {
    fn await_value(&self, value: u32) {
        while self.0.load(Ordering::Acquire) != value {
            spin_loop();
        }
    }
}

/// Nanoseconds in which a cache line goes from core 0 to core 1 and another comes back; `None` on a machine of one core,
/// or where a thread may not be bound to these.
pub fn round_trip() -> Option<f64> {
    if cores() < 2 {
        return None;
    }
    let [there, back] = [Word::default(), Word::default()];
    thread::scope(|scope| {
        // Threads of their own, as the caller's is to go on where it was.
        let asks = scope.spawn(|| {
            // Who is not bound goes on: the other thread waits.
            let is_bound = bind(0);
            let begin = Instant::now();
            for trip in 1..=TRIPS {
                there.0.store(trip, Ordering::Release);
                back.await_value(trip);
            }
            let time = begin.elapsed().as_secs_f64() * 1e9 / f64::from(TRIPS);
            is_bound.then_some(time)
        });
        let answers = scope.spawn(|| {
            let is_bound = bind(1);
            for trip in 1..=TRIPS {
                there.await_value(trip);
                back.0.store(trip, Ordering::Release);
            }
            is_bound
        });
        let (time, is_bound) = (asks.join().ok()?, answers.join().ok()?);
        time.filter(|_| is_bound)
    })
}

/// Whether the host moved the cores apart or together between two such measurements.
pub fn were_moved(before: Option<f64>, after: Option<f64>) -> bool {
    let moved = |(before, after): (f64, f64)| before.max(after) > MOVED * before.min(after);
    before.zip(after).is_some_and(moved)
}

fn bind(core: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_some_time_where_there_are_two_cores() {
        if let Some(nanoseconds) = round_trip() {
            assert!(nanoseconds > 1.0, "{nanoseconds}");
        }
    }

    #[test]
    fn a_move_is_told_from_noise() {
        assert!(were_moved(Some(90.0), Some(530.0)) && were_moved(Some(530.0), Some(90.0)));
        assert!(!were_moved(Some(90.0), Some(110.0)) && !were_moved(None, Some(90.0)));
    }
}
