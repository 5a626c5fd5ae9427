//! What a rank has called: how often, and the last collectives, to tell others what it called when.

use unisono_plan::Op as PlanOp;

use super::notices::Notices;
use super::peer::Peer;
use crate::signature::Call;

/// Collectives that a rank remembers.
const HISTORY: usize = 64;

/// The calls of a rank.
pub(super) struct Calls {
    /// Collectives called so far.
    collectives: u32,
    /// The words of the last collectives, by number modulo the length; zeros are none.
    history: [[u64; 3]; HISTORY],
    /// What others recorded.
    pub notices: Notices,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            collectives: 0,
            history: [[0; 3]; HISTORY],
            notices: Notices::default(),
        }
    }
}

impl Calls {
    /// Collectives called so far: the number that the next one has.
    #[inline]
    pub(super) fn collectives(&self) -> u32 {
        self.collectives
    }

    /// The number of the next call, which this rank is about to make.
    #[inline]
    pub(super) fn next(&mut self, op: PlanOp, peers: &mut [Peer]) -> u32 {
        let count = match op {
            PlanOp::Send { to } => &mut peers[to as usize].messages_sent,
            PlanOp::Recv { from } => &mut peers[from as usize].messages_received,
            _ => &mut self.collectives,
        };
        let number = *count;
        *count = number.wrapping_add(1);
        number
    }

    /// Rank `rank`, this one, has made the call that has these words.
    #[inline]
    pub(super) fn remember(&mut self, rank: u32, words: [u64; 3]) {
        if !Call::is_message(words) {
            self.notices.called(rank, words);
            self.history[Call::sequence_of(words) as usize % HISTORY] = words;
        }
    }

    /// The collective of this number, if this rank has called it and remembers.
    pub(super) fn find(&self, sequence: u32) -> Option<Call> {
        let words = self.history[sequence as usize % HISTORY];
        Call::from_words(words).filter(|call| call.sequence == sequence)
    }
}
