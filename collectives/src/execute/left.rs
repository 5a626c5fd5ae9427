//! Memory of communicators that are gone, which peers still read.
//!
//! What a rank puts may lie in its own memory until the peer fetches it. A rank may send, and drop its communicator, and
//! do other things before the peer comes to receive: so the memory stays, and nobody waits for that. It is looked at
//! again whenever a communicator is made or goes.

use std::sync::{Mutex, PoisonError};

use super::holdings::Kept;
use crate::arena;

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

/// What was left, by all communicators of the process.
static LEFT: Mutex<Vec<(Vec<Unread>, Kept)>> = Mutex::new(Vec::new());

/// Keeps memory until peers have read it.
pub(super) fn leave(unread: Vec<Unread>, kept: Kept) {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.push((unread, kept));
}

/// Frees what was read meanwhile. Not in a forked child.
pub(crate) fn sweep() {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    let is_over = |(unread, _): &(Vec<Unread>, Kept)| unread.iter().all(Unread::is_over);
    let over: Vec<_> = left.extract_if(.., |left| is_over(left)).collect();
    drop(left);
    // What plugins do as memory is freed is not done under the lock.
    drop(over);
}
