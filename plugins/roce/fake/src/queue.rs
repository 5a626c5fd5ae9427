//! Completion queues and their channels.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use unisono_plugin_roce::sys::abi::Wc;

use crate::broken;

/// A descriptor that counts.
pub struct Bell(OwnedFd);

impl Bell {
    pub fn new() -> Self {
        // SAFETY: plain arguments; a descriptor that it gives is ours.
        unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_SEMAPHORE);
            if fd < 0 {
                broken("no descriptors are left");
            }
            Self(OwnedFd::from_raw_fd(fd))
        }
    }

    pub fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }

    pub fn ring(&self) {
        let one = 1_u64;
        // SAFETY: eight readable bytes.
        unsafe { libc::write(self.fd(), (&raw const one).cast(), 8) };
    }

    /// One ring less; false if there is none, and the descriptor does not block.
    pub fn hear(&self) -> bool {
        let mut value = 0_u64;
        // SAFETY: eight writable bytes.
        unsafe { libc::read(self.fd(), (&raw mut value).cast(), 8) == 8 }
    }
}

/// What one completion frees when it is polled.
#[derive(Clone, Copy)]
pub struct Entry {
    pub wc: Wc,
    pub pair: u32,
    pub sends: u32,
    pub receives: u32,
}

/// A completion queue.
pub struct Queue {
    pub entries: VecDeque<Entry>,
    pub depth: usize,
    pub armed: bool,
    /// Rung when armed and something comes; of the channel.
    pub bell: *const Bell,
    /// Events that were taken and not acknowledged.
    pub taken: u32,
    pub pairs: u32,
}

impl Queue {
    pub fn push(&mut self, entry: Entry) {
        if self.entries.len() >= self.depth {
            broken("a completion queue has overrun: its depth is less than what was posted");
        }
        self.entries.push_back(entry);
        if std::mem::take(&mut self.armed) && !self.bell.is_null() {
            // SAFETY: the channel outlives its queues, or `destroy_comp_channel` ends the process.
            unsafe { (*self.bell).ring() };
        }
    }
}
