//! The send side of a link: accepted commands, and the puts that are under way.
//!
//! A put is complete once its source may be reused: when the peer has said that it has landed, for
//! until then it may have to be sent again over another connection; or when the kernel has it, if it is
//! so small that it is copied, or the connection lasts as long as both processes.
#![allow(unsafe_code, reason = "commands name flags and counters by address")]

use std::collections::VecDeque;

use unisono_plugin::abi::{CMD_WORDS, CommandWait};
use unisono_plugin::{Batch, Command, Error, NoEvent, Result};

use super::keep::Keep;
use super::put::{Lines, Place, Put, Source};
use super::together::{ROOM, SHORT};
use super::window::Windows;
use crate::memory::{self, Reached};
use crate::wire::FRAME_BYTES;

/// Commands that a link takes before it says "no more now".
const QUEUE_MAX: usize = 1024;
/// So many short puts that are all there is go to the kernel without that anything of them is remembered.
const FEW: usize = 8;
const _: () = assert!(FEW * (FRAME_BYTES + SHORT as usize) <= ROOM);
/// Puts that are under way at once.
const ACTIVE_MAX: usize = 128;
/// Commands in order: accepted, then under way, then complete.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Queued>,
    /// What the WAIT at the queue's head waits for, once it has begun.
    waiting: Option<u64>,
    active: VecDeque<Active>,
    /// So many at its front have no frame left to be claimed: many short ones may be under way, and each claim looks for
    /// the next.
    spent: usize,
    completed: u64,
    /// Puts that were begun.
    sequence: u64,
    /// Bytes of puts that are complete.
    payload: u64,
}

#[derive(Debug)]
enum Queued {
    Put(Put),
    Wait(CommandWait),
}

/// A command under way: a put, or a WAIT that has ended and must keep its place.
#[derive(Debug)]
struct Active {
    put: Option<Put>,
    sequence: u64,
    claimed: u64,
    begun: bool,
    /// Frames that still need its source.
    open: u32,
}

/// A frame for one connection to send.
#[derive(Debug)]
pub(crate) struct OutFrame {
    /// Of a copy it lies before that, in the connection's ring.
    header: [u8; FRAME_BYTES],
    pub(crate) source: Source,
    /// Where in the put's bytes it begins.
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// Place of its put among all commands, while that waits for this frame.
    command: Option<u64>,
    /// What it uses of the connection's copies, if it is one.
    pub(crate) kept: Option<u64>,
}

impl OutFrame {
    /// Where its header lies, while nothing moves the frame.
    pub(crate) fn header_address(&self) -> u64 {
        match self.kept {
            Some(_) => self.source.run(0).0 - FRAME_BYTES as u64,
            None => self.header.as_ptr() as u64,
        }
    }

    /// Bytes of which the peer tells at once that it has them; it takes its time with copies.
    pub(crate) const fn told_of(&self) -> u64 {
        match self.kept {
            Some(_) => 0,
            None => self.length,
        }
    }
}

impl Outbox {
    /// Takes as many commands of a batch as there is room for; none of them if one is wrong.
    ///
    /// # Errors
    /// A put that names no window, or bytes outside of one.
    pub(crate) fn take(&mut self, batch: &Batch<'_, NoEvent>, windows: &Windows) -> Result<u32> {
        let before = self.queue.len();
        for command in batch.iter().take(QUEUE_MAX - before) {
            let checked = match command {
                Command::Put(put) => Put::check(put, windows).map(Queued::Put),
                Command::Wait(wait) => Ok(Queued::Wait(*wait)),
                _ => Err(Error::unsupported("a link takes PUT and WAIT only")),
            };
            match checked {
                Ok(queued) => self.queue.push_back(queued),
                Err(error) => {
                    self.queue.truncate(before);
                    return Err(error);
                }
            }
        }
        Ok((self.queue.len() - before) as u32)
    }

    /// Commands that are complete, with all before them.
    pub(crate) const fn completed(&self) -> u64 {
        self.completed
    }

    /// Puts that were begun.
    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Bytes of puts that are complete.
    pub(crate) const fn payload(&self) -> u64 {
        self.payload
    }

    /// Whether all that was accepted is complete.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.active.is_empty()
    }

    /// Whether a put waits for a connection to take (the rest of) it.
    pub(crate) fn has_unclaimed(&self) -> bool {
        self.unclaimed().next().is_some()
    }

    /// Whether a few short puts are all there is.
    pub(crate) fn is_short(&self) -> bool {
        let is_short = |queued: &Queued| matches!(queued, Queued::Put(put) if put.total <= SHORT);
        self.active.is_empty()
            && (1..=FEW).contains(&self.queue.len())
            && self.queue.iter().all(is_short)
    }

    /// The puts that wait to be begun, if [they are short](Self::is_short): the header of each, and its bytes.
    pub(crate) fn short(&self) -> impl Iterator<Item = ([u8; FRAME_BYTES], &Source, u64)> {
        let puts = self.queue.iter().map_while(|queued| match queued {
            Queued::Put(put) => Some(put),
            Queued::Wait(_) => None,
        });
        (self.sequence..).zip(puts).map(|(sequence, put)| {
            let frame = put.frame(sequence, 0, put.total, false);
            (frame.encode(), &put.source, put.total)
        })
    }

    /// The kernel has all that was [short](Self::short).
    pub(crate) fn complete_short(&mut self) {
        debug_assert!(self.is_short(), "waits would be lost");
        while let Some(Queued::Put(put)) = self.queue.pop_front() {
            if let Some((flag, counter)) = put.done {
                // SAFETY: the host keeps a command's flags alive until it is complete.
                unsafe { memory::signal(flag, counter) };
            }
            self.sequence += 1;
            self.completed += 1;
            self.payload += put.total;
        }
        // The next begin where these did: in the cache.
        self.queue.clear();
    }

    /// What was [short](Self::short) goes the way of all others.
    pub(crate) fn begin_short(&mut self) {
        debug_assert!(self.is_short(), "waits would be lost");
        while let Some(Queued::Put(put)) = self.queue.pop_front() {
            self.begin(Some(put));
        }
    }

    /// Moves commands from the queue into the work under way, as far as WAITs let them.
    ///
    /// # Errors
    /// A WAIT that found other words than it expects.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let before = (self.completed, self.active.len());
        while self.active.len() < ACTIVE_MAX {
            let put = match self.queue.front() {
                None => break,
                Some(Queued::Put(put)) => Some(*put),
                Some(Queued::Wait(wait)) => {
                    // SAFETY: the host keeps a command's flags alive until it is complete.
                    let value = *self
                        .waiting
                        .get_or_insert_with(|| unsafe { memory::begin_wait(wait.counter) });
                    // SAFETY: as above.
                    match unsafe { memory::reached(wait.flag, wait.counter, value) } {
                        Reached::No => break,
                        Reached::Aborted => {}
                        Reached::Yes if wait.head.flags & CMD_WORDS == 0 => {}
                        Reached::Yes => {
                            // SAFETY: as above.
                            let found = unsafe { memory::words(wait.flag) };
                            if found != wait.words {
                                return Err(Error::mismatch(found));
                            }
                        }
                    }
                    self.waiting = None;
                    None
                }
            };
            self.queue.pop_front();
            self.begin(put);
        }
        self.retire();
        Ok(before != (self.completed, self.active.len()))
    }

    /// Puts a command among those under way, behind the others.
    fn begin(&mut self, put: Option<Put>) {
        self.active.push_back(Active {
            put,
            sequence: self.sequence,
            claimed: 0,
            begun: put.is_none(),
            open: 0,
        });
        self.sequence += u64::from(put.is_some());
    }

    /// What no connection has taken yet of the oldest put that several rails share.
    pub(crate) fn shared_rest(&self, lines: Lines) -> u64 {
        let shared = self
            .unclaimed()
            .find_map(|(_, a)| Some((a.put.filter(|p| p.is_shared(lines))?, a)));
        shared.map_or(0, |(put, active)| put.total - active.claimed)
    }

    /// Whether a connection would take a frame.
    pub(crate) fn has_for(&self, place: Place) -> bool {
        self.next_for(place).is_some()
    }

    /// The puts that have frames left, in order, with their places.
    fn unclaimed(&self) -> impl Iterator<Item = (usize, &Active)> {
        let rest = self.active.range(self.spent..);
        (self.spent..)
            .zip(rest)
            .filter(|(_, active)| active.is_unclaimed())
    }

    /// The put whose next frame is a connection's to send, and how long that is. Small puts and the first
    /// stripe of each go over the first connection, so that the peer hears of every put there. Where rails
    /// share a put any of them may begin: the first may be the slow one.
    fn next_for(&self, place: Place) -> Option<(usize, u64)> {
        let (at, active) = self.unclaimed().find(|(_, a)| {
            let shared = || a.put.is_some_and(|put| put.is_shared(place.lines));
            place.connection == 0 || a.begun || shared()
        })?;
        let put = active.put?;
        let length = put.stripe(place).min(put.total - active.claimed);
        (length > 0 || put.total == 0).then_some((at, length))
    }

    /// The next frame for a connection to send.
    ///
    /// Without `keep` nothing is sent again, and the peer need not say what it has.
    pub(crate) fn claim(&mut self, place: Place, keep: Option<&mut Keep>) -> Option<OutFrame> {
        let (at, length) = self.next_for(place)?;
        let completed = self.completed;
        let active = self.active.get_mut(at)?;
        let put = active.put?;
        let claimed = active.claimed;
        active.claimed += length;
        active.begun = true;
        active.open += 1;
        let sequence = active.sequence;
        let is_spent = |active: &Active| !active.is_unclaimed();
        while self.active.get(self.spent).is_some_and(is_spent) {
            self.spent += 1;
        }
        let again = keep.is_some();
        let keep = keep.filter(|_| length == put.total);
        let kept = keep.and_then(|keep| Some((keep.room(length)?, keep)));
        let frame = put.frame(sequence, claimed, length, again && kept.is_none());
        let header = frame.encode();
        let (source, start, kept) = match kept {
            Some((kept, keep)) => {
                // SAFETY: the host keeps a put's source alive until it is complete.
                unsafe { keep.copy(kept, &header, &put.source, length) };
                (Source::one(kept.address, length), 0, Some(kept.used))
            }
            None => (put.source, claimed, None),
        };
        Some(OutFrame {
            header,
            source,
            start,
            length,
            command: Some(completed + at as u64),
            kept,
        })
    }

    /// Takes note that a frame does not need its source any more. Once is enough.
    pub(crate) fn settle(&mut self, frame: &mut OutFrame) {
        let Some(command) = frame.command.take() else {
            return;
        };
        let place = command.wrapping_sub(self.completed) as usize;
        if let Some(active) = self.active.get_mut(place) {
            active.open -= 1;
            self.payload += frame.length;
        }
    }

    /// Completes what can be, in order, with its local signals.
    pub(crate) fn retire(&mut self) {
        while self.active.front().is_some_and(Active::is_complete) {
            let done = self.active.pop_front().and_then(|a| a.put?.done);
            if let Some((flag, counter)) = done {
                // SAFETY: the host keeps a command's flags alive until it is complete.
                unsafe { memory::signal(flag, counter) };
            }
            self.completed += 1;
            self.spent = self.spent.saturating_sub(1);
        }
        if self.active.is_empty() {
            // The next begin where these did: in the cache.
            self.active.clear();
            if self.queue.is_empty() {
                self.queue.clear();
            }
        }
    }

    /// Drops all commands; none of them signals any more.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.active.clear();
        self.spent = 0;
        self.waiting = None;
    }
}

impl Active {
    fn is_unclaimed(&self) -> bool {
        self.put
            .is_some_and(|put| !self.begun || self.claimed < put.total)
    }

    fn is_complete(&self) -> bool {
        self.open == 0 && !self.is_unclaimed()
    }
}

#[cfg(test)]
impl Outbox {
    /// One in which these puts wait.
    pub(crate) fn of(puts: impl IntoIterator<Item = Put>) -> Self {
        Self {
            queue: puts.into_iter().map(Queued::Put).collect(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use unisono_plugin::abi::{Counter, FlagLine};

    use super::*;
    use crate::wire::Frame;

    fn put(total: u64) -> Put {
        Put {
            source: Source::one(4096, total),
            window: 1,
            offset: 64,
            total,
            signal: None,
            done: None,
        }
    }

    #[test]
    fn only_a_few_short_puts_are_short() {
        let of = |totals: &[u64]| Outbox::of(totals.iter().copied().map(put));
        assert!(of(&[0]).is_short() && of(&[SHORT; FEW]).is_short());
        assert!(!of(&[]).is_short(), "none");
        assert!(!of(&[4, SHORT + 1]).is_short(), "long");
        assert!(!of(&[4; FEW + 1]).is_short(), "many");
        let mut begun = of(&[SHORT + 1]);
        begun.advance().expect("no wait");
        begun.queue.push_back(Queued::Put(put(4)));
        assert!(!begun.is_short(), "one is under way");
        let mut waits = of(&[4]);
        // SAFETY: a command is of integers.
        let wait: CommandWait = unsafe { std::mem::zeroed() };
        waits.queue.push_back(Queued::Wait(wait));
        assert!(!waits.is_short(), "a wait is behind it");
    }

    #[test]
    fn short_puts_are_numbered_and_complete_as_all_others() {
        let mut flag = FlagLine {
            counter: 0,
            words: [0; 3],
            reserved: [0; 4],
        };
        let mut counter = Counter { value: 0, seen: 0 };
        let last = Put {
            done: Some((&raw mut flag as u64, &raw mut counter as u64)),
            ..put(12)
        };
        let mut outbox = Outbox::of([put(0), last]);
        outbox.sequence = 5;
        let frames: Vec<_> = outbox
            .short()
            .map(|(header, _, bytes)| (Frame::decode(&header).expect("a frame"), bytes))
            .collect();
        let numbers = frames.iter().map(|(frame, bytes)| match frame {
            Frame::Put { sequence, .. } => (*sequence, *bytes),
            other => panic!("{other:?}"),
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [(5, 0), (6, 12)]);
        outbox.complete_short();
        assert!(outbox.is_empty());
        assert_eq!((outbox.completed(), outbox.sequence()), (2, 7));
        assert_eq!((outbox.payload(), flag.counter), (12, 1));
    }
}
