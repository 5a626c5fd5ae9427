//! What streams and links have in common: state, control from other threads, and sleep.

use std::sync::Arc;

use unisono_abi::{queue_state, sleep};

/// Where a queue stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum QueuePhase {
    /// All that was accepted is complete.
    #[default]
    Idle = queue_state::IDLE,
    /// More can be done now: poll again.
    Ready = queue_state::READY,
    /// It waits for a flag, a peer, or the device.
    Waiting = queue_state::WAITING,
    /// A link is connecting.
    Connecting = queue_state::CONNECTING,
    /// It failed, or was aborted.
    Failed = queue_state::FAILED,
}

/// The state of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Where it stands.
    pub phase: QueuePhase,
    /// Commands accepted since it was made.
    pub accepted: u64,
    /// Commands completed since it was made.
    pub completed: u64,
    /// Whether this poll made progress.
    pub moved: bool,
}

/// The side of a queue that any thread may use while another is in `poll`.
pub trait QueueControl: Send + Sync + 'static {
    /// The state now; `moved` means nothing here.
    fn query(&self) -> QueueState;

    /// Drops what has not started. What has started ends soon: its waits were released.
    fn abort(&self);
}

impl<T: QueueControl> QueueControl for Arc<T> {
    fn query(&self) -> QueueState {
        (**self).query()
    }

    fn abort(&self) {
        (**self).abort();
    }
}

/// How the host is willing to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepWays(pub(crate) u32);

impl SleepWays {
    /// Ways by the bits of the header (`UNISONO_SLEEP_*`).
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits & (sleep::FUTEX | sleep::FD | sleep::WAKER))
    }

    /// It can wait on a futex.
    #[must_use]
    pub const fn futex(self) -> bool {
        self.0 & sleep::FUTEX != 0
    }

    /// It can wait for a file descriptor.
    #[must_use]
    pub const fn fd(self) -> bool {
        self.0 & sleep::FD != 0
    }

    /// It gave a waker.
    #[must_use]
    pub const fn waker(self) -> bool {
        self.0 & sleep::WAKER != 0
    }
}

/// How a thread may sleep until a queue can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Do not: progress is possible now.
    Ready,
    /// On the 32-bit futex at `address` while it holds `value`.
    Futex {
        /// Its address in this process.
        address: u64,
        /// The value that means "nothing yet".
        value: u32,
    },
    /// Until `fd` has one of `events`, as in poll(2).
    Fd {
        /// The descriptor; it stays the plugin's.
        fd: i32,
        /// `POLLIN` and so on.
        events: u32,
    },
    /// The plugin will call the waker.
    Waker,
}
