//! The progress thread: serves what nobody waits for.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use unisono_hal::SleepWays;

use super::sleep::{Armed, service_fds};
use super::{Parker, progress};

/// How long the thread spins for more before it sleeps again.
const LINGER: Duration = Duration::from_micros(50);

/// A control channel that the thread turns.
pub(crate) trait Service: Send + Sync {
    /// Readable when there is something to do.
    fn fd(&self) -> BorrowedFd<'_>;
    /// Handles what came; returns how long it may be left alone if its descriptor stays quiet,
    /// `None` if it is no longer needed.
    fn turn(&self, now: Instant) -> Option<Duration>;
}

/// Starts the thread with all signals blocked; returns what wakes it.
pub(super) fn start() -> Arc<Parker> {
    let parker = Arc::new(Parker::new());
    let own = parker.clone();
    let unblock = block_signals();
    std::thread::Builder::new()
        .name("unisono".to_owned())
        .spawn(move || run(&own))
        .expect("no thread left for progress");
    restore_signals(&unblock);
    parker
}

fn run(parker: &Arc<Parker>) {
    let progress = progress();
    let mut moved_at = Instant::now();
    loop {
        let mut services = progress.services();
        let mut idle = Duration::from_secs(60);
        // One that is no longer needed is let go before the sleep: it holds descriptors.
        services.retain(|service| match service.turn(Instant::now()) {
            Some(time) => {
                idle = idle.min(time);
                true
            }
            None => {
                progress.remove_service(service);
                false
            }
        });
        let mine = progress.drivers.load(Ordering::Acquire) == 0;
        if mine && progress.drive() {
            moved_at = Instant::now();
            continue;
        }
        let lanes = if mine { progress.active() } else { Vec::new() };
        if !lanes.is_empty() && moved_at.elapsed() < LINGER {
            std::thread::yield_now();
            continue;
        }
        let grace = lanes.iter().filter_map(|lane| lane.grace_left()).min();
        // A little more, so that it is over then.
        idle = grace.map_or(idle, |grace| idle.min(grace + Duration::from_millis(1)));
        let armed = Armed::new(lanes, SleepWays::FD | SleepWays::WAKER, parker);
        if armed.is_ready() {
            drop(armed);
            // Somebody else may be doing it: let them.
            std::thread::yield_now();
            continue;
        }
        let fds: Vec<_> = service_fds(&services).collect();
        armed.poll(parker, &fds, idle);
        drop(armed);
        moved_at = Instant::now();
    }
}

#[allow(unsafe_code, reason = "signal masks have no safe interface here")]
fn block_signals() -> libc::sigset_t {
    // SAFETY: plain calls on local sets.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

#[allow(unsafe_code, reason = "signal masks have no safe interface here")]
fn restore_signals(before: &libc::sigset_t) {
    // SAFETY: restores the mask that `block_signals` saved.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut());
    }
}
