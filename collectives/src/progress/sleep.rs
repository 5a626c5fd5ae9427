//! Sleeping until a lane can go on.
//!
//! A sleeper arms every queue that it depends on and publishes how it sleeps: on the streams' futex
//! if shared memory is all that it waits for, on descriptors otherwise. After arming it looks once
//! more, so what becomes ready in between ends the sleep at once.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use unisono_hal::{Sleep, SleepWays};

use super::{Parker, Progress};
use crate::execute::Lane;

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By what it waited for, by somebody else, or before it began.
    Woken,
    /// By nothing, at its limit.
    OverTime,
}

/// What a thread can sleep on, gathered from the queues that it armed.
#[derive(Default)]
pub(super) struct Armed {
    lanes: Vec<Arc<Lane>>,
    futex: Option<(usize, u32)>,
    fds: Vec<(i32, u32)>,
    ready: bool,
    /// A queue will call the waker, which a futex sleeper does not hear.
    waker: bool,
    /// Another thread holds a lane's lock, perhaps not for long.
    contended: bool,
}

/// The longest sleep while a lane could not be armed.
const CONTENDED: Duration = Duration::from_millis(1);

impl Armed {
    /// Arms the queues of `lanes`; lanes that another thread drives are left to it.
    pub(super) fn new(lanes: Vec<Arc<Lane>>, ways: SleepWays, parker: &Arc<Parker>) -> Self {
        let mut armed = Self::default();
        let waker = parker.waker();
        for lane in lanes {
            if lane.failure().is_some() {
                // It drains; there is nothing to be woken for.
                armed.contended = true;
                continue;
            }
            let Some(mut state) = lane.try_lock() else {
                armed.contended = true;
                continue;
            };
            armed.ready |= !state.hand_over();
            for queue in state.queues() {
                match queue.arm(ways, &waker) {
                    Ok(Sleep::Ready) | Err(_) => armed.ready = true,
                    Ok(Sleep::Futex { addr, value }) => {
                        // All streams of a process share one bell. The oldest value counts: what
                        // changed since then may be ours.
                        armed.futex.get_or_insert((addr, value));
                    }
                    Ok(Sleep::Fd { fd, events }) => armed.fds.push((fd, events)),
                    Ok(Sleep::Waker) => armed.waker = true,
                }
            }
            drop(state);
            armed.lanes.push(lane);
        }
        armed
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    fn limit(&self, limit: Duration) -> Duration {
        if self.contended {
            limit.min(CONTENDED)
        } else {
            limit
        }
    }

    /// Sleeps on the descriptors, on `others` and on the parker.
    pub(super) fn poll(&self, parker: &Parker, others: &[BorrowedFd<'_>], limit: Duration) -> End {
        let mut polled: Vec<PollFd<'_>> = vec![PollFd::new(parker, PollFlags::IN)];
        polled.extend(
            others
                .iter()
                .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)),
        );
        #[allow(
            unsafe_code,
            reason = "descriptors cross the plugin boundary as numbers"
        )]
        for (fd, events) in &self.fds {
            // SAFETY: the contract keeps the descriptor open until the queue is disarmed, which
            // happens after this sleep.
            let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
            polled.push(PollFd::from_borrowed_fd(
                fd,
                PollFlags::from_bits_truncate(*events as u16),
            ));
        }
        let limit = self.limit(limit);
        let limit = Timespec::try_from(limit).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        // An interrupted or failed poll is a short sleep: the caller looks again either way.
        let ready = rustix::event::poll(&mut polled, Some(&limit));
        parker.clear();
        if ready == Ok(0) {
            End::OverTime
        } else {
            End::Woken
        }
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        for lane in &self.lanes {
            for queue in lane.lock().queues() {
                queue.disarm();
            }
        }
    }
}

/// Sleeps until `lane` or another lane with work can go on, op `number` is complete, or `limit`.
pub(super) fn until_ready(
    progress: &Progress,
    lane: &Arc<Lane>,
    number: u64,
    limit: Duration,
) -> End {
    let parker = Parker::current();
    let mut lanes = progress.active();
    if !lanes.iter().any(|l| Arc::ptr_eq(l, lane)) {
        lanes.push(lane.clone());
    }
    let futex_only = lanes.iter().all(|l| !l.posted);
    lane.add_sleeper(&parker);
    let ways = if futex_only {
        SleepWays::FUTEX | SleepWays::WAKER
    } else {
        SleepWays::FD | SleepWays::WAKER
    };
    let armed = Armed::new(lanes, ways, &parker);
    let done = lane.completed() >= number || lane.failure().is_some();
    let end = if done || armed.is_ready() {
        End::Woken
    } else {
        match armed.futex {
            Some((address, value)) if armed.fds.is_empty() && !armed.waker => {
                futex_wait(address, value, armed.limit(limit))
            }
            _ => armed.poll(&parker, &[], limit),
        }
    };
    drop(armed);
    lane.remove_sleeper(&parker);
    end
}

#[allow(
    unsafe_code,
    reason = "futex words cross the plugin boundary as addresses"
)]
fn futex_wait(address: usize, value: u32, limit: Duration) -> End {
    let limit = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
    };
    // SAFETY: the contract keeps the word mapped until the queue is disarmed, which happens after
    // this sleep; the kernel only reads it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            address,
            libc::FUTEX_WAIT,
            value,
            &raw const limit,
        )
    };
    if result == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT) {
        End::OverTime
    } else {
        End::Woken
    }
}

/// The descriptors of services, for the thread's own sleep.
pub(super) fn service_fds<'a>(
    services: &'a [Arc<dyn super::Service>],
) -> impl Iterator<Item = BorrowedFd<'a>> {
    services.iter().map(|service| service.fd())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    const SOON: Duration = Duration::from_millis(1);

    #[test]
    fn a_sleep_on_a_futex_says_how_it_ended() {
        let word = AtomicU32::new(7);
        let address = word.as_ptr() as usize;
        assert_eq!(futex_wait(address, 7, SOON), End::OverTime);
        assert_eq!(futex_wait(address, 6, SOON), End::Woken, "it has changed");
    }

    #[test]
    fn a_sleep_on_descriptors_says_how_it_ended() {
        let parker = Arc::new(Parker::new());
        let armed = Armed::default();
        assert_eq!(armed.poll(&parker, &[], SOON), End::OverTime);
        parker.unpark();
        assert_eq!(armed.poll(&parker, &[], SOON), End::Woken);
        assert_eq!(
            armed.poll(&parker, &[], SOON),
            End::OverTime,
            "it was cleared"
        );
    }
}
