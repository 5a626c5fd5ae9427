//! A call that waits while its peer has raised another flag.
//!
//! What a peer shows to all raises other flags than what it puts to one rank. If it has called something else, this rank may
//! wait for the one while the other is raised, and no wait compares its words. So where a call waits for long, all flags are
//! looked at that its peers may have raised.

use std::time::{Duration, Instant};

use super::State;
use crate::error::{Error, Mismatch};
use crate::signature::{Call, CallKind};

/// How long a call waits before this is looked for, and how often it is then: it takes some microseconds a peer.
const PAUSE: Duration = Duration::from_millis(100);

impl State {
    /// What a peer has called in place of the call that waits since then, if it is time to look for that.
    pub(crate) fn called_elsewhere(&mut self, since: Instant, now: Instant) -> Option<Error> {
        let waited = |since: Instant| now.saturating_duration_since(since) >= PAUSE;
        if !waited(since) || !self.looked_elsewhere.is_none_or(waited) {
            return None;
        }
        self.looked_elsewhere = Some(now);
        let (op, own) = (self.main.current()?, &self.common.own);
        if !own.shows || op.call.kind == CallKind::SendRecv {
            return None;
        }
        self.common.peers.iter().find_map(|peer| {
            let ours = op.call_from(peer.rank);
            let differs = |theirs: &Call| {
                theirs.kind != CallKind::SendRecv
                    && theirs.sequence == ours.sequence
                    && *theirs != told_alike(ours, theirs)
            };
            let mut raised = peer.raised_words(own).filter_map(Call::from_words);
            raised.find(differs).map(|theirs| {
                Error::Mismatch(Mismatch {
                    rank: own.rank,
                    ours,
                    peer: peer.rank,
                    theirs,
                })
            })
        })
    }
}

/// This rank's call, but that of an all_to_all_v no counts are compared: what stands for it here may not know those of the
/// pair, and a wait for them looks where they are.
fn told_alike(ours: Call, theirs: &Call) -> Call {
    match [ours.kind, theirs.kind] {
        [CallKind::AllToAllV, CallKind::AllToAllV] => Call {
            count: theirs.count,
            ..ours
        },
        _ => ours,
    }
}
