//! Memory of communicators that are gone, which peers still read.
//!
//! What a rank puts may lie in its own memory until the peer fetches it. A rank may send, and drop its communicator, and
//! do other things before the peer comes to receive: so the memory stays, and nobody waits for that. It is looked at
//! again whenever a communicator is made or goes.

use std::sync::{Mutex, PoisonError, TryLockError};

use super::holdings::Kept;
use crate::{arena, fork};

/// What one peer has not fetched yet.
pub(crate) struct Unread {
    /// The flag by which it gives puts back, one by one; in memory that is left.
    pub given_back: u64,
    /// How many it will.
    pub sent: u64,
}

impl Unread {
    /// Whether it has fetched all.
    pub(super) fn is_over(&self) -> bool {
        arena::read(self.given_back) == self.sent
    }
}

/// The memory of one communicator.
struct Left {
    unread: Vec<Unread>,
    #[expect(dead_code, reason = "held, and freed with this")]
    kept: Kept,
    /// The process whose it is: see [`fork::generation`].
    generation: u32,
}

impl Left {
    /// Whether it can be freed here. A forked child has a copy of the list and shares the memory: it is the parent's.
    fn is_over(&self) -> bool {
        fork::is(self.generation) && self.unread.iter().all(Unread::is_over)
    }
}

/// What was left, by all communicators of the process.
static LEFT: Mutex<Vec<Left>> = Mutex::new(Vec::new());

/// Keeps memory until peers have read it.
pub(super) fn leave(unread: Vec<Unread>, kept: Kept) {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.push(Left {
        unread,
        kept,
        generation: fork::generation(),
    });
}

/// Frees what was read meanwhile; the next time, if another thread has the list. Never waits: a child that was forked
/// while its parent had the list finds it locked for ever.
pub(crate) fn sweep() {
    let mut left = match LEFT.try_lock() {
        Ok(left) => left,
        Err(TryLockError::Poisoned(left)) => left.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    let over: Vec<Left> = left.extract_if(.., |left| left.is_over()).collect();
    drop(left);
    // What plugins do as memory is freed is not done under the lock.
    drop(over);
}
