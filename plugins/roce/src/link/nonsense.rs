//! The inbox of a link whose peer sends whatever it likes, beside a model of it.
#![allow(unsafe_code, reason = "windows are addresses in the contract")]

use std::sync::Arc;

use proptest::prelude::*;
use unisono_plugin::abi::FlagLine;
use unisono_plugin::{HostRange, LinkStatistics};

use super::inbox::{Inbox, Message};
use super::window::Windows;
use crate::memory::{Memory, SLOT};
use crate::wire::{Eager, Immediate, Record, RecordBody, Signal, Totals};

const LANES: usize = 4;
const FLAGS: u32 = 3;
const DATA: u32 = 7;
/// Lines of flags, and the lines of data behind them; all around are lines that belong to no window.
const LINES: usize = 4;
const ALL: usize = 3 * LINES + LINES;

/// What the peer does.
#[derive(Clone, Debug)]
enum Act {
    Land(usize),
    Immediate {
        window: u32,
        line: u64,
        bytes: u32,
    },
    Put {
        fences: Vec<u32>,
        totals: (u64, u64),
        signal: Option<(u32, u64, bool)>,
        eager: Option<(u32, u64, Vec<u8>)>,
    },
    Goodbye(Vec<u32>),
    Raw(Vec<u8>),
}

/// Mostly a window that is there.
fn window() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(FLAGS), 4 => Just(DATA), 1 => 0..9_u32]
}

/// Mostly a place in a window; near its end, behind it, and far beyond too.
fn place() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => (0..LINES as u64).prop_map(|line| line * 64),
        2 => 0..(LINES as u64 * 64 + 70),
        1 => any::<u64>(),
    ]
}

fn fences() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        3 => Just(Vec::new()),
        3 => prop::collection::vec(0..4_u32, 0..=LANES),
        1 => prop::collection::vec(any::<u32>(), 0..Record::LANES_MAX),
    ]
}

/// What was sent so far; no peer gets near the end of these numbers.
fn totals() -> impl Strategy<Value = (u64, u64)> {
    (0..u64::MAX / 2, 0..u64::MAX / 2)
}

fn act() -> impl Strategy<Value = Act> {
    let put = (
        fences(),
        totals(),
        prop::option::of((window(), place(), any::<bool>())),
        prop::option::of((window(), place(), prop::collection::vec(any::<u8>(), 1..60))),
    );
    prop_oneof![
        6 => (0..LANES + 2).prop_map(Act::Land),
        3 => (window(), 0..6_u64, 0..9000_u32)
            .prop_map(|(window, line, bytes)| Act::Immediate { window, line, bytes }),
        6 => put.prop_map(|(fences, totals, signal, eager)| Act::Put { fences, totals, signal, eager }),
        1 => fences().prop_map(Act::Goodbye),
        1 => prop::collection::vec(any::<u8>(), 0..SLOT).prop_map(Act::Raw),
    ]
}

/// Memory with two windows in its middle.
struct Here {
    lines: Vec<FlagLine>,
    windows: Windows,
}

impl Here {
    fn new() -> Self {
        // SAFETY: a flag line is plain integers.
        let lines: Vec<FlagLine> = (0..ALL).map(|_| unsafe { std::mem::zeroed() }).collect();
        let mut windows = Windows::default();
        for (id, at) in [(FLAGS, LINES), (DATA, 2 * LINES)] {
            let range = HostRange {
                address: lines[at..].as_ptr() as u64,
                bytes: LINES as u64 * 64,
            };
            windows.export(id, range, Arc::new(Memory::unregistered(range)));
        }
        Self { lines, windows }
    }

    fn bytes(&self) -> Vec<u8> {
        let at = self.lines.as_ptr().cast::<u8>();
        // SAFETY: all of it is plain bytes, and nobody writes meanwhile.
        unsafe { std::slice::from_raw_parts(at, ALL * 64) }.to_vec()
    }
}

/// What must come of it: messages in their order, each when its stripes have landed.
#[derive(Default)]
struct Model {
    landed: [u32; LANES],
    waiting: Vec<(Vec<u32>, Act)>,
    totals: Totals,
    ended: bool,
}

impl Model {
    /// Whether all that now counts may count.
    fn settle(&mut self) -> bool {
        while let Some((fences, _)) = self.waiting.first() {
            let mut lanes = self.landed.iter().zip(fences);
            if !lanes.all(|(landed, fence)| landed.wrapping_sub(*fence).cast_signed() >= 0) {
                break;
            }
            let (_, act) = self.waiting.remove(0);
            if !self.apply(&act) {
                return false;
            }
        }
        true
    }

    fn apply(&mut self, act: &Act) -> bool {
        let is_in = |window: u32, at: u64, bytes: u64| {
            (window == FLAGS || window == DATA)
                && at
                    .checked_add(bytes)
                    .is_some_and(|end| end <= LINES as u64 * 64)
        };
        let raises = |window, at: u64| {
            is_in(window, at, 64) && at.is_multiple_of(align_of::<FlagLine>() as u64)
        };
        match act {
            Act::Immediate {
                window,
                line,
                bytes,
            } => {
                self.totals.puts += 1;
                self.totals.bytes += u64::from(*bytes);
                raises(*window, line * 64)
            }
            Act::Put {
                totals,
                signal,
                eager,
                ..
            } => {
                let (puts, bytes) = *totals;
                self.totals = Totals { puts, bytes };
                eager
                    .as_ref()
                    .is_none_or(|(window, at, bytes)| is_in(*window, *at, bytes.len() as u64))
                    && signal.is_none_or(|(window, at, _)| raises(window, at))
            }
            Act::Goodbye(_) => {
                self.totals = Totals::default();
                self.ended = true;
                true
            }
            Act::Land(_) | Act::Raw(_) => true,
        }
    }
}

fn message(body: RecordBody<'_>, fences: &[u32]) -> Message {
    let mut bytes = [0; SLOT];
    let fences = fences.to_vec();
    let record = Record {
        body,
        fences,
        credits: vec![1, 2],
    };
    let length = record.encode(&mut bytes).expect("it fits");
    Message::Record { bytes, length }
}

/// The message of an act; `None` for one that is no message.
fn sent(act: &Act) -> Option<(Message, Vec<u32>)> {
    Some(match act {
        Act::Land(_) => return None,
        Act::Immediate {
            window,
            line,
            bytes,
        } => {
            let (window, offset) = (*window, line * 64);
            let code = Immediate { window, offset }.encode().expect("it is near");
            (
                Message::Immediate {
                    code,
                    bytes: *bytes,
                },
                Vec::new(),
            )
        }
        Act::Put {
            fences,
            totals,
            signal,
            eager,
        } => {
            let body = RecordBody::Put {
                totals: Totals {
                    puts: totals.0,
                    bytes: totals.1,
                },
                signal: signal.map(|(window, offset, words)| Signal {
                    window,
                    offset,
                    words: words.then_some([1, 2, 3]),
                }),
                eager: eager.as_ref().map(|(window, offset, bytes)| Eager {
                    window: *window,
                    offset: *offset,
                    bytes,
                }),
            };
            (message(body, fences), fences.clone())
        }
        Act::Goodbye(fences) => {
            let totals = Totals::default();
            (
                message(RecordBody::Goodbye { totals }, fences),
                fences.clone(),
            )
        }
        Act::Raw(raw) => {
            let mut bytes = [0; SLOT];
            bytes[..raw.len()].copy_from_slice(raw);
            (
                Message::Record {
                    bytes,
                    length: raw.len(),
                },
                Vec::new(),
            )
        }
    })
}

proptest! {
    #[test]
    fn no_message_breaks_the_inbox_or_what_is_around_a_window(acts in prop::collection::vec(act(), 0..40)) {
        let here = Here::new();
        let mut inbox = Inbox::new(LANES);
        let mut model = Model::default();
        let before = here.bytes();
        for act in &acts {
            let (outcome, expected) = match (act, sent(act)) {
                (Act::Land(lane), _) => {
                    if let Some(landed) = model.landed.get_mut(*lane) {
                        *landed += 1;
                    }
                    (inbox.land(*lane, &here.windows), Some(model.settle()))
                }
                (Act::Raw(_), Some((message, _))) => {
                    // Hardly ever a record; if it is one, the model knows nothing of it.
                    if inbox.take(message, &here.windows).is_ok() {
                        return Ok(());
                    }
                    (Err(super::inbox::Nonsense(String::new())), None)
                }
                (_, Some((message, fences))) => {
                    let fits = fences.len() <= LANES;
                    let outcome = match message {
                        Message::Immediate { code, bytes } => {
                            inbox.take_immediate(code, bytes, &here.windows)
                        }
                        record => inbox.take(record, &here.windows).map(|_| ()),
                    };
                    model.waiting.push((fences, act.clone()));
                    (outcome, Some(fits && model.settle()))
                }
                (_, None) => continue,
            };
            // Whoever breaks the protocol is heard no more.
            if let Some(expected) = expected {
                prop_assert_eq!(outcome.is_ok(), expected, "{:?}: {:?}", act, outcome);
            }
            if outcome.is_err() {
                break;
            }
            let mut statistics = LinkStatistics::default();
            inbox.write_statistics(&mut statistics);
            let totals = (statistics.puts_received, statistics.bytes_received);
            prop_assert_eq!(totals, (model.totals.puts, model.totals.bytes));
            prop_assert_eq!(inbox.is_waiting(), !model.waiting.is_empty());
            prop_assert_eq!(inbox.is_ended(), model.ended);
        }
        // Lines that belong to no window are as they were.
        let (after, lines) = (here.bytes(), LINES * 64);
        prop_assert_eq!(&after[..lines], &before[..lines]);
        prop_assert_eq!(&after[3 * lines..], &before[3 * lines..]);
    }
}
