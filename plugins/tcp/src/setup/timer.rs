//! A descriptor that becomes readable at a moment: what ends the sleep of a link that must try again.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::net::{Interest, Polled, Poller};

/// How much too early it may fire.
const EARLY: Duration = Duration::from_millis(1);

/// A timer in a link's set.
#[derive(Debug)]
pub(crate) struct Timer {
    descriptor: Polled,
    /// When it fires, or has fired.
    at: Option<Instant>,
}

impl Timer {
    pub(crate) fn new(poller: Arc<Poller>, key: u64) -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd: OwnedFd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let mut polled = Polled::new(fd, poller);
        polled.watch(Interest::Read, key)?;
        Ok(Self {
            descriptor: polled,
            at: None,
        })
    }

    /// Fires no more.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        if self.at.take().is_none() {
            return Ok(());
        }
        let never = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let spec = Itimerspec {
            it_interval: never,
            it_value: never,
        };
        timerfd_settime(self.descriptor.fd(), TimerfdTimerFlags::empty(), &spec)?;
        Ok(())
    }

    /// Fires at `when` or a little before, or at once if that has passed.
    pub(crate) fn set(&mut self, when: Instant) -> io::Result<()> {
        let now = Instant::now();
        // Who sleeps often, and must not miss what is far away, makes no call for that each time.
        if self
            .at
            .is_some_and(|at| at > now && at <= when && when - at < EARLY)
        {
            return Ok(());
        }
        self.at = Some(when);
        let ahead = when.saturating_duration_since(now);
        let spec = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: ahead.as_secs().try_into().unwrap_or(i64::MAX),
                // All zero would switch it off.
                tv_nsec: i64::from(ahead.subsec_nanos()).max(1),
            },
        };
        timerfd_settime(self.descriptor.fd(), TimerfdTimerFlags::empty(), &spec)?;
        Ok(())
    }
}
