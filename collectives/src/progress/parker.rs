//! A thread's own bell: an eventfd that other threads and plugins' wakers ring.

use std::cell::OnceCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Wakes one thread out of its sleep. Any thread; async-signal-safe.
#[derive(Debug)]
pub(crate) struct Parker {
    fd: OwnedFd,
}

impl Parker {
    /// The parker of this thread.
    pub(crate) fn current() -> Arc<Self> {
        thread_local! {
            static PARKER: OnceCell<Arc<Parker>> = const { OnceCell::new() };
        }
        PARKER.with(|cell| cell.get_or_init(|| Arc::new(Self::new())).clone())
    }

    pub(crate) fn new() -> Self {
        use rustix::event::{EventfdFlags, eventfd};
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Self {
            // Without descriptors nothing else of this process works either.
            fd: eventfd(0, flags).expect("no file descriptor left for an eventfd"),
        }
    }

    pub(crate) fn unpark(&self) {
        // A full counter means that it is rung already.
        let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
    }

    /// Forget rings so far.
    pub(crate) fn clear(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.fd, &mut count);
    }

    /// What plugins call.
    pub(crate) fn waker(self: &Arc<Self>) -> unisono_hal::Waker {
        let parker = self.clone();
        unisono_hal::Waker::new(move || parker.unpark())
    }
}

impl AsFd for Parker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
