//! A descriptor that becomes readable at a moment: what ends the sleep of a link that must try again.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::net::{Interest, Polled, Poller};

/// A timer in a link's set.
#[derive(Debug)]
pub(crate) struct Timer {
    descriptor: Polled,
    is_set: bool,
}

impl Timer {
    pub(crate) fn new(poller: Arc<Poller>, key: u64) -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd: OwnedFd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let mut polled = Polled::new(fd, poller);
        polled.watch(Interest::Read, key)?;
        Ok(Self {
            descriptor: polled,
            is_set: false,
        })
    }

    /// Fires no more.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_set) {
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

    /// Fires at `when`, or at once if that has passed.
    pub(crate) fn set(&mut self, when: Instant) -> io::Result<()> {
        self.is_set = true;
        let ahead = when.saturating_duration_since(Instant::now());
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
