//! What is ready: an epoll set whose entries are named by numbers that are never used twice.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::error::{BootstrapError, Result};

/// Names an entry.
pub(crate) type Token = u64;

/// One entry that is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) token: Token,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

/// An epoll set.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: Arc<OwnedFd>,
    next: Token,
}

impl Poller {
    pub(crate) fn new() -> Result<Poller> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(|e| BootstrapError::io("creating an epoll set", e))?;
        Ok(Poller {
            epoll: Arc::new(epoll),
            next: 0,
        })
    }

    /// The set itself: readable when an entry is ready.
    pub(crate) fn descriptor(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.epoll)
    }

    /// Adds an entry.
    pub(crate) fn add(&mut self, fd: impl AsFd, read: bool, write: bool) -> std::io::Result<Token> {
        let token = self.next;
        epoll::add(
            &*self.epoll,
            fd,
            EventData::new_u64(token),
            flags(read, write),
        )?;
        self.next += 1;
        Ok(token)
    }

    /// Changes what an entry waits for.
    pub(crate) fn change(
        &self,
        fd: impl AsFd,
        token: Token,
        read: bool,
        write: bool,
    ) -> std::io::Result<()> {
        Ok(epoll::modify(
            &*self.epoll,
            fd,
            EventData::new_u64(token),
            flags(read, write),
        )?)
    }

    /// Removes an entry. Closing it would not do: a forked child may hold it open.
    pub(crate) fn remove(&self, fd: impl AsFd) {
        // It can only fail if the entry is gone, which is what is wanted.
        let _ = epoll::delete(&*self.epoll, fd);
    }

    /// What is ready now. At most 256 entries; the rest comes next time.
    pub(crate) fn ready(&self) -> Result<Vec<Ready>> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match epoll::wait(
            &*self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&now),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(BootstrapError::io("asking which connections are ready", e)),
        }
        let failed = EventFlags::ERR | EventFlags::HUP;
        let ready = |event: &epoll::Event| {
            let (data, flags) = (event.data, event.flags);
            let readable = flags.intersects(EventFlags::IN | failed);
            Ready {
                token: data.u64(),
                readable,
                writable: flags.intersects(EventFlags::OUT | failed),
            }
        };
        Ok(events.iter().map(ready).collect())
    }
}

fn flags(read: bool, write: bool) -> EventFlags {
    let mut flags = EventFlags::empty();
    flags.set(EventFlags::IN, read);
    flags.set(EventFlags::OUT, write);
    flags
}
