//! Calls on a stream that records a graph of the program's: they become a part of it.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use unisono_abi::stream_can;
use unisono_bootstrap::Tag;
use unisono_hal::{Device, Recording};

use super::Communicator;
use super::home::Kind;
use super::shared::Shared;
use super::start::Checked;
use super::wire;
use crate::error::{Error, Result};
use crate::execute::State;
use crate::progress::progress;
use crate::signature::Call;

/// The number of this message among a communicator's.
const RECORDED: u64 = 2;

/// Whether a rank's calls can be recorded, as it tells the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Records {
    /// They can.
    Yes,
    /// Its device's streams record nothing that can be replayed.
    NoDevice,
    /// It reaches a peer through the host's memory.
    NotStaged,
    /// It reaches a peer by a link.
    NotPosted,
}

impl Records {
    const ALL: [Self; 4] = [Self::Yes, Self::NoDevice, Self::NotStaged, Self::NotPosted];

    /// Of a device, whose rank reaches its peers so.
    pub(super) fn of(device: &Device, kinds: &[Kind]) -> Self {
        if !device.info().streams_can(stream_can::CAPTURE) {
            return Self::NoDevice;
        }
        let hindrance = kinds.iter().find_map(|kind| match kind {
            Kind::Own | Kind::Direct => None,
            Kind::Staged => Some(Self::NotStaged),
            Kind::Posted(_) => Some(Self::NotPosted),
        });
        hindrance.unwrap_or(Self::Yes)
    }

    /// Its number.
    pub(super) fn code(self) -> u8 {
        self as u8
    }

    /// That of a number.
    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// Why nobody's calls are recorded, given what all ranks told: the first that cannot.
    pub(super) fn refusal(all: &[Self]) -> Option<String> {
        let (rank, why) = (0..).zip(all).find(|(_, records)| **records != Self::Yes)?;
        let why = match why {
            Self::NoDevice => "the streams of its device record nothing that can be replayed",
            Self::NotStaged => {
                "it reaches a peer through the host's memory, and the host has a part in that"
            }
            _ => "it reaches a peer by a link that the host drives",
        };
        Some(format!(
            "the stream records a graph, and a replay has no work of the host's, which rank {rank} \
             needs: {why}. Call it before or after the recording, or record the calls of a \
             communicator (see `split`) of ranks whose devices reach each other's memory"
        ))
    }
}

impl Communicator {
    /// Gives up the buffers and the scratch that calls keep which were recorded into graphs: see
    /// [`Communicator::on`].
    ///
    /// # Safety
    /// No graph that such a call of this communicator was recorded into runs now or is run again.
    #[allow(unsafe_code, reason = "graphs hold addresses")]
    pub unsafe fn forget_recorded(&self) {
        if crate::fork::is(self.shared.generation) {
            self.shared.lane.lock().forget_recorded();
        }
    }
}

impl Shared {
    /// Records a call on a stream, which `on` is the state of.
    pub(super) fn record_on(
        self: &Arc<Self>,
        checked: Checked<'_>,
        keep: Option<Box<dyn Any + Send>>,
        on: &mut State,
        recording: Recording,
    ) -> Result<u64> {
        let unsupported = |why: &str| Error::Unsupported {
            call: checked.name(),
            why: why.to_owned(),
        };
        if let Some(why) = &self.unrecorded {
            return Err(unsupported(why));
        }
        if !on.is_handed_over() {
            return Err(unsupported(
                "the stream records a graph, and not all that it was given before is on its way; wait \
                 for it before the recording begins",
            ));
        }
        let native = on.native();
        let mut state = self.lane.lock();
        if let Some(error) = self.lane.failure() {
            return Err(error.clone());
        }
        state.prepare_record(native, recording, checked.planned())?;
        let mut op = self.bind_checked(&mut state, checked, keep);
        op.call.recorded = true;
        op.words = op.call.words();
        let call = op.call;
        let recorded = state.record(native, recording, op);
        drop(state);
        self.handed_over(recorded)?;
        self.tell_recorded(call);
        // Nothing of it is under way.
        Ok(self.lane.completed())
    }

    /// The tag by which ranks tell each other what they recorded.
    pub(super) fn recorded_tag(&self) -> Tag {
        Tag {
            communicator: self.id,
            sequence: RECORDED,
        }
    }

    /// Tells the others: no flag carries the call to one that did not record it.
    fn tell_recorded(&self, call: Call) {
        if !Call::is_message(call.words()) && self.size() > 1 {
            let bytes = wire::encode_recorded(self.rank, &call);
            if let Err(error) = self.world.control.broadcast(self.recorded_tag(), &bytes) {
                log::warn!("telling the others of a recorded call: {error}");
            }
        }
        // From now on what replays wait for is looked at.
        progress().kick();
    }

    /// Another rank has recorded a call.
    pub(super) fn hear_recorded(&self, bytes: &[u8]) {
        if let Some((peer, theirs)) = wire::decode_recorded(bytes)
            && peer != self.rank
        {
            self.lane.lock().hear(peer, theirs);
        }
    }

    /// Looks at what replays wait for. Whether to look again.
    pub(super) fn look_at_replays(&self, now: Instant) -> bool {
        let Some(mut state) = self.lane.try_lock() else {
            return true;
        };
        if !state.has_recorded() {
            return false;
        }
        let limit = self.world.options.timeouts.op;
        let found = match state.take_notice() {
            Some(mismatch) => Err(Error::Mismatch(mismatch)),
            None => state.look_at_replays(now, limit),
        };
        drop(state);
        match found {
            Ok(None) => {}
            Ok(Some(overdue)) => self.tell(limit, overdue.about, None),
            Err(error) => {
                self.end_with(error);
            }
        }
        true
    }

    /// After a failure: lets replays come to their end; when to do so again, sooner while one waits.
    pub(super) fn wind_down_replays(&self, soon: Duration, later: Duration) -> Option<Duration> {
        let Some(state) = self.lane.try_lock() else {
            return Some(soon);
        };
        let waits = state.release_replays()?;
        Some(if waits { soon } else { later })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rank_that_cannot_is_named() {
        assert_eq!(Records::refusal(&[Records::Yes, Records::Yes]), None);
        let told = [Records::Yes, Records::NotPosted, Records::NoDevice];
        let why = Records::refusal(&told).expect("two cannot");
        assert!(
            why.contains("rank 1 needs") && why.contains("link"),
            "{why}"
        );
        for records in Records::ALL {
            assert_eq!(Records::from_code(records.code()), Some(records));
        }
        assert_eq!(Records::from_code(4), None);
    }
}
