//! Calls that a program records into a graph of its own, and replays with no work of the host's.
//!
//! Such a call is lowered at once and whole onto the stream that records. It has channels of its own
//! ([`Peer::recorded`]), which calls that run by themselves never use: the host does not know how often a
//! graph ran, so where a channel stands is known in memory alone, which the stream itself advances. All
//! recorded calls of a communicator share them, as their replays come in one order on all ranks. Within a graph
//! each stands behind the one before: in one stream by itself, between two by an event, which is no node.
//!
//! What the host can do for a replay it does by looking at that memory: a counter ahead of its flag is a
//! wait that has begun.

use std::any::Any;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use unisono_hal::{
    Batch, Device, Event, Memory, MemoryKind, MemoryRequest, Queue, Recording, Status, Stream,
};

use super::lower::{Cursor, Lowered, Lowering, Waiting};
use super::op::{Op, Planned};
use super::peer::{Own, Peer};
use crate::arena;
use crate::error::{Error, Mismatch, Result};
use crate::signature::Call;

/// How long the end of a communicator lets replays come to theirs.
const LET_GO: Duration = Duration::from_secs(1);

/// The recorded calls of one communicator on this rank.
pub(super) struct Recorded {
    own: Own,
    device: Device,
    /// What each call's channels are made from.
    peers: Vec<Peer>,
    recorders: Vec<Recorder>,
    /// The last is the largest; graphs use those before it.
    scratch: Vec<Memory>,
    /// Buffers that graphs use.
    keep: Vec<Box<dyn Any + Send>>,
    /// The last collective.
    last: Option<Call>,
    /// Calls so far.
    calls: u64,
    waits: Option<Wait>,
}

/// The end of a stream's last call, in the recording of that.
struct End {
    recording: Recording,
    /// Which of all calls it is.
    call: u64,
}

/// This library's own hold on a stream of the program's: where graphs say that a peer called something
/// else is in memory that it keeps.
struct Recorder {
    native: u64,
    stream: Stream,
    /// If the device tells its recording from others.
    end: Option<End>,
    /// Stands for that end; after the stream, whose commands name it.
    event: Option<Event>,
    /// Commands recorded so far.
    emitted: u64,
    /// The commands with which each call began, and the call.
    calls: Vec<(u64, Call)>,
    /// The commands that wait for peers.
    waits: Vec<(u64, u32)>,
}

/// A wait of a replay, as it was seen first.
#[derive(Clone, Copy)]
struct Wait {
    peer: u32,
    flag: u64,
    value: u64,
    since: Instant,
}

impl Recorded {
    /// `None` if a peer is reached by what replays nothing.
    pub(super) fn new(own: Own, device: &Device, peers: &[Peer]) -> Option<Self> {
        let recorded: Option<Vec<Peer>> = peers.iter().map(|peer| peer.recorded(&own)).collect();
        let this = Self {
            own,
            device: device.clone(),
            peers: recorded?,
            recorders: Vec::new(),
            scratch: Vec::new(),
            keep: Vec::new(),
            last: None,
            calls: 0,
            waits: None,
        };
        // The first put finds each slot free.
        for peer in this.others() {
            for slot in 0..own.arena.depth {
                let (_, counter) = peer.slot_credit(&own, slot);
                arena::set(counter, u64::MAX);
            }
        }
        Some(this)
    }

    fn others(&self) -> impl Iterator<Item = &Peer> {
        let own = self.own.rank;
        self.peers.iter().filter(move |peer| peer.rank != own)
    }

    /// Makes room for a call on a stream of the program's; an error leaves all as it was.
    #[allow(unsafe_code, reason = "wraps a stream by its handle")]
    pub(super) fn prepare(
        &mut self,
        native: u64,
        recording: Recording,
        planned: &Planned,
    ) -> Result<()> {
        if !self.recorders.iter().any(|one| one.native == native) {
            // SAFETY: the stream records now, hence lives. What is recorded names this hold's memory
            // alone, which is kept; the stream itself is not used once it has stopped recording.
            let stream = unsafe { self.device.wrap_stream(native) }?;
            self.recorders.push(Recorder {
                native,
                stream,
                end: None,
                event: None,
                emitted: 0,
                calls: Vec::new(),
                waits: Vec::new(),
            });
        }
        let mut recorders = self.recorders.iter_mut();
        if let Some(recorder) = recorders.find(|one| one.native == native)
            && recording.is_known()
            && recorder.event.is_none()
        {
            recorder.event = Some(self.device.event()?);
        }
        let needed = planned.scratch_bytes();
        if needed > self.scratch.last().map_or(0, Memory::len) {
            let bytes = needed.checked_next_power_of_two().unwrap_or(needed);
            let request = MemoryRequest::new(MemoryKind::Data, bytes);
            self.scratch.push(self.device.alloc(&request)?);
        }
        Ok(())
    }

    /// Lowers a call, for which room was made, onto the stream that records.
    pub(super) fn record(&mut self, native: u64, recording: Recording, mut op: Op) -> Result<()> {
        let before = self.before(native, recording);
        let found = self.recorders.iter_mut().find(|one| one.native == native);
        let Some(recorder) = found else {
            return Err(Error::invalid("on", "no room was made for a recording"));
        };
        let scratch = self.scratch.last().map_or(0, Memory::base);
        let mut peers: Option<Vec<Peer>> = self.peers.iter().map(Peer::afresh).collect();
        let peers = peers.as_deref_mut().unwrap_or_default();
        recorder.calls.push((recorder.emitted, op.call));
        if !Call::is_message(op.words) {
            self.last = Some(op.call);
        }
        self.keep.extend(op.keep.take());
        if let Some(before) = before {
            recorder.put(&op, |batch| batch.wait_event(&before))?;
        }
        recorder.lower(self.own, peers, scratch, &op)?;
        recorder.end = None;
        if let Some(event) = recorder.event.clone().filter(|_| recording.is_known()) {
            recorder.put(&op, |batch| batch.record(&event))?;
            self.calls += 1;
            recorder.end = Some(End {
                recording,
                call: self.calls,
            });
        }
        Ok(())
    }

    /// The end of the last call in this recording, if that is on another stream. Others may be open meanwhile.
    fn before(&self, native: u64, recording: Recording) -> Option<Event> {
        let ends = self
            .recorders
            .iter()
            .filter_map(|one| Some((one.end.as_ref()?, one)));
        let last = ends
            .filter(|(end, _)| end.recording.is_same(recording))
            .max_by_key(|(end, _)| end.call);
        let (_, recorder) = last.filter(|(_, one)| one.native != native)?;
        recorder.event.clone()
    }

    /// Looks at what replays wait for, and at what they found. An error ends the communicator.
    pub(super) fn look(&mut self, now: Instant, limit: Duration) -> Result<Option<Overdue>> {
        let rank = self.own.rank;
        for recorder in &mut self.recorders {
            recorder.look(rank)?;
        }
        let found = self.waiting();
        let same = |old: &Wait| {
            found.is_some_and(|(_, flag, value)| (flag, value) == (old.flag, old.value))
        };
        let since = self.waits.filter(same).map_or(now, |old| old.since);
        self.waits = found.map(|(peer, flag, value)| Wait {
            peer,
            flag,
            value,
            since,
        });
        let overdue = self
            .waits
            .filter(|_| now.saturating_duration_since(since) >= limit);
        Ok(overdue.map(|_| Overdue {
            about: self.last.map_or(0, |call| call.sequence),
        }))
    }

    /// What this rank's replays wait for, by the last look: the last call that was recorded, and a peer.
    pub(super) fn waits_for(&self) -> Option<(Call, u32)> {
        Some((self.last?, self.waits?.peer))
    }

    /// After a failure: ends every wait of replays. True if one was under way. What peers still do may raise
    /// a flag over its release, so this is repeated.
    pub(super) fn release(&self) -> bool {
        let waits = self.waiting().is_some();
        for (_, flag, _) in self.waitable() {
            arena::poison(flag);
        }
        waits
    }

    /// Gives up what graphs use, none of which runs any more.
    pub(super) fn forget(&mut self) {
        self.recorders.clear();
        self.scratch.clear();
        self.keep.clear();
    }

    /// A wait that has begun and not ended.
    fn waiting(&self) -> Option<(u32, u64, u64)> {
        self.waitable().find_map(|(peer, flag, counter)| {
            let value = arena::read(counter);
            let behind = arena::read(flag).wrapping_sub(value).cast_signed() < 0;
            // That of a credit which nobody ever waited for stands behind its flag.
            behind.then_some((peer, flag, value))
        })
    }

    /// The flags that replays wait for, as the CPU sees them: the peer, the flag, the counter of the wait.
    fn waitable(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        let own = self.own;
        self.others().flat_map(move |peer| {
            (0..own.arena.depth).flat_map(move |slot| {
                let data = peer.slot_data(&own, slot);
                let credit = peer.slot_credit(&own, slot);
                [data, credit].map(|(flag, counter)| (peer.rank, flag, counter))
            })
        })
    }
}

/// A replay has waited for too long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overdue {
    /// The number of the last collective that was recorded.
    pub about: u32,
}

impl Recorder {
    fn lower(&mut self, own: Own, peers: &mut [Peer], scratch: u64, op: &Op) -> Result<()> {
        let mut cursor = Cursor::default();
        let (mut batch, mut waiting) = (super::new_batch(), VecDeque::new());
        let mut done = false;
        while !done {
            batch.clear();
            let mut lowering = Lowering {
                own,
                peers,
                posted: false,
                stream: &mut batch,
                emitted: self.emitted,
                waiting: &mut waiting,
                number: 1,
                scratch,
                runs: &mut Vec::new(),
                step: 0,
                late: None,
                deferred: None,
                unchecked: None,
                lands: None,
            };
            done = lowering.run(op, &mut cursor) == Lowered::All;
            self.submit(&mut batch, op)?;
        }
        let waits = waiting
            .into_iter()
            .map(|Waiting { command, peer, .. }| (command, peer));
        self.waits.extend(waits);
        Ok(())
    }

    /// Records a command around a call.
    fn put(&mut self, op: &Op, command: impl FnOnce(&mut Batch)) -> Result<()> {
        let mut batch = super::new_batch();
        command(&mut batch);
        self.submit(&mut batch, op)
    }

    fn submit(&mut self, batch: &mut Batch, op: &Op) -> Result<()> {
        self.emitted += batch.len() as u64;
        while !batch.is_empty() {
            if self.stream.submit(batch)? == 0 {
                return Err(Error::Unsupported {
                    call: op.call.kind.name(),
                    why: "the stream that records takes no more".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Whether a replay found that a peer called something else.
    fn look(&mut self, rank: u32) -> Result<()> {
        let Err(error) = self.stream.poll(0) else {
            return Ok(());
        };
        let completed = self.stream.state().map_or(0, |state| state.completed);
        let wait = self.waits.iter().find(|(command, _)| *command >= completed);
        let begun = self
            .calls
            .iter()
            .rev()
            .find(|(first, _)| *first <= completed);
        if error.status == Status::Mismatch
            && let (Some((_, peer)), Some((_, ours)), Some(theirs)) =
                (wait, begun, Call::from_words(error.words))
        {
            return Err(Error::Mismatch(Mismatch {
                rank,
                ours: *ours,
                peer: *peer,
                theirs,
            }));
        }
        Err(error.into())
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // Nobody launches a graph any more. One that still waits must not hold up what frees its memory.
        let end = Instant::now() + LET_GO;
        while self.release() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
