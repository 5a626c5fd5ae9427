//! The send side of a link: accepted commands, and the puts that are under way.
#![allow(unsafe_code, reason = "commands name flags and counters by address")]

use std::collections::VecDeque;
use std::sync::Arc;

use unisono_plugin::abi::{CMD_WORDS, CommandWait};
use unisono_plugin::{Batch, Command, Error, NoEvent, Result};

use super::put::{Put, Shares};
use super::window::Windows;
use crate::memory::{self, Memory, Reached};
use crate::wire::Totals;

/// Commands that a link takes before it says "no more now".
const QUEUE_MAX: usize = 1024;
/// Puts that are under way at once.
const ACTIVE_MAX: usize = 64;

/// Commands in order: accepted, then under way, then complete.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Queued>,
    /// What the WAIT at the queue's head waits for, once it has begun.
    waiting: Option<u64>,
    active: VecDeque<Active>,
    /// How many of the active ones have given their sources back.
    released: usize,
    completed: u64,
    totals: Totals,
    /// Stripes so far, by lane.
    stripes: Vec<u32>,
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
pub(crate) struct Active {
    pub(crate) put: Option<Put>,
    pub(crate) shares: Shares,
    /// The stripes so far, this put's included, by lane; empty if it has none.
    pub(crate) fences: Vec<u32>,
    /// What was sent so far, this put included.
    pub(crate) totals: Totals,
    /// What its source is registered as; `None` if its bytes are copied.
    pub(crate) memory: Option<Arc<Memory>>,
    /// Lanes that still read the source.
    reading: u32,
    /// Lanes whose share is not acknowledged.
    open: u32,
}

impl Outbox {
    pub(crate) fn set_lanes(&mut self, lanes: usize) {
        self.stripes = vec![0; lanes];
    }

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

    /// What was sent, or begun.
    pub(crate) const fn totals(&self) -> Totals {
        self.totals
    }

    /// Bytes of puts that are complete.
    pub(crate) const fn payload(&self) -> u64 {
        self.payload
    }

    /// Whether all that was accepted is complete.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.active.is_empty()
    }

    /// Whether none is accepted that has not begun: what is under way goes on when something comes.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.queue.is_empty()
    }

    /// A command under way, by its number.
    pub(crate) fn get(&self, command: u64) -> Option<&Active> {
        let place = command.checked_sub(self.completed)?;
        self.active.get(usize::try_from(place).ok()?)
    }

    /// Moves commands from the queue into the work under way, as far as WAITs let them. `prepare`
    /// says how a put goes out.
    ///
    /// # Errors
    /// A WAIT that found other words than it expects.
    pub(crate) fn advance(
        &mut self,
        mut prepare: impl FnMut(&Put) -> (Shares, Option<Arc<Memory>>),
    ) -> Result<bool> {
        let before = (self.completed, self.active.len());
        while self.active.len() < ACTIVE_MAX {
            let active = match self.queue.front() {
                None => break,
                Some(Queued::Put(put)) => {
                    let (shares, memory) = prepare(put);
                    self.begin(put.clone(), shares, memory)
                }
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
                    Active::waited()
                }
            };
            self.queue.pop_front();
            self.active.push_back(active);
        }
        self.retire();
        Ok(before != (self.completed, self.active.len()))
    }

    fn begin(&mut self, put: Put, shares: Shares, memory: Option<Arc<Memory>>) -> Active {
        self.totals.puts += 1;
        self.totals.bytes += put.total;
        let mut lanes = 0;
        for lane in shares.lanes(put.total) {
            lanes += 1;
            if lane > 0
                && let Some(stripes) = self.stripes.get_mut(lane)
            {
                *stripes = stripes.wrapping_add(1);
            }
        }
        if put.total == 0 && put.signal.is_none() {
            lanes = 0; // there is nothing to say
        }
        let fences = match shares {
            Shares::Whole => Vec::new(),
            Shares::Striped(_) => self.stripes.clone(),
        };
        Active {
            put: Some(put),
            shares,
            fences,
            totals: self.totals,
            memory,
            reading: lanes,
            open: lanes,
        }
    }

    /// A lane has copied its whole share of a command: it reads the source no more.
    pub(crate) fn copied(&mut self, command: u64) {
        let place = command.wrapping_sub(self.completed) as usize;
        if let Some(active) = self.active.get_mut(place)
            && active.memory.is_none()
        {
            active.reading = active.reading.saturating_sub(1);
        }
    }

    /// A lane's share of a command is acknowledged.
    pub(crate) fn acknowledge(&mut self, command: u64) {
        let place = command.wrapping_sub(self.completed) as usize;
        if let Some(active) = self.active.get_mut(place) {
            active.open = active.open.saturating_sub(1);
            if active.memory.is_some() {
                active.reading = active.reading.saturating_sub(1);
            }
        }
    }

    /// Signals in order what may be reused, and completes in order what is acknowledged.
    pub(crate) fn retire(&mut self) {
        while let Some(active) = self.active.get(self.released) {
            if active.reading > 0 {
                break;
            }
            if let Some((flag, counter)) = active.put.as_ref().and_then(|put| put.done) {
                // SAFETY: the host keeps a command's flags alive until it is complete.
                unsafe { memory::signal(flag, counter) };
            }
            self.released += 1;
        }
        while self.released > 0 && self.active.front().is_some_and(|a| a.open == 0) {
            let put = self.active.pop_front().and_then(|active| active.put);
            self.payload += put.map_or(0, |put| put.total);
            self.released -= 1;
            self.completed += 1;
        }
    }

    /// Drops all commands; none of them signals any more.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.active.clear();
        self.released = 0;
        self.waiting = None;
    }
}

impl Active {
    const fn waited() -> Self {
        Self {
            put: None,
            shares: Shares::Whole,
            fences: Vec::new(),
            totals: Totals { puts: 0, bytes: 0 },
            memory: None,
            reading: 0,
            open: 0,
        }
    }
}
