//! Puts become writes and messages on a lane.
//!
//! Each lane walks through the puts on its own. On the first lane a put ends with what raises its
//! flag, on every other one with a mark that a stripe has landed. What fits goes out in one piece:
//!
//! | put | on the first lane |
//! |---|---|
//! | short, or nothing | one write with an immediate that names the flag, or one record with the bytes |
//! | longer, in one write | the same write with an immediate |
//! | else | writes, then a record |
//!
//! A record it must be where there are words, stripes on other lanes, or counts to catch up with.
#![allow(unsafe_code, reason = "reads the sources of puts by address")]

use std::sync::Arc;

use super::credit::Credits;
use super::lane::Lane;
use super::outbox::{Active, Outbox};
use super::put::{Put, Shares};
use super::unit::{Action, Home, Unit};
use super::window::Imported;
use crate::memory;
use crate::wire::{Eager, Immediate, Record, RecordBody, Totals};

/// Bytes that are staged at once, at most.
const STAGED_MAX: u64 = 64 << 10;
/// Less is not worth a write, where more is to come.
const STAGED_MIN: u64 = 4 << 10;

/// What the first lane has said so far: what is not in it must be said by a record.
#[derive(Debug, Default)]
pub(crate) struct Said {
    totals: Totals,
    stripes: Vec<u32>,
    /// The stripes of the puts so far.
    due: Vec<u32>,
}

/// What fills need of the link.
pub(crate) struct Filling<'a> {
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) said: &'a mut Said,
    pub(crate) credits: &'a mut Credits,
    /// Bytes of one write, at most.
    pub(crate) message_max: u64,
    /// Whether a lane could not go on.
    pub(crate) is_stuck: bool,
}

/// What became of one step.
enum Step {
    /// So many bytes became a unit, and there is more.
    Went(u64),
    /// The lane is through with this command.
    Through(u64),
    /// It needs room, credits or staging that are not there now.
    Stuck,
}

impl Filling<'_> {
    /// Fills a lane with about `budget` bytes; how many it took, and whether more would go.
    pub(crate) fn fill(&mut self, lane: &mut Lane, budget: u64) -> (u64, bool) {
        let mut bytes = 0;
        // What is complete had nothing for this lane, or nothing more.
        lane.cursor.skip_to(self.outbox.completed());
        while bytes < budget {
            let command = lane.cursor.command;
            let Some(active) = self.outbox.get(command) else {
                return (bytes, false);
            };
            if !lane.has_room() {
                self.is_stuck = true;
                return (bytes, false);
            }
            let step = match &active.put {
                None => Step::Through(0),
                Some(put) => match active.shares.of(lane.index, put.total) {
                    None => Step::Through(0),
                    Some(share) if lane.index == 0 => first(
                        lane,
                        active,
                        put,
                        share,
                        self.said,
                        self.credits,
                        self.message_max,
                    ),
                    Some(share) => other(lane, active, put, share, self.message_max),
                },
            };
            match step {
                Step::Stuck => {
                    self.is_stuck = true;
                    return (bytes, false);
                }
                Step::Went(went) => {
                    lane.cursor.bytes += went;
                    bytes += went;
                }
                Step::Through(went) => {
                    bytes += went;
                    let has_share = active
                        .put
                        .as_ref()
                        .is_some_and(|put| active.shares.of(lane.index, put.total).is_some());
                    lane.cursor.command += 1;
                    lane.cursor.bytes = 0;
                    if has_share {
                        self.outbox.copied(command);
                    }
                }
            }
        }
        (bytes, true)
    }
}

/// A step of the first lane.
fn first(
    lane: &mut Lane,
    active: &Active,
    put: &Put,
    (start, end): (u64, u64),
    said: &mut Said,
    credits: &mut Credits,
    message_max: u64,
) -> Step {
    let command = lane.cursor.command;
    let at = start + lane.cursor.bytes;
    if !active.fences.is_empty() {
        said.due.clone_from(&active.fences);
    }
    let rest = end - at;
    if put.total == 0 && put.signal.is_none() {
        return Step::Through(0);
    }
    let ends = Some(command);
    let code = said.code(active, put);
    let is_short = put.total as usize <= Record::EAGER_MAX && active.shares == Shares::Whole;
    // What is short and yet registered is a device's.
    if is_short && active.memory.is_none() {
        if !lane.has_credit() {
            return Step::Stuck;
        }
        if let Some(immediate) = code {
            let slot = lane.next_slot();
            gather(put, 0, put.total, slot);
            let to = put.target.clone().map(|to| (to, put.offset));
            let action = Action::WriteImmediate { to, immediate };
            lane.push_message(action, put.total as u32, ends);
            said.note(active);
            return Step::Through(put.total);
        }
        let eager = match &put.target {
            None => Some(None),
            Some(window) if window.host => Some(Some(window)),
            Some(_) => None,
        };
        if put.signal.is_some()
            && let Some(window) = eager
        {
            let mut bytes = [0; Record::EAGER_MAX];
            let bytes = &mut bytes[..put.total as usize];
            gather(put, 0, put.total, bytes.as_mut_ptr() as u64);
            let eager = window.map(|window| Eager {
                window: window.id,
                offset: put.offset,
                bytes,
            });
            record(lane, active, put, eager, said, credits, ends);
            return Step::Through(put.total);
        }
    }
    if rest == 0 {
        // All is written: what is left is to say so.
        if !lane.has_credit() {
            return Step::Stuck;
        }
        record(lane, active, put, None, said, credits, ends);
        return Step::Through(0);
    }
    let Some(target) = &put.target else {
        return Step::Through(0); // bytes always have a window
    };
    let wanted = rest.min(message_max);
    let whole = wanted == put.total;
    let immediate = code.filter(|_| whole && lane.has_credit());
    let Some(piece) = Piece::of(lane, active, put, at, wanted) else {
        return Step::Stuck;
    };
    let is_last = piece.bytes == rest;
    let to = (Arc::clone(target), put.offset + at);
    match immediate.filter(|_| u64::from(piece.bytes as u32) == put.total) {
        Some(immediate) => {
            lane.push(piece.message(to, immediate, lane.next_message(), ends));
            said.note(active);
            Step::Through(put.total)
        }
        None if is_last && put.signal.is_none() => {
            let bytes = piece.bytes;
            lane.push(piece.write(to, ends));
            Step::Through(bytes)
        }
        None => {
            let bytes = piece.bytes;
            lane.push(piece.write(to, None));
            Step::Went(bytes)
        }
    }
}

/// A step of another lane: a stripe, which ends with its mark.
fn other(
    lane: &mut Lane,
    active: &Active,
    put: &Put,
    (start, end): (u64, u64),
    message_max: u64,
) -> Step {
    let command = lane.cursor.command;
    let at = start + lane.cursor.bytes;
    let rest = end - at;
    let Some(target) = &put.target else {
        return Step::Through(0); // bytes always have a window
    };
    if rest <= message_max && !lane.has_credit() {
        return Step::Stuck;
    }
    let Some(piece) = Piece::of(lane, active, put, at, rest.min(message_max)) else {
        return Step::Stuck;
    };
    let to = (Arc::clone(target), put.offset + at);
    let bytes = piece.bytes;
    if bytes == rest {
        let number = lane.next_message();
        lane.push(piece.message(to, number as u32, number, Some(command)));
        return Step::Through(bytes);
    }
    lane.push(piece.write(to, None));
    Step::Went(bytes)
}

/// A run of a put's bytes where a device can read them.
struct Piece {
    address: u64,
    bytes: u64,
    home: Home,
    frees: Option<u64>,
}

impl Piece {
    /// The bytes from `at` on, at most `wanted`; `None` if there is no staging for them now.
    fn of(lane: &mut Lane, active: &Active, put: &Put, at: u64, wanted: u64) -> Option<Self> {
        if let Some(memory) = &active.memory {
            let (address, run) = put.source.run(at);
            return Some(Self {
                address,
                bytes: wanted.min(run),
                home: Home::Registered(Arc::clone(memory)),
                frees: None,
            });
        }
        let wanted = wanted.min(STAGED_MAX);
        let (place, bytes, frees) = lane.ring.take(wanted, wanted.min(STAGED_MIN))?;
        let address = lane.block.staged(place);
        gather(put, at, bytes, address);
        Some(Self {
            address,
            bytes,
            home: Home::Block,
            frees: Some(frees),
        })
    }

    fn write(self, (to, offset): (Arc<Imported>, u64), ends: Option<u64>) -> Unit {
        self.unit(Action::Write { to, offset }, None, ends)
    }

    fn message(
        self,
        to: (Arc<Imported>, u64),
        immediate: u32,
        number: u64,
        ends: Option<u64>,
    ) -> Unit {
        let action = Action::WriteImmediate {
            to: Some(to),
            immediate,
        };
        self.unit(action, Some(number), ends)
    }

    fn unit(self, action: Action, message: Option<u64>, ends: Option<u64>) -> Unit {
        Unit {
            action,
            address: self.address,
            bytes: self.bytes as u32, // at most one write's
            home: self.home,
            message,
            ends,
            frees: self.frees,
        }
    }
}

impl Said {
    pub(crate) fn new(lanes: usize) -> Self {
        Self {
            totals: Totals::default(),
            stripes: vec![0; lanes],
            due: vec![0; lanes],
        }
    }

    /// The immediate that says all there is to say of a put, if one can.
    fn code(&self, active: &Active, put: &Put) -> Option<u32> {
        let signal = put.signal.filter(|signal| signal.words.is_none())?;
        let alone = Totals {
            puts: self.totals.puts + 1,
            bytes: self.totals.bytes + put.total,
        };
        if alone != active.totals || self.stripes != self.due {
            return None;
        }
        Immediate {
            window: signal.window,
            offset: signal.offset,
        }
        .encode()
    }

    fn note(&mut self, active: &Active) {
        self.totals = active.totals;
    }

    /// The fences that a record needs; none if the last one had the same.
    pub(crate) fn fences(&mut self) -> Vec<u32> {
        if self.stripes == self.due {
            return Vec::new();
        }
        self.stripes.clone_from(&self.due);
        self.due.clone()
    }
}

fn record(
    lane: &mut Lane,
    active: &Active,
    put: &Put,
    eager: Option<Eager<'_>>,
    said: &mut Said,
    credits: &mut Credits,
    ends: Option<u64>,
) {
    said.note(active);
    let mut record = Record {
        body: RecordBody::Put {
            totals: active.totals,
            signal: put.signal,
            eager,
        },
        fences: said.fences(),
        credits: Vec::new(),
    };
    if record.fences.is_empty() {
        // There is always room for one of the two.
        record.credits = credits.passenger();
    }
    say(lane, &record, ends);
}

/// Sends a record.
pub(crate) fn say(lane: &mut Lane, record: &Record<'_>, ends: Option<u64>) {
    let mut bytes = [0; Record::MAX];
    let length = record
        .encode(&mut bytes)
        .expect("the limit of eager bytes leaves room for a count of each lane");
    lane.send(&bytes[..length], ends);
}

/// Copies the bytes of a put, from `at` on.
fn gather(put: &Put, mut at: u64, bytes: u64, mut to: u64) {
    let end = at + bytes;
    while at < end {
        let (from, run) = put.source.run(at);
        let run = run.min(end - at);
        // SAFETY: the host keeps a put's source alive and as it is until the put is complete; the
        // place is in this lane's own memory or on the stack, and as long.
        unsafe { memory::copy(from, to, run) };
        at += run;
        to += run;
    }
}
