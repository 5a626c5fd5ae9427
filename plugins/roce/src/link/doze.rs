//! How a link sleeps: one descriptor that is ready when a completion comes, or when it is time to act
//! even so.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use unisono_plugin::Sleep;

/// `POLLIN`
const READABLE: u32 = 1;

/// The set of a link's descriptors. Queue pairs come and go: a descriptor that is closed leaves the
/// set by itself.
#[derive(Debug)]
pub(crate) struct Doze {
    set: OwnedFd,
    timer: OwnedFd,
}

impl Doze {
    pub(crate) fn new() -> io::Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        epoll::add(&set, &timer, EventData::new_u64(0), EventFlags::IN)?;
        Ok(Self { set, timer })
    }

    /// Watches a descriptor, if it is not watched already.
    pub(crate) fn watch(&self, fd: impl AsFd) -> io::Result<()> {
        match epoll::add(&self.set, fd, EventData::new_u64(0), EventFlags::IN) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Wakes after this long at the latest. It is not 0: that would mean never.
    pub(crate) fn set_alarm(&self, after: Duration) -> io::Result<()> {
        let after = after.max(Duration::from_micros(1));
        let spec = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(after.subsec_nanos()),
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &spec)?;
        Ok(())
    }

    /// What the host is to wait for.
    pub(crate) fn sleep(&self) -> Sleep {
        Sleep::Fd {
            fd: self.set.as_raw_fd(),
            events: READABLE,
        }
    }
}
