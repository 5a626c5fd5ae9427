//! The control channel: what the ranks of a job tell each other beside the data.

mod agreement;
mod connections;
mod floods;
mod gather;
mod inbox;
mod liveness;
mod message;
mod peer;
mod session;
mod shared;
mod shrink;
mod state;
mod traffic;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::directory::RankEntry;
use crate::error::{BootstrapError, Result};
use crate::options::Heartbeat;
use crate::report::Strays;
use crate::wait::Wait;
use crate::wire::hub::Hub;

use message::{Lane, News};
use shared::Shared;
use state::{Gone, State};

pub use shrink::shrink;

/// The longest text or bytes of a flood.
const MAX_FLOOD: usize = 64 << 10;

/// What a message belongs to. Two messages of one sender with one tag arrive in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The communicator. `u64::MAX` is the bootstrap's own.
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
/// to do), at most for [`Control::idle_time`], and calls [`Control::turn`]. A call that waits turns the channel as
/// well, and leaves the events for the next `turn`.
///
/// A thread that stays away for longer than a heartbeat's timeout is taken for dead by ranks of other nodes.
#[derive(Clone, Debug)]
pub struct Control {
    shared: Arc<Shared>,
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.descriptor()
    }
}

impl Control {
    /// A channel over connections of `hub`, which already listens.
    pub(crate) fn start(hub: Hub, rank: u32, size: u32, heartbeat: Heartbeat) -> Result<Control> {
        let shared = Shared::new(State::new(hub, rank, size, heartbeat))?;
        Ok(Control {
            shared: Arc::new(shared),
        })
    }

    /// Takes note of ranks; connections can go only to ranks that were noted.
    pub(crate) fn learn(&self, entries: Vec<RankEntry>) -> Result<()> {
        self.shared.change(|state| {
            state.learn(entries);
            Ok(())
        })
    }

    /// The table stands: keeps neighbours connected from now on.
    pub(crate) fn settle(&self) -> Result<()> {
        self.shared.change(|state| {
            state.settled = true;
            state.choose_neighbours();
            Ok(())
        })
    }

    /// What happened on the way: addresses tried in vain, and how many messages this rank sent.
    pub(crate) fn notes(&self) -> (Vec<String>, u32) {
        self.shared
            .look(|state| (state.notes.clone(), state.messages))
    }

    /// The ranks that were not reached, and what the attempts met.
    pub(crate) fn unreached(&self) -> Vec<(u32, Vec<String>)> {
        self.shared.look(|state| {
            let unreached = state
                .peers
                .iter()
                .filter(|(_, peer)| peer.active.is_none() && !peer.tried.is_empty());
            unreached
                .map(|(&rank, peer)| (rank, peer.tried.clone()))
                .collect()
        })
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.shared.rank()
    }

    /// How many ranks the job has.
    pub fn size(&self) -> u32 {
        self.shared.look(|state| state.size)
    }

    /// How long the driving thread may sleep if [`Control::as_fd`] stays quiet.
    pub fn idle_time(&self, now: Instant) -> Duration {
        self.shared
            .look(|state| state.idle_until())
            .saturating_duration_since(now)
    }

    /// Moves what can be moved and returns the news. Never blocks.
    ///
    /// # Errors
    /// [`BootstrapError::ForkedProcess`] in a forked child; system errors that leave the channel unusable.
    pub fn turn(&self, now: Instant) -> Result<Vec<Event>> {
        self.shared.drive(now)
    }

    /// Tells all ranks that a communicator (0: all) is aborted. Does not block; calls of this rank that wait for that
    /// communicator fail, and it gets no event of its own.
    ///
    /// # Errors
    /// [`BootstrapError::ForkedProcess`], [`BootstrapError::TooLarge`].
    pub fn abort(&self, communicator: u64, code: i32, text: &str) -> Result<()> {
        check_flood(text.len())?;
        self.flood(News::Abort {
            communicator,
            code,
            text: text.to_owned(),
        })
    }

    /// Tells all ranks that calls differ; `bytes` are the engine's, at most 64 KiB. Does not block.
    ///
    /// # Errors
    /// [`BootstrapError::ForkedProcess`], [`BootstrapError::TooLarge`].
    pub fn mismatch(&self, communicator: u64, bytes: &[u8]) -> Result<()> {
        check_flood(bytes.len())?;
        self.flood(News::Mismatch {
            communicator,
            bytes: bytes.to_vec(),
        })
    }

    /// Tells all ranks something, at most 64 KiB. Does not block.
    ///
    /// # Errors
    /// [`BootstrapError::ForkedProcess`], [`BootstrapError::TooLarge`].
    pub fn broadcast(&self, tag: Tag, bytes: &[u8]) -> Result<()> {
        check_flood(bytes.len())?;
        self.flood(News::Broadcast {
            tag,
            bytes: bytes.to_vec(),
        })
    }

    /// Tells all ranks that a rank is dead, as this rank found by other means (a link that broke for good).
    ///
    /// # Errors
    /// [`BootstrapError::ForkedProcess`], [`BootstrapError::NoSuchRank`], [`BootstrapError::TooLarge`].
    pub fn declare_dead(&self, rank: u32, reason: &str) -> Result<()> {
        check_flood(reason.len())?;
        let reason = reason.to_owned();
        self.shared.change(|state| {
            state.check_rank(rank)?;
            if !state.gone.contains_key(&rank) {
                state.originate(News::Dead { rank, reason });
            }
            Ok(())
        })
    }

    /// The ranks known to be dead, ascending.
    pub fn dead(&self) -> Vec<u32> {
        self.shared.look(|state| {
            let dead = state
                .gone
                .iter()
                .filter(|(_, gone)| matches!(gone, Gone::Dead { .. }));
            dead.map(|(&rank, _)| rank).collect()
        })
    }

    /// Sends to one rank, which may be this one. Does not block: the bytes are queued, the connection is opened if
    /// there is none. Delivered once and in order unless one of the two dies. At most 64 MiB.
    ///
    /// # Errors
    /// [`BootstrapError::Died`], [`BootstrapError::Departed`], [`BootstrapError::QueueFull`],
    /// [`BootstrapError::TooLarge`], [`BootstrapError::NoSuchRank`], [`BootstrapError::ForkedProcess`].
    pub fn send(&self, rank: u32, tag: Tag, bytes: &[u8]) -> Result<()> {
        self.shared
            .change(|state| state.send(rank, Lane::User, tag, bytes))
    }

    /// Takes the next message of that rank and tag, if it has arrived.
    ///
    /// # Errors
    /// [`BootstrapError::ForkedProcess`], [`BootstrapError::NoSuchRank`]; if nothing is there and nothing can come,
    /// [`BootstrapError::Died`] or [`BootstrapError::Departed`].
    pub fn try_recv(&self, rank: u32, tag: Tag) -> Result<Option<Vec<u8>>> {
        self.shared
            .try_change(|state| state.take(rank, Lane::User, tag, "a receive"))
    }

    /// Waits for the next message of that rank and tag.
    ///
    /// # Errors
    /// As [`Control::try_recv`]; [`BootstrapError::Aborted`] once the tag's communicator is aborted;
    /// [`BootstrapError::Expelled`], [`BootstrapError::Deadline`], [`BootstrapError::Cancelled`].
    pub fn recv(&self, rank: u32, tag: Tag, wait: &Wait) -> Result<Vec<u8>> {
        self.shared.block(wait, "a receive", &[rank], |state| {
            let message = state.take(rank, Lane::User, tag, "a receive")?;
            state.check_communicator(tag.communicator).map(|()| message)
        })
    }

    /// Drops what has arrived, and what will, for a communicator that is gone.
    pub fn forget(&self, communicator: u64) {
        // In a forked child there is nothing to forget.
        let _ = self.shared.change(|state| {
            state.forget(communicator);
            Ok(())
        });
    }

    /// Tells all ranks that this one leaves, and waits until what it sent has arrived. Later calls fail. Dropping
    /// the last clone does the same, but waits only until the system has taken it, a tenth of a second at most.
    ///
    /// # Errors
    /// [`BootstrapError::Deadline`] if not all has arrived (the channel is closed all the same);
    /// [`BootstrapError::ForkedProcess`].
    pub fn leave(&self, wait: &Wait) -> Result<()> {
        self.shared.leave(wait)
    }

    /// Connections that were dropped because they were not the job's, since this rank began to listen.
    pub fn strays(&self) -> Strays {
        self.shared.look(|state| state.hub.strays.clone())
    }

    fn flood(&self, news: News) -> Result<()> {
        self.shared.change(|state| {
            state.originate(news);
            Ok(())
        })
    }
}

fn check_flood(bytes: usize) -> Result<()> {
    if bytes > MAX_FLOOD {
        return Err(BootstrapError::TooLarge {
            bytes,
            limit: MAX_FLOOD,
        });
    }
    Ok(())
}
