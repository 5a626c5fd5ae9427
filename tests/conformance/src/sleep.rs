//! Sleeping in the ways that a queue offers.

#![allow(
    unsafe_code,
    reason = "futex words and descriptors cross the plugin boundary as numbers"
)]

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use unisono_hal::{Queue, Sleep, SleepWays, State, Status, Waker};

use crate::outcome::{Checked, Stop, ensure};
use crate::queue::BUDGET;

/// A sleep that nothing ends within this is a lost wake-up.
const LOST: Duration = Duration::from_secs(5);

/// The ways to sleep, and their names.
pub const WAYS: [(SleepWays, &str); 3] = [
    (SleepWays::FUTEX, "futex"),
    (SleepWays::FD, "descriptor"),
    (SleepWays::WAKER, "waker"),
];

/// A thread that sleeps, and the waker that ends its sleep.
pub struct Sleeper {
    wakes: Arc<AtomicU64>,
    waker: Waker,
}

impl Default for Sleeper {
    fn default() -> Self {
        Self::new()
    }
}

impl Sleeper {
    /// For the calling thread.
    #[must_use]
    pub fn new() -> Self {
        let wakes = Arc::new(AtomicU64::new(0));
        let (counts, thread) = (wakes.clone(), std::thread::current());
        let waker = Waker::new(move || {
            counts.fetch_add(1, Ordering::SeqCst);
            thread.unpark();
        });
        Self { wakes, waker }
    }

    /// The waker.
    #[must_use]
    pub fn waker(&self) -> &Waker {
        &self.waker
    }

    /// How often it was called.
    #[must_use]
    pub fn wakes(&self) -> u64 {
        self.wakes.load(Ordering::SeqCst)
    }

    /// Arms in one way and sleeps as the answer says. False if the queue says not to sleep.
    ///
    /// # Errors
    /// Unsupported if the queue cannot sleep in this way; a failure if nothing ends the sleep.
    pub fn sleep(&self, queue: &mut dyn Queue, way: SleepWays) -> Checked<bool> {
        let before = self.wakes();
        let slept = match queue.arm(way, &self.waker)? {
            Sleep::Ready => false,
            Sleep::Futex { addr, value } => {
                futex(addr, value)?;
                true
            }
            Sleep::Fd { fd, events } => {
                descriptor(fd, events)?;
                true
            }
            Sleep::Waker => {
                let end = Instant::now() + LOST;
                while self.wakes() == before {
                    let left = end.saturating_duration_since(Instant::now());
                    ensure!(!left.is_zero(), "nothing called the waker for {LOST:?}");
                    std::thread::park_timeout(left);
                }
                true
            }
        };
        queue.disarm();
        Ok(slept)
    }

    /// Polls until the queue is idle, sleeping in one way whenever it waits.
    ///
    /// # Errors
    /// What the plugin says; a lost wake-up.
    pub fn drain(&self, queue: &mut dyn Queue, way: SleepWays) -> Checked {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let state = queue.poll(BUDGET)?.state;
            if state == State::Idle {
                return Ok(());
            }
            ensure!(Instant::now() < end, "the queue stays {state:?}");
            if state != State::Ready {
                self.sleep(queue, way)?;
            }
        }
    }
}

/// The ways that a queue offers, asked on an idle or waiting queue; none is unsupported.
///
/// # Errors
/// If `arm` fails otherwise than by saying that it cannot sleep in that way.
pub fn offered(queue: &mut dyn Queue) -> Checked<Vec<(SleepWays, &'static str)>> {
    let sleeper = Sleeper::new();
    let mut out = Vec::new();
    for (way, name) in WAYS {
        match queue.arm(way, sleeper.waker()) {
            // A queue that says not to sleep in this way offers it as little as one that refuses.
            Ok(Sleep::Ready) => {}
            Ok(_) => out.push((way, name)),
            Err(error) if error.status == Status::Unsupported => {
                ensure!(
                    !error.message.is_empty(),
                    "arm by {name} is refused without a message"
                );
            }
            Err(error) => return Err(error.into()),
        }
        queue.disarm();
    }
    if out.is_empty() {
        return Err(Stop::unsupported("the queue offers no way to sleep"));
    }
    Ok(out)
}

fn futex(address: usize, value: u32) -> Checked {
    let limit = libc::timespec {
        tv_sec: LOST.as_secs() as libc::time_t,
        tv_nsec: 0,
    };
    // SAFETY: the contract keeps the word mapped until the queue is disarmed; the kernel reads it.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_futex,
            address,
            libc::FUTEX_WAIT,
            value,
            &raw const limit,
        )
    };
    let error = std::io::Error::last_os_error();
    let lost = answer == -1 && error.raw_os_error() == Some(libc::ETIMEDOUT);
    ensure!(!lost, "nothing woke the futex for {LOST:?}");
    let other =
        answer == -1 && ![Some(libc::EAGAIN), Some(libc::EINTR)].contains(&error.raw_os_error());
    ensure!(!other, "the futex cannot be slept on: {error}");
    Ok(())
}

fn descriptor(fd: i32, events: u32) -> Checked {
    // SAFETY: the contract keeps the descriptor open until the queue is disarmed.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let events = PollFlags::from_bits_truncate(events as u16);
    let mut fds = [PollFd::from_borrowed_fd(fd, events)];
    let limit = Timespec {
        tv_sec: LOST.as_secs() as i64,
        tv_nsec: 0,
    };
    match rustix::event::poll(&mut fds, Some(&limit)) {
        Ok(0) => Err(Stop::failed(format!(
            "nothing came of the descriptor for {LOST:?}"
        ))),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(Stop::failed(format!(
            "the descriptor cannot be polled: {error}"
        ))),
    }
}
