//! The protocol under a model checker: no schedule loses a wake-up.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p unisono-plugin-host --lib
//! --release loom`

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::protocol::{FUTEX, PIPE, Sleepers, Word, ring};

impl Word for AtomicU32 {
    fn load(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }

    fn set(&self, bits: u32) -> u32 {
        self.fetch_or(bits, Ordering::SeqCst)
    }

    fn clear(&self, bits: u32) {
        self.fetch_and(!bits, Ordering::SeqCst);
    }

    fn replace(&self, old: u32, new: u32) -> Result<u32, u32> {
        self.compare_exchange(old, new, Ordering::SeqCst, Ordering::Relaxed)
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// One process's bell, with the kernel's part: the futex's queue and the pipe.
struct Bell {
    word: AtomicU32,
    sleepers: Mutex<Sleepers>,
    futex: Mutex<()>,
    futex_woken: Condvar,
    pipe: Mutex<bool>,
    pipe_written: Condvar,
}

impl Bell {
    fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            sleepers: Mutex::new(Sleepers::default()),
            futex: Mutex::new(()),
            futex_woken: Condvar::new(),
            pipe: Mutex::new(false),
            pipe_written: Condvar::new(),
        }
    }

    fn ring(&self) {
        let modes = ring(&self.word);
        if modes & FUTEX != 0 {
            let _queue = self.futex.lock().unwrap();
            self.futex_woken.notify_all();
        }
        if modes & PIPE != 0 {
            *self.pipe.lock().unwrap() = true;
            self.pipe_written.notify_all();
        }
    }

    /// Sleeps until the flag is raised, as a host would: a lost wake-up is a deadlock, which the
    /// checker reports.
    fn wait(&self, mode: u32, flag: &AtomicU64) {
        let raised = || flag.load(Ordering::Acquire) != 0;
        while !raised() {
            let armed = self.sleepers.lock().unwrap().arm(&self.word, mode, raised);
            let Some(value) = armed else {
                thread::yield_now();
                continue;
            };
            if mode == FUTEX {
                // The kernel compares the word under the queue's lock.
                let queue = self.futex.lock().unwrap();
                if self.word.load(Ordering::Relaxed) == value {
                    drop(self.futex_woken.wait(queue).unwrap());
                }
            } else {
                let mut pipe = self.pipe.lock().unwrap();
                while !*pipe {
                    pipe = self.pipe_written.wait(pipe).unwrap();
                }
            }
            let mut sleepers = self.sleepers.lock().unwrap();
            if sleepers.leave(&self.word, mode) && mode == PIPE {
                *self.pipe.lock().unwrap() = false;
            }
            drop(sleepers);
            // Another that was rung too may have to leave first: the checker must let it.
            thread::yield_now();
        }
    }
}

fn check(sleepers: &'static [u32], ringers: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let bell = Arc::new(Bell::new());
        let flags: Vec<_> = sleepers
            .iter()
            .map(|_| Arc::new(AtomicU64::new(0)))
            .collect();
        let threads: Vec<_> = sleepers
            .iter()
            .zip(&flags)
            .map(|(&mode, flag)| {
                let (bell, flag) = (bell.clone(), flag.clone());
                thread::spawn(move || bell.wait(mode, &flag))
            })
            .collect();
        let ring_some = |from: usize, step: usize| {
            let (bell, flags) = (bell.clone(), flags.clone());
            move || {
                for flag in flags.iter().skip(from).step_by(step) {
                    flag.store(1, Ordering::Release);
                    bell.ring();
                }
            }
        };
        let others: Vec<_> = (1..ringers)
            .map(|i| thread::spawn(ring_some(i, ringers)))
            .collect();
        ring_some(0, ringers)();
        for thread in threads.into_iter().chain(others) {
            thread.join().unwrap();
        }
    });
}

#[test]
fn loom_one_futex_sleeper() {
    check(&[FUTEX], 1);
}

#[test]
fn loom_one_pipe_sleeper() {
    check(&[PIPE], 1);
}

#[test]
fn loom_two_futex_sleepers() {
    check(&[FUTEX, FUTEX], 1);
}

#[test]
fn loom_two_pipe_sleepers() {
    check(&[PIPE, PIPE], 1);
}

#[test]
fn loom_both_ways_at_once() {
    check(&[FUTEX, PIPE], 1);
}

#[test]
fn loom_two_ringers() {
    check(&[FUTEX, PIPE], 2);
}
