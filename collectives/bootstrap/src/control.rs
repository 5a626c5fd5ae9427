//! The control channel: what the ranks of a job tell each other beside the data.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::error::{BootstrapError, Result};
use crate::report::Strays;
use crate::wait::Wait;

/// What a message belongs to. Two messages of one sender with one tag arrive in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The communicator.
    pub communicator: u64,
    /// The exchange within it. Collective helpers need a number that this communicator has not used before.
    pub sequence: u64,
}

/// News from the other ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A rank aborted a communicator.
    Abort {
        /// Who.
        origin: u32,
        /// Which; 0 is all.
        communicator: u64,
        /// Its code.
        code: i32,
        /// Its words.
        text: String,
    },
    /// A rank is dead. Said once a rank.
    Dead {
        /// Which.
        rank: u32,
        /// Who saw it.
        by: u32,
        /// How.
        reason: String,
    },
    /// A rank left in good order. Said once a rank.
    Left {
        /// Which.
        rank: u32,
    },
    /// A rank found that ranks do not call the same.
    Mismatch {
        /// Who found it.
        origin: u32,
        /// Where.
        communicator: u64,
        /// What the engine says about it.
        bytes: Vec<u8>,
    },
    /// A rank's [`Control::broadcast`].
    Broadcast {
        /// Who.
        origin: u32,
        /// For what.
        tag: Tag,
        /// What.
        bytes: Vec<u8>,
    },
}

/// A rank's connections to the others, after the rendezvous. Clones share them; any thread may call any method.
///
/// Nothing moves by itself: a thread of the caller's sleeps on [`Control::as_fd`] (readable when there is something
/// to do), at most for [`Control::idle_time`], and calls [`Control::turn`]. A call that waits turns it as well, and leaves the
/// events for the next `turn`.
#[derive(Clone, Debug)]
pub struct Control {
    poll: std::sync::Arc<std::os::fd::OwnedFd>,
}

fn pending() -> BootstrapError {
    BootstrapError::Cancelled {
        what: "control channel (not built yet)".to_owned(),
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poll.as_fd()
    }
}

impl Control {
    /// This rank.
    pub fn rank(&self) -> u32 {
        0
    }

    /// How many ranks the job has.
    pub fn size(&self) -> u32 {
        0
    }

    /// How long the driving thread may sleep if [`Control::as_fd`] stays quiet.
    pub fn idle_time(&self, _now: Instant) -> Duration {
        Duration::ZERO
    }

    /// Moves what can be moved and returns the news. Never blocks.
    ///
    /// # Errors
    /// [`BootstrapError::ForkedProcess`] in a forked child; system errors that leave the channel unusable.
    pub fn turn(&self, _now: Instant) -> Result<Vec<Event>> {
        Err(pending())
    }

    /// Tells all ranks that a communicator (0: all) is aborted. Does not block; this rank gets no event of its own.
    ///
    /// # Errors
    /// [`BootstrapError::ForkedProcess`] in a forked child.
    pub fn abort(&self, _communicator: u64, _code: i32, _text: &str) -> Result<()> {
        Err(pending())
    }

    /// Tells all ranks that calls differ; `bytes` are the engine's. Does not block.
    ///
    /// # Errors
    /// [`BootstrapError::ForkedProcess`], [`BootstrapError::TooLarge`].
    pub fn mismatch(&self, _communicator: u64, _bytes: &[u8]) -> Result<()> {
        Err(pending())
    }

    /// Tells all ranks something. Does not block; at most 64 KiB.
    ///
    /// # Errors
    /// [`BootstrapError::ForkedProcess`], [`BootstrapError::TooLarge`].
    pub fn broadcast(&self, _tag: Tag, _bytes: &[u8]) -> Result<()> {
        Err(pending())
    }

    /// Tells all ranks that a rank is dead, as this rank found by other means (a link that broke for good).
    ///
    /// # Errors
    /// [`BootstrapError::ForkedProcess`], [`BootstrapError::NoSuchRank`].
    pub fn declare_dead(&self, _rank: u32, _reason: &str) -> Result<()> {
        Err(pending())
    }

    /// The ranks known to be dead, ascending.
    pub fn dead(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Sends to one rank, which may be this one. Does not block: the bytes are queued, the connection is opened if
    /// there is none. Delivered once and in order unless one of the two dies. At most 64 MiB.
    ///
    /// # Errors
    /// [`BootstrapError::Died`], [`BootstrapError::Departed`], [`BootstrapError::QueueFull`],
    /// [`BootstrapError::TooLarge`], [`BootstrapError::NoSuchRank`], [`BootstrapError::ForkedProcess`].
    pub fn send(&self, _rank: u32, _tag: Tag, _bytes: &[u8]) -> Result<()> {
        Err(pending())
    }

    /// Takes the next message of that rank and tag, if it has arrived.
    ///
    /// # Errors
    /// [`BootstrapError::ForkedProcess`], [`BootstrapError::NoSuchRank`]; if nothing is there and nothing can come,
    /// [`BootstrapError::Died`] or [`BootstrapError::Departed`].
    pub fn try_recv(&self, _rank: u32, _tag: Tag) -> Result<Option<Vec<u8>>> {
        Err(pending())
    }

    /// Waits for the next message of that rank and tag.
    ///
    /// # Errors
    /// As [`Control::try_recv`]; [`BootstrapError::Aborted`] once the tag's communicator is aborted;
    /// [`BootstrapError::Deadline`], [`BootstrapError::Cancelled`].
    pub fn recv(&self, _rank: u32, _tag: Tag, _wait: &Wait) -> Result<Vec<u8>> {
        Err(pending())
    }

    /// Gives each of `members` the bytes of all of them, in the order of `members`, in ceil(log2 n) rounds. All of
    /// them must call it with the same `members` and the same fresh `tag`; different tags may be under way at once.
    ///
    /// # Errors
    /// As [`Control::recv`]; [`BootstrapError::BadOption`] if this rank is not a member or one stands there twice.
    pub fn all_gather(
        &self,
        _members: &[u32],
        _tag: Tag,
        _bytes: &[u8],
        _wait: &Wait,
    ) -> Result<Vec<Vec<u8>>> {
        Err(pending())
    }

    /// Drops what has arrived, and what will, for a communicator that is gone.
    pub fn forget(&self, _communicator: u64) {}

    /// Tells all ranks that this one leaves, and sends what is still queued. Later calls fail; dropping the last
    /// clone does the same without waiting.
    ///
    /// # Errors
    /// [`BootstrapError::Deadline`] if not all could be sent; [`BootstrapError::ForkedProcess`].
    pub fn leave(&self, _wait: &Wait) -> Result<()> {
        Err(pending())
    }

    /// Connections that were dropped since this rank joined.
    pub fn strays(&self) -> Strays {
        Strays::default()
    }
}

/// Agrees with the surviving `members` on who they are: all that live return the same ascending list, also when
/// the rank that coordinates dies meanwhile. All survivors must call it with the same `members` and a fresh `tag`.
/// `known_dead` adds what this rank knows to what [`Control::dead`] says.
///
/// # Errors
/// [`BootstrapError::Deadline`] naming the ranks that live and did not call; [`BootstrapError::Expelled`] if the
/// others took this rank for dead.
pub fn shrink(
    _control: &Control,
    _tag: Tag,
    _members: &[u32],
    _known_dead: &[u32],
    _wait: &Wait,
) -> Result<Vec<u32>> {
    Err(pending())
}
