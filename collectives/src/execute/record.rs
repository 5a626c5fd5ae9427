//! What a lane does for calls that the program records, and for those of other ranks.

use std::time::{Duration, Instant};

use unisono_hal::Recording;

use super::op::{Op, Planned};
use super::recorded::{Overdue, Recorded};
use super::state::State;
use crate::error::{Error, Mismatch, Result};
use crate::signature::Call;

impl State {
    /// Makes room for a call that is recorded on a stream of the program's. An error leaves all as it was.
    pub(crate) fn prepare_record(
        &mut self,
        native: u64,
        recording: Recording,
        planned: &Planned,
    ) -> Result<()> {
        if self.recorded.is_none() {
            let common = &self.common;
            let made = Recorded::new(common.own, &common.device, &common.peers);
            self.recorded = made.map(Box::new);
        }
        match &mut self.recorded {
            Some(recorded) => recorded.prepare(native, recording, planned),
            None => Err(Error::Unsupported {
                call: "on",
                why: "a peer of this rank is reached by what cannot be recorded".to_owned(),
            }),
        }
    }

    /// Records a call for which room was made.
    pub(crate) fn record(&mut self, native: u64, recording: Recording, op: Op) -> Result<()> {
        self.calls.remember(self.common.own.rank, op.words);
        match &mut self.recorded {
            Some(recorded) => recorded.record(native, recording, op),
            None => Err(Error::invalid("on", "no room was made for a recording")),
        }
    }

    /// Rank `peer` says that it has recorded a call.
    pub(crate) fn hear(&mut self, peer: u32, theirs: Call) {
        let rank = self.common.own.rank;
        let ours = self.called(theirs.sequence);
        let is_over = theirs
            .sequence
            .wrapping_sub(self.calls.collectives())
            .cast_signed()
            < 0;
        // One that is forgotten by now cannot be compared.
        if ours.is_some() || !is_over {
            self.calls.notices.hear(rank, peer, theirs, ours);
        }
    }

    /// Whether this rank has recorded calls, or others have that are to be compared: then
    /// [`look_at_replays`](Self::look_at_replays) is due every so often.
    pub(crate) fn has_recorded(&self) -> bool {
        self.recorded.is_some() || !self.calls.notices.is_empty()
    }

    /// Two ranks of which one did not record what the other did.
    pub(crate) fn take_notice(&mut self) -> Option<Mismatch> {
        self.calls.notices.take()
    }

    /// Looks at what replays wait for, and at what they found: something that has waited for longer than
    /// `limit`, or an error.
    pub(crate) fn look_at_replays(
        &mut self,
        now: Instant,
        limit: Duration,
    ) -> Result<Option<Overdue>> {
        match &mut self.recorded {
            Some(recorded) => recorded.look(now, limit),
            None => Ok(None),
        }
    }

    /// After a failure: ends what replays wait for. Whether one did; `None` if nothing was recorded.
    pub(crate) fn release_replays(&self) -> Option<bool> {
        self.recorded.as_ref().map(|recorded| recorded.release())
    }

    /// Gives up what recorded calls use, as their graphs run no more.
    pub(crate) fn forget_recorded(&mut self) {
        if let Some(recorded) = &mut self.recorded {
            recorded.forget();
        }
    }
}
