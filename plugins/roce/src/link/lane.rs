//! A lane: an ordered stream of writes and messages to the peer, and one back.
//!
//! A lane outlives its queue pair. What the peer has not acknowledged stays here, and goes out again
//! over the next one; what it has received is counted, so that nothing counts twice.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::bring_up::{Attempt, Connecting};
use super::recovery::Trouble;
use super::unit::{Action, Home, Unit};
use super::wire::{Arrival, Broken, Wire};
use crate::memory::{Block, Ring};

/// Send slots that puts leave free, for credits and the last word.
const RESERVED: usize = 4;

/// One end of a lane.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) index: usize,
    /// The queue pair, while one stands.
    pub(crate) wire: Option<Wire>,
    /// One that was stopped: what had come before may still be taken off it.
    pub(crate) old: Option<Old>,
    /// The next one, on its way.
    pub(crate) attempt: Option<Attempt>,
    /// And while it is being connected, there.
    pub(crate) connecting: Option<Connecting>,
    /// The highest generation that was tried.
    pub(crate) generation: u32,
    pub(crate) trouble: Option<Trouble>,
    /// After the wires in the order of dropping: they use it.
    pub(crate) block: Block,
    depth: usize,
    /// Messages that the peer takes ahead.
    window: u32,
    /// Not acknowledged, oldest first; the first `posted` are under way.
    units: VecDeque<Unit>,
    posted: usize,
    /// Units that were acknowledged.
    acknowledged: u64,
    /// How often the peer's device refused since the last unit that it acknowledged, and which that was.
    refusals: (u32, u64),
    /// Messages so far.
    messages: u64,
    /// Messages that the peer has taken, as it last said.
    taken: u32,
    pub(crate) ring: Ring,
    pub(crate) cursor: Cursor,
    /// Messages of the peer's so far.
    pub(crate) received: u64,
}

/// How far a lane has come in the puts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    /// The command, counted from the beginning.
    pub(crate) command: u64,
    /// Bytes of its share that became units.
    pub(crate) bytes: u64,
}

impl Cursor {
    /// Leaves out the commands before this one.
    pub(crate) fn skip_to(&mut self, command: u64) {
        if self.command < command {
            *self = Self { command, bytes: 0 };
        }
    }
}

/// A stopped queue pair: what its device had acknowledged to the peer must still be taken off it, or
/// it would be lost.
#[derive(Debug)]
pub(crate) struct Old {
    wire: Wire,
    /// When it was stopped, or something last came of it.
    since: Instant,
    empty: bool,
}

/// A stopped queue pair that brings nothing when it is looked at this long after the last thing came
/// brings nothing more. Some devices do not hand back the receives that were posted.
const QUIET: Duration = Duration::from_millis(10);

impl Old {
    pub(crate) fn new(wire: Wire) -> Self {
        Self {
            wire,
            since: Instant::now(),
            empty: false,
        }
    }

    /// Takes what had come.
    pub(crate) fn collect(&mut self, show: impl FnMut(Arrival)) {
        // It is stopped: that its work fails is no news.
        let any = self.wire.collect(show).unwrap_or(true);
        let now = Instant::now();
        if any {
            self.since = now;
        }
        self.empty = self.wire.receives() == 0 || (!any && now - self.since >= QUIET);
    }

    /// Whether nothing more can come.
    pub(crate) const fn is_empty(&self) -> bool {
        self.empty
    }
}

/// A command whose part on this lane is acknowledged.
pub(crate) type Ended = u64;

impl Lane {
    pub(crate) fn new(index: usize, block: Block, depth: u32, window: u32, staging: u64) -> Self {
        Self {
            index,
            wire: None,
            old: None,
            attempt: None,
            connecting: None,
            generation: 0,
            trouble: None,
            block,
            depth: depth as usize,
            window,
            units: VecDeque::new(),
            posted: 0,
            acknowledged: 0,
            refusals: (0, 0),
            messages: 0,
            taken: 0,
            ring: Ring::new(staging),
            cursor: Cursor::default(),
            received: 0,
        }
    }

    /// Whether what the peer's device refused may be asked for again: a few times, as long as nothing else
    /// is acknowledged.
    pub(crate) fn may_ask_again(&mut self) -> bool {
        const AGAIN: u32 = 3;
        let (times, at) = self.refusals;
        let before = if at == self.acknowledged { times } else { 0 };
        self.refusals = (before + 1, self.acknowledged);
        before < AGAIN
    }

    /// Whether all that was ever sent is acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.units.is_empty()
    }

    /// Whether a put may add a unit.
    pub(crate) fn has_room(&self) -> bool {
        self.units.len() + RESERVED < self.depth
    }

    /// Whether a put may add a message.
    pub(crate) fn has_credit(&self) -> bool {
        // Both wrap; their difference never comes near it.
        (self.messages as u32).wrapping_sub(self.taken) < self.window
    }

    /// Whether a message outside of puts may be added: there is always a receive for it.
    pub(crate) fn has_slot(&self) -> bool {
        self.units.len() < self.depth
    }

    /// Takes note of what the peer says that it has taken.
    pub(crate) fn note_taken(&mut self, taken: u32) {
        if (taken.wrapping_sub(self.taken)).cast_signed() > 0 {
            self.taken = taken;
        }
    }

    /// The slot for the next message; fill it, then [`push_message`](Self::push_message).
    pub(crate) fn next_slot(&self) -> u64 {
        self.block.send_slot(self.messages)
    }

    /// Adds a message of bytes that are not in its slot yet.
    pub(crate) fn send(&mut self, bytes: &[u8], ends: Option<u64>) {
        self.block.write(self.messages, bytes);
        self.push_message(Action::Send, bytes.len() as u32, ends);
    }

    /// Adds a message whose bytes are in [`next_slot`](Self::next_slot).
    pub(crate) fn push_message(&mut self, action: Action, bytes: u32, ends: Option<u64>) {
        let address = self.next_slot();
        let unit = Unit {
            action,
            address,
            bytes,
            home: Home::Block,
            message: Some(self.messages),
            ends,
            frees: None,
        };
        self.push(unit);
    }

    /// Adds a unit; one that is a message has the next number.
    pub(crate) fn push(&mut self, unit: Unit) {
        if unit.message.is_some() {
            self.messages += 1;
        }
        self.units.push_back(unit);
    }

    /// The number of the next message.
    pub(crate) const fn next_message(&self) -> u64 {
        self.messages
    }

    /// Whether all units were posted that can be.
    pub(crate) fn is_flushed(&self) -> bool {
        self.posted == self.units.len() || self.wire.is_none()
    }

    /// Whether something is under way.
    pub(crate) const fn has_posted(&self) -> bool {
        self.posted > 0
    }

    /// Posts what waits; true if there was something and a wire to post it on.
    pub(crate) fn flush(&mut self) -> Result<bool, Broken> {
        let Some(wire) = &mut self.wire else {
            return Ok(false);
        };
        if self.posted == self.units.len() {
            return Ok(false);
        }
        let first = self.acknowledged + self.posted as u64 + 1;
        wire.post(self.units.range(self.posted..), first, &self.block)?;
        self.posted = self.units.len();
        Ok(true)
    }

    /// Takes note of what came of a wire: commands that ended go to `ended`.
    pub(crate) fn note(&mut self, arrival: Arrival, ended: &mut Vec<Ended>) {
        if let Arrival::Acknowledged(upto) = arrival {
            while self.acknowledged < upto && self.posted > 0 {
                self.posted -= 1;
                self.retire(ended);
            }
        }
    }

    fn retire(&mut self, ended: &mut Vec<Ended>) {
        let Some(unit) = self.units.pop_front() else {
            return;
        };
        self.acknowledged += 1;
        if let Some(upto) = unit.frees {
            self.ring.give(upto);
        }
        ended.extend(unit.ends);
    }

    /// A new wire stands, and the peer has this many of our messages: what is among them, or was
    /// before one of them, has arrived. All else goes out again.
    ///
    /// # Errors
    /// So many messages are lost: the peer's device has acknowledged them, and the peer does not have
    /// them.
    pub(crate) fn resume(&mut self, received: u64, ended: &mut Vec<Ended>) -> Result<(), u64> {
        let units = self.units.iter();
        let left = units.filter(|unit| unit.message.is_some()).count() as u64;
        let lost = (self.messages - left).saturating_sub(received);
        if lost > 0 {
            return Err(lost);
        }
        let arrived = self
            .units
            .iter()
            .rposition(|unit| unit.message.is_some_and(|number| number < received))
            .map_or(0, |last| last + 1);
        for _ in 0..arrived {
            self.retire(ended);
        }
        self.posted = 0;
        self.note_taken(received as u32);
        Ok(())
    }

    /// Units that are not acknowledged.
    pub(crate) fn outstanding(&self) -> usize {
        self.units.len()
    }
}
