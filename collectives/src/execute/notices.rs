//! What other ranks have recorded, compared with what this rank calls.
//!
//! A rank that records a call and one that makes it meet in no flag, so who records tells the others by the
//! control channel.

use std::collections::BTreeMap;

use crate::error::Mismatch;
use crate::signature::Call;

/// What other ranks say that they have recorded, and this rank has not called yet.
#[derive(Default)]
pub(super) struct Notices {
    /// By number: whose it is, and the call.
    ahead: BTreeMap<u32, (u32, Call)>,
    wrong: Option<Mismatch>,
}

impl Notices {
    /// Rank `peer` has recorded a call that this rank, `rank`, has called as `ours`, if it has.
    pub(super) fn hear(&mut self, rank: u32, peer: u32, theirs: Call, ours: Option<Call>) {
        match ours {
            Some(ours) => self.compare(rank, ours, peer, theirs),
            None => {
                self.ahead.entry(theirs.sequence).or_insert((peer, theirs));
            }
        }
    }

    /// This rank has made a call.
    #[inline]
    pub(super) fn called(&mut self, rank: u32, words: [u64; 3]) {
        if !self.ahead.is_empty() {
            self.find(rank, words);
        }
    }

    #[cold]
    fn find(&mut self, rank: u32, words: [u64; 3]) {
        let heard = self.ahead.remove(&Call::sequence_of(words));
        if let (Some((peer, theirs)), Some(ours)) = (heard, Call::from_words(words)) {
            self.compare(rank, ours, peer, theirs);
        }
    }

    fn compare(&mut self, rank: u32, ours: Call, peer: u32, theirs: Call) {
        if ours != theirs {
            self.wrong.get_or_insert(Mismatch {
                rank,
                ours,
                peer,
                theirs,
            });
        }
    }

    /// Two ranks that did not call the same.
    pub(super) fn take(&mut self) -> Option<Mismatch> {
        self.wrong.take()
    }

    /// Whether something is to be compared.
    pub(super) fn is_empty(&self) -> bool {
        self.ahead.is_empty() && self.wrong.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::CallKind;

    fn call(sequence: u32, recorded: bool) -> Call {
        Call {
            kind: CallKind::Barrier,
            sequence,
            count: 0,
            dtype: None,
            op: None,
            root: None,
            plan: 0,
            recorded,
        }
    }

    #[test]
    fn who_records_alone_is_found_whoever_came_first() {
        let mut notices = Notices::default();
        notices.hear(0, 1, call(3, true), Some(call(3, true)));
        assert!(notices.is_empty());
        notices.hear(0, 1, call(4, true), Some(call(4, false)));
        let wrong = notices.take().expect("one recorded, one did not");
        assert_eq!((wrong.peer, wrong.theirs.sequence), (1, 4));
        notices.hear(0, 2, call(5, true), None);
        notices.called(0, call(5, true).words());
        assert!(notices.is_empty(), "the same");
        notices.hear(0, 2, call(6, true), None);
        notices.called(0, call(6, false).words());
        assert_eq!(notices.take().expect("another").peer, 2);
    }
}
