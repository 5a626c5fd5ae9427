//! What streams and links have in common: both are ordered queues of commands.

use std::fmt;
use std::ops::BitOr;
use std::os::fd::RawFd;
use std::sync::Arc;

use unisono_abi as abi;

use crate::{Batch, Result, Waker};

/// An ordered queue of commands: a [`Stream`](crate::Stream) or a [`Link`](crate::Link).
///
/// Calls that take `&mut self` are the ones that the contract serialises for each handle.
pub trait Queue: Send {
    /// Hands over what the batch still holds, in one call, and drops from it what was taken.
    /// Never blocks. Gives the number of commands taken, which may be 0.
    ///
    /// # Errors
    /// What the plugin says. Nothing more is taken from a batch that holds a command it refuses.
    fn submit(&mut self, batch: &mut Batch) -> Result<u32>;

    /// Makes progress on this thread for about `budget` bytes of moving, and tells the state.
    ///
    /// # Errors
    /// The queue has failed: it stays failed and takes no more commands.
    fn poll(&mut self, budget: u64) -> Result<QueueState>;

    /// Prepares to sleep in one of the `allowed` ways. After an answer other than [`Sleep::Ready`],
    /// what makes progress possible ends that sleep. The waker is kept until [`Queue::disarm`].
    ///
    /// # Errors
    /// What the plugin says, or that it chose a way that was not allowed.
    fn arm(&mut self, allowed: SleepWays, waker: &Waker) -> Result<Sleep>;

    /// Ends what [`Queue::arm`] began. Does nothing if the queue is not armed.
    fn disarm(&mut self);

    /// The state, without making progress.
    ///
    /// # Errors
    /// What the plugin says.
    fn state(&self) -> Result<QueueState>;

    /// A handle that aborts this queue from any thread.
    fn aborter(&self) -> Aborter;
}

/// Where a queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// What the queue is doing.
    pub state: State,
    /// Commands taken since the queue was made.
    pub accepted: u64,
    /// Commands finished since the queue was made.
    pub completed: u64,
    /// Whether this poll made progress.
    pub moved: bool,
}

/// What a queue is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All that was taken is complete.
    Idle,
    /// More can be done now: poll again.
    Ready,
    /// It waits for a flag, a peer or the device.
    Waiting,
    /// A link is not up yet.
    Connecting,
    /// It failed, or was aborted.
    Failed,
}

/// Ways in which a thread can sleep, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepWays(u32);

/// How to sleep until a queue can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Not at all: progress is possible now.
    Ready,
    /// On a 32-bit futex, for as long as it holds the value.
    Futex {
        /// Its address, valid while the queue lives.
        addr: usize,
        /// The value.
        value: u32,
    },
    /// Until the descriptor has one of the events, as in `poll(2)`.
    Fd {
        /// The descriptor; the queue owns it.
        fd: RawFd,
        /// The events.
        events: u32,
    },
    /// Until the waker is called.
    Waker,
}

/// Aborts one queue: what has not started is dropped, what has started ends soon.
///
/// It keeps the queue's handle alive.
#[derive(Clone)]
pub struct Aborter(pub(crate) Arc<dyn Abort>);

pub(crate) trait Abort: Send + Sync {
    fn abort(&self);
}

impl Aborter {
    /// Aborts. Any thread, any number of times.
    pub fn abort(&self) {
        self.0.abort();
    }
}

impl fmt::Debug for Aborter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Aborter")
    }
}

impl SleepWays {
    /// No way: only [`Sleep::Ready`] can be answered.
    pub const NONE: Self = Self(0);
    /// On a futex.
    pub const FUTEX: Self = Self(abi::sleep::FUTEX);
    /// On a descriptor.
    pub const FD: Self = Self(abi::sleep::FD);
    /// By the waker.
    pub const WAKER: Self = Self(abi::sleep::WAKER);
    /// All of them.
    pub const ALL: Self = Self(abi::sleep::FUTEX | abi::sleep::FD | abi::sleep::WAKER);

    /// Whether every way of `other` is in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0
    }
}

impl BitOr for SleepWays {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl State {
    #[inline]
    pub(crate) const fn from_raw(state: u32) -> Option<Self> {
        Some(match state {
            abi::queue_state::IDLE => Self::Idle,
            abi::queue_state::READY => Self::Ready,
            abi::queue_state::WAITING => Self::Waiting,
            abi::queue_state::CONNECTING => Self::Connecting,
            abi::queue_state::FAILED => Self::Failed,
            _ => return None,
        })
    }
}
