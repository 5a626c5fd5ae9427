//! The words of peers, compared by the CPU where the device's streams compare none.
//!
//! A stream of such a device passes a wait whatever the peer called
//! (`UNISONO_STREAM_CHECKS_WORDS` absent). The words still lie in the flag's line, which the CPU sees:
//! so they are compared once the stream is past the wait, and before the call is told complete.
//! A peer may have gone on by then, and have raised the same flag for a later call: what lies there
//! says nothing of this one any more.

use std::collections::VecDeque;

use super::lower::Waiting;
use crate::arena;
use crate::error::{Error, Mismatch, Result};
use crate::signature::Call;

/// Waits whose words nobody has compared, in the stream's order.
#[derive(Default)]
pub(super) struct Unchecked(VecDeque<Expected>);

struct Expected {
    wait: Waiting,
    /// The flag's line, as the CPU sees it.
    flag: u64,
    words: [u64; 3],
}

impl Unchecked {
    /// Notes a wait for these words.
    pub(super) fn expect(&mut self, wait: Waiting, flag: u64, words: [u64; 3]) {
        self.0.push_back(Expected { wait, flag, words });
    }

    /// Compares what came with the first `finished` commands of rank `rank`'s stream.
    pub(super) fn compare(&mut self, rank: u32, finished: u64) -> Result<()> {
        while let Some(expected) = self.0.pop_front_if(|next| next.wait.command < finished) {
            let theirs = arena::words(expected.flag);
            if theirs == expected.words || is_later(theirs, expected.words) {
                continue;
            }
            let calls = [expected.words, theirs].map(Call::from_words);
            if let [Some(ours), Some(theirs)] = calls {
                return Err(Error::Mismatch(Mismatch {
                    rank,
                    ours,
                    peer: expected.wait.peer,
                    theirs,
                }));
            }
        }
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Whether a flag was raised again since, for another call. Messages and collectives are numbered
/// apart: of two of different kinds nothing can be said.
fn is_later(theirs: [u64; 3], ours: [u64; 3]) -> bool {
    if Call::is_message(theirs) != Call::is_message(ours) {
        return true;
    }
    let ahead = Call::sequence_of(theirs).wrapping_sub(Call::sequence_of(ours));
    (1..1 << 31).contains(&ahead)
}
