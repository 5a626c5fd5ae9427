//! A descriptor that an epoll set watches, for as long as it lives.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};

/// A set of descriptors; itself a descriptor, readable when one of them is ready.
#[derive(Debug)]
pub(crate) struct Poller(OwnedFd);

impl Poller {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self(epoll::create(epoll::CreateFlags::CLOEXEC)?)))
    }

    /// The keys of those that are ready now, at most as many as `keys` holds.
    pub(crate) fn ready(&self, keys: &mut [u64; 64]) -> usize {
        let empty = epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        let mut events = [empty; 64];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let count = epoll::wait(&self.0, &mut events, Some(&now)).unwrap_or(0);
        for (key, event) in keys.iter_mut().zip(&events[..count]) {
            *key = event.data.u64();
        }
        count
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    Nothing,
    Read,
    Write,
    Both,
}

impl Interest {
    pub(crate) const fn of(read: bool, write: bool) -> Self {
        match (read, write) {
            (false, false) => Self::Nothing,
            (true, false) => Self::Read,
            (false, true) => Self::Write,
            (true, true) => Self::Both,
        }
    }

    const fn flags(self) -> EventFlags {
        match self {
            Self::Nothing => EventFlags::empty(),
            Self::Read => EventFlags::IN,
            Self::Write => EventFlags::OUT,
            Self::Both => EventFlags::IN.union(EventFlags::OUT),
        }
    }
}

/// A descriptor and its place in a set. It leaves the set before it is closed: a forked child may
/// hold a copy, and the system forgets a closed descriptor only when the last copy is gone.
#[derive(Debug)]
pub(crate) struct Polled<F: AsFd = OwnedFd> {
    fd: F,
    poller: Arc<Poller>,
    interest: Interest,
}

impl<F: AsFd> Polled<F> {
    /// Not watched for anything yet.
    pub(crate) const fn new(fd: F, poller: Arc<Poller>) -> Self {
        Self {
            fd,
            poller,
            interest: Interest::Nothing,
        }
    }

    pub(crate) const fn fd(&self) -> &F {
        &self.fd
    }

    /// Watches for something else; `key` is what [`Poller::ready`] then gives.
    pub(crate) fn watch(&mut self, interest: Interest, key: u64) -> io::Result<()> {
        if interest == self.interest {
            return Ok(());
        }
        let data = EventData::new_u64(key);
        match (self.interest, interest) {
            (Interest::Nothing, _) => {
                epoll::add(&*self.poller, &self.fd, data, interest.flags())?;
            }
            (_, Interest::Nothing) => epoll::delete(&*self.poller, &self.fd)?,
            _ => epoll::modify(&*self.poller, &self.fd, data, interest.flags())?,
        }
        self.interest = interest;
        Ok(())
    }
}

impl Polled<OwnedFd> {
    /// Takes the descriptor out of its set, to put it in another.
    pub(crate) fn into_fd(mut self) -> io::Result<OwnedFd> {
        self.watch(Interest::Nothing, 0)?;
        self.fd.try_clone()
    }
}

impl<F: AsFd> Drop for Polled<F> {
    fn drop(&mut self) {
        // A descriptor that is not in the set is not an error here.
        let _ = self.watch(Interest::Nothing, 0);
    }
}
