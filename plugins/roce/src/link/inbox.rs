//! What comes in: signals in the order of the peer's puts, though stripes come over several lanes.
//!
//! The first lane brings the order: each of its messages says, where it matters, how many stripes must
//! have landed on the other lanes before it counts. Until then it waits here, and all behind it.
#![allow(unsafe_code, reason = "writes flags and windows by address")]

use std::collections::VecDeque;

use unisono_plugin::LinkStatistics;

use super::window::Windows;
use crate::memory::{self, SLOT};
use crate::wire::{Eager, Immediate, Record, RecordBody, Signal, Totals};

/// Messages that wait for stripes, at most: more than any number of credits lets a peer have on its way.
const HELD_MAX: usize = 4096;

/// The receiving side of a link.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Stripes that have landed, by lane.
    landed: Vec<u32>,
    held: VecDeque<Held>,
    totals: Totals,
    goodbye: bool,
}

/// A message of the first lane.
#[allow(
    clippy::large_enum_variant,
    reason = "it lives on the stack; what is held in the heap is few, and mostly records"
)]
#[derive(Debug)]
pub(crate) enum Message {
    /// A write of so many bytes has landed, and raises a flag.
    Immediate {
        code: u32,
        bytes: u32,
    },
    Record {
        bytes: [u8; SLOT],
        length: usize,
    },
}

#[derive(Debug)]
struct Held {
    fences: Vec<u32>,
    message: Message,
}

/// What a message said besides: how many of our messages the peer has taken, by lane.
pub(crate) type Taken = Vec<u32>;

/// The peer broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nonsense(pub(crate) String);

impl Inbox {
    pub(crate) fn new(lanes: usize) -> Self {
        Self {
            landed: vec![0; lanes],
            ..Self::default()
        }
    }

    /// Whether stripes are awaited on other lanes.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether the peer has said its last word, and all before it counts.
    pub(crate) const fn is_ended(&self) -> bool {
        self.goodbye
    }

    pub(crate) const fn write_statistics(&self, to: &mut LinkStatistics) {
        to.puts_received = self.totals.puts;
        to.bytes_received = self.totals.bytes;
    }

    /// A stripe has landed on another lane than the first.
    pub(crate) fn land(&mut self, lane: usize, windows: &Windows) -> Result<(), Nonsense> {
        if let Some(landed) = self.landed.get_mut(lane) {
            *landed = landed.wrapping_add(1);
        }
        while let Some(held) = self.held.front() {
            if !self.is_open(&held.fences) {
                break;
            }
            if let Some(held) = self.held.pop_front() {
                self.apply(&held.message, windows)?;
            }
        }
        Ok(())
    }

    /// A message has come on the first lane. Its credits count at once, whatever waits.
    pub(crate) fn take(&mut self, message: Message, windows: &Windows) -> Result<Taken, Nonsense> {
        let (fences, taken) = match &message {
            Message::Immediate { .. } => (Vec::new(), Vec::new()),
            Message::Record { bytes, length } => {
                let record = decode(bytes, *length)?;
                (record.fences, record.credits)
            }
        };
        if fences.len() > self.landed.len() {
            return Err(Nonsense(
                "it awaits stripes on lanes that are none".to_owned(),
            ));
        }
        if self.held.is_empty() && self.is_open(&fences) {
            self.apply(&message, windows)?;
        } else {
            self.hold(Held { fences, message })?;
        }
        Ok(taken)
    }

    /// A write that raises a flag has come on the first lane.
    pub(crate) fn take_immediate(
        &mut self,
        code: u32,
        bytes: u32,
        windows: &Windows,
    ) -> Result<(), Nonsense> {
        if self.held.is_empty() {
            return self.raise_at_once(code, bytes, windows);
        }
        self.hold(Held {
            fences: Vec::new(),
            message: Message::Immediate { code, bytes },
        })
    }

    fn hold(&mut self, held: Held) -> Result<(), Nonsense> {
        if self.held.len() >= HELD_MAX {
            return Err(Nonsense("it sends more than it has credit for".to_owned()));
        }
        self.held.push_back(held);
        Ok(())
    }

    fn raise_at_once(&mut self, code: u32, bytes: u32, windows: &Windows) -> Result<(), Nonsense> {
        // A peer's own record may have set them to anything.
        self.totals.puts = self.totals.puts.wrapping_add(1);
        self.totals.bytes = self.totals.bytes.wrapping_add(u64::from(bytes));
        let Immediate { window, offset } = Immediate::decode(code);
        raise(windows, window, offset, None)
    }

    fn is_open(&self, fences: &[u32]) -> bool {
        let lanes = self.landed.iter().zip(fences);
        lanes
            .into_iter()
            .all(|(landed, fence)| landed.wrapping_sub(*fence).cast_signed() >= 0)
    }

    fn apply(&mut self, message: &Message, windows: &Windows) -> Result<(), Nonsense> {
        match message {
            Message::Immediate { code, bytes } => self.raise_at_once(*code, *bytes, windows),
            Message::Record { bytes, length } => {
                let record = decode(bytes, *length)?;
                match record.body {
                    RecordBody::Credit => Ok(()),
                    RecordBody::Goodbye { totals } => {
                        self.totals = totals;
                        self.goodbye = true;
                        Ok(())
                    }
                    RecordBody::Put {
                        totals,
                        signal,
                        eager,
                    } => {
                        self.totals = totals;
                        if let Some(eager) = eager {
                            write(windows, eager)?;
                        }
                        match signal {
                            None => Ok(()),
                            Some(Signal {
                                window,
                                offset,
                                words,
                            }) => raise(windows, window, offset, words),
                        }
                    }
                }
            }
        }
    }
}

fn decode(bytes: &[u8; SLOT], length: usize) -> Result<Record<'_>, Nonsense> {
    let bytes = bytes
        .get(..length)
        .ok_or_else(|| Nonsense("a message that is too long".to_owned()))?;
    Record::decode(bytes).map_err(|error| Nonsense(error.to_string()))
}

fn raise(
    windows: &Windows,
    window: u32,
    offset: u64,
    words: Option<[u64; 3]>,
) -> Result<(), Nonsense> {
    let flag = windows.flag(window, offset).ok_or_else(|| {
        Nonsense(format!(
            "a signal at {offset} of window {window}, where no flag is"
        ))
    })?;
    // SAFETY: the flag lies in an exported window, whose memory the host keeps until it is closed.
    unsafe { memory::raise(flag, words) };
    Ok(())
}

fn write(windows: &Windows, eager: Eager<'_>) -> Result<(), Nonsense> {
    let Eager {
        window,
        offset,
        bytes,
    } = eager;
    let place = windows
        .place(window, offset, bytes.len() as u64)
        .ok_or_else(|| {
            Nonsense(format!(
                "{} bytes at {offset} of window {window}, where there is no room",
                bytes.len()
            ))
        })?;
    // SAFETY: the bytes lie in an exported window, which only the peer writes until it has raised a
    // flag; a message is never in a window.
    unsafe { memory::copy(bytes.as_ptr() as u64, place, bytes.len() as u64) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(fences: Vec<u32>, puts: u64) -> Message {
        let mut bytes = [0; SLOT];
        let record = Record {
            body: RecordBody::Put {
                totals: Totals { puts, bytes: puts },
                signal: None,
                eager: None,
            },
            fences,
            credits: vec![puts as u32],
        };
        let length = record.encode(&mut bytes).unwrap();
        Message::Record { bytes, length }
    }

    fn puts(inbox: &Inbox) -> u64 {
        let mut statistics = LinkStatistics::default();
        inbox.write_statistics(&mut statistics);
        statistics.puts_received
    }

    #[test]
    fn a_message_waits_for_its_stripes_and_all_behind_it_wait_too() {
        let windows = Windows::default();
        let mut inbox = Inbox::new(3);
        assert_eq!(inbox.take(record(vec![], 1), &windows), Ok(vec![1]));
        assert_eq!(puts(&inbox), 1);
        // Its credits count although it waits.
        assert_eq!(inbox.take(record(vec![0, 1, 2], 2), &windows), Ok(vec![2]));
        inbox.take(record(vec![], 3), &windows).unwrap();
        assert!(inbox.is_waiting());
        inbox.land(2, &windows).unwrap();
        inbox.land(1, &windows).unwrap();
        assert_eq!(puts(&inbox), 1);
        inbox.land(2, &windows).unwrap();
        assert_eq!(puts(&inbox), 3);
        assert!(!inbox.is_waiting());
    }

    #[test]
    fn nonsense_is_refused() {
        let windows = Windows::default();
        let mut inbox = Inbox::new(1);
        assert!(inbox.take(record(vec![0, 0], 1), &windows).is_err());
        let garbage = Message::Record {
            bytes: [9; SLOT],
            length: SLOT,
        };
        assert!(inbox.take(garbage, &windows).is_err());
        let nowhere = Message::Immediate { code: 5, bytes: 0 };
        assert!(inbox.take(nowhere, &windows).is_err());
    }
}
