//! A link whose ends have met: lanes, and the turns in which they send and receive.

use std::sync::Arc;
use std::time::{Duration, Instant};

use unisono_plugin::{LinkStatistics, Result};

use super::bring_up;
use super::credit::{Credits, extra_receives};
use super::fill::{Filling, Said, say};
use super::inbox::{Inbox, Message};
use super::lane::{Ended, Lane};
use super::outbox::Outbox;
use super::put::{Put, Shares, Striping};
use super::recovery::Pairs;
use super::session::Session;
use super::trouble;
use super::window::Windows;
use super::wire::{Arrival, Broken};
use crate::memory::{Block, Memory, SLOT};
use crate::plugin::Shared;
use crate::wire::{Record, RecordBody};

/// Bytes that one lane posts in one turn: then it is the next one's.
const TURN_BYTES: u64 = 4 << 20;
/// Polls between two looks at lanes from which nothing is awaited.
const GLANCE: u32 = 16;
/// A last word that is not acknowledged after this is left to itself.
const LAST_WORD: Duration = Duration::from_millis(200);

/// Everything that exists once both ends have said hello.
#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) lanes: Vec<Lane>,
    pub(crate) pairs: Pairs,
    inbox: Inbox,
    pub(crate) credits: Credits,
    said: Said,
    striping: Striping,
    message_max: u64,
    polls: u32,
    /// Whether the last turn left something unsent of what has begun.
    unfinished: bool,
    arrivals: Vec<Arrival>,
    pub(crate) ended: Vec<Ended>,
    /// Queue pairs that were lost and made anew.
    pub(crate) recovered: u64,
}

/// What a message is, by its lane and whether it is a write that raises a flag.
#[allow(
    clippy::large_enum_variant,
    reason = "it lives on the stack, one at a time"
)]
enum Arrived {
    /// A part of a put, on another lane than the first.
    Stripe,
    Flag(u32),
    Record([u8; SLOT]),
}

/// What the link lends for a turn.
pub(crate) struct Desk<'a> {
    pub(crate) session: &'a Session,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) windows: &'a Windows,
}

/// What a turn did.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) bytes: u64,
    pub(crate) moved: bool,
    /// Whether another turn can do more at once.
    pub(crate) more: bool,
    /// Lanes that have lost their queue pairs.
    pub(crate) lost: Vec<(usize, Broken)>,
}

impl Established {
    pub(crate) fn new(session: &Session) -> Result<Self> {
        let shared = session.shared();
        let config = &shared.config;
        let Some(met) = session.met() else {
            return Err(trouble::nonsense(session.peer(), "it has not said hello"));
        };
        let lanes = (0..met.lanes)
            .map(|index| {
                let receives = config.credits + extra_receives(met.lanes);
                let depth = shared.rails.depth(config.queue_depth);
                let block = Block::new(&shared.rails, receives, depth, config.staging)?;
                let window = met.hello.credits;
                Ok(Lane::new(index, block, depth, window, config.staging))
            })
            .collect::<Result<Vec<_>>>()?;
        let weights = (0..met.lanes).map(|lane| {
            let pair = lane % met.pairs.len();
            let on_pair = (met.lanes - pair).div_ceil(met.pairs.len()) as u64;
            session.speed(&met.pairs[pair]) / on_pair
        });
        let rails = shared.rails.all().iter();
        let message_max = rails.map(|rail| rail.message_max).min();
        Ok(Self {
            pairs: Pairs::new(&met.pairs),
            inbox: Inbox::new(met.lanes),
            credits: Credits::new(met.lanes, config.credits),
            said: Said::new(met.lanes),
            striping: Striping::new(
                weights.collect(),
                config
                    .stripe
                    .unwrap_or_else(|| least_stripe(met.pairs.len())),
            ),
            message_max: message_max.unwrap_or(config.message),
            polls: 0,
            unfinished: false,
            arrivals: Vec::new(),
            ended: Vec::new(),
            recovered: 0,
            lanes,
        })
    }

    /// Whether every lane has its queue pair.
    pub(crate) fn is_up(&self) -> bool {
        self.lanes.iter().all(|lane| lane.wire.is_some())
    }

    /// Whether the peer has said its last word, and all before it counts.
    pub(crate) const fn is_ended(&self) -> bool {
        self.inbox.is_ended()
    }

    pub(crate) fn write_statistics(&self, to: &mut LinkStatistics) {
        self.inbox.write_statistics(to);
        to.recovered = self.recovered;
        to.connections = self.lanes.iter().filter(|lane| lane.wire.is_some()).count() as u32;
    }

    /// The next turn looks at every lane.
    pub(crate) fn wake(&mut self) {
        self.polls = (self.polls / GLANCE * GLANCE).wrapping_add(GLANCE - 1);
    }

    /// Sends about `budget` bytes, and receives. What was just handed over goes out first: whoever waits
    /// for it waits longer than for what has come.
    ///
    /// # Errors
    /// The link can't go on.
    pub(crate) fn turn(&mut self, desk: &mut Desk<'_>, budget: u64) -> Result<Turn> {
        let mut turn = Turn::default();
        let budget = budget.min(TURN_BYTES);
        if !desk.outbox.is_at_rest() && self.begin(desk)? {
            turn.moved = true;
            self.send(desk, budget, &mut turn);
        }
        self.receive(desk, &mut turn)?;
        if !turn.moved && self.is_at_rest(desk.outbox) {
            return Ok(turn);
        }
        self.settle(desk.outbox);
        turn.moved |= self.begin(desk)?;
        self.send(desk, budget, &mut turn);
        desk.outbox.retire();
        turn.moved |= turn.bytes > 0;
        Ok(turn)
    }

    /// Begins what was handed over, as far as WAITs let it; whether anything did.
    fn begin(&self, desk: &mut Desk<'_>) -> Result<bool> {
        let (windows, striping) = (desk.windows, &self.striping);
        let shared = desk.session.shared();
        let how = |put: &Put| prepare(put, windows, shared, striping);
        desk.outbox.advance(how)
    }

    /// Takes what has come on the lanes from which something is awaited, and now and then on all.
    ///
    /// # Errors
    /// The link can't go on.
    pub(crate) fn receive(&mut self, desk: &mut Desk<'_>, turn: &mut Turn) -> Result<()> {
        self.polls = self.polls.wrapping_add(1);
        let glance = self.polls.is_multiple_of(GLANCE);
        for lane in 0..self.lanes.len() {
            let awaited = lane == 0
                || glance
                || self.inbox.is_waiting()
                || self.lanes[lane].has_posted()
                || self.lanes[lane].old.is_some();
            if awaited {
                self.collect(lane, desk, turn)?;
            }
        }
        Ok(())
    }

    /// Whether nothing is to be done until something comes: most turns end here, soon.
    fn is_at_rest(&self, outbox: &Outbox) -> bool {
        !self.unfinished
            && self.ended.is_empty()
            && outbox.is_at_rest()
            && !self.credits.is_due()
            && self.lanes.iter().all(Lane::is_flushed)
    }

    /// Takes what has come on a lane, over its queue pair and the one before.
    fn collect(&mut self, index: usize, desk: &mut Desk<'_>, turn: &mut Turn) -> Result<()> {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let lane = &mut self.lanes[index];
        if let Some(old) = &mut lane.old {
            old.collect(|arrival| arrivals.push(arrival));
            turn.moved |= !arrivals.is_empty();
            self.take(index, &mut arrivals, true, desk)?;
        }
        let lane = &mut self.lanes[index];
        if let Some(wire) = &mut lane.wire {
            let collected = wire.collect(|arrival| arrivals.push(arrival));
            wire.fresh |= !arrivals.is_empty();
            turn.moved |= !arrivals.is_empty();
            let stopped = collected.is_err();
            if let Err(broken) = collected {
                turn.lost.push((index, broken));
            }
            if arrivals.is_empty() {
                self.arrivals = arrivals;
                return Ok(());
            }
            self.take(index, &mut arrivals, stopped, desk)?;
        }
        self.arrivals = arrivals;
        Ok(())
    }

    /// Takes arrivals of a lane in order; without `stopped` their slots receive again.
    fn take(
        &mut self,
        index: usize,
        arrivals: &mut Vec<Arrival>,
        stopped: bool,
        desk: &mut Desk<'_>,
    ) -> Result<()> {
        let is_message = |arrival: &Arrival| matches!(arrival, Arrival::Message { .. });
        if arrivals.iter().any(is_message) {
            // All that these messages tell of was written before them.
            desk.windows.flush()?;
        }
        for arrival in arrivals.drain(..) {
            let lane = &mut self.lanes[index];
            let Arrival::Message {
                slot,
                bytes,
                immediate,
            } = arrival
            else {
                lane.note(arrival, &mut self.ended);
                continue;
            };
            lane.received += 1;
            self.credits.take(index);
            // What the slot holds is taken before it receives again.
            let arrived = match (index, immediate) {
                (0, Some(code)) => Arrived::Flag(code),
                (0, None) => Arrived::Record(lane.block.received(slot, bytes as usize)),
                _ => Arrived::Stripe,
            };
            if !stopped && let Some(wire) = &mut lane.wire {
                // If it cannot, the queue pair is dying and will say so.
                let _ = wire.receive(&lane.block, slot);
            }
            let taken = match arrived {
                Arrived::Stripe => self.inbox.land(index, desk.windows).map(|()| Vec::new()),
                Arrived::Flag(code) => {
                    let raised = self.inbox.take_immediate(code, bytes, desk.windows);
                    raised.map(|()| Vec::new())
                }
                Arrived::Record(record) => {
                    let message = Message::Record {
                        bytes: record,
                        length: bytes as usize,
                    };
                    self.inbox.take(message, desk.windows)
                }
            };
            let taken = taken.map_err(|what| trouble::nonsense(desk.session.peer(), &what.0))?;
            for (lane, taken) in self.lanes.iter_mut().zip(taken) {
                lane.note_taken(taken);
            }
        }
        Ok(())
    }

    /// Tells the outbox what was acknowledged.
    pub(crate) fn settle(&mut self, outbox: &mut Outbox) {
        for command in self.ended.drain(..) {
            outbox.acknowledge(command);
        }
        // Also what recovery has learned to have arrived: no turn may come upon it.
        outbox.retire();
    }

    fn send(&mut self, desk: &mut Desk<'_>, budget: u64, turn: &mut Turn) {
        let mut filling = Filling {
            outbox: desk.outbox,
            said: &mut self.said,
            credits: &mut self.credits,
            message_max: self.message_max,
            is_stuck: false,
        };
        for lane in &mut self.lanes {
            let (bytes, more) = filling.fill(lane, budget);
            turn.bytes += bytes;
            turn.more |= more;
        }
        self.unfinished = turn.more || filling.is_stuck;
        if self.credits.is_due() && self.lanes[0].wire.is_some() && self.lanes[0].has_slot() {
            let record = Record {
                body: RecordBody::Credit,
                fences: Vec::new(),
                credits: self.credits.say(),
            };
            say(&mut self.lanes[0], &record, None);
        }
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            match lane.flush() {
                Ok(posted) => turn.moved |= posted,
                Err(broken) => turn.lost.push((index, broken)),
            }
        }
    }

    /// Says the last word, if all is said and a queue pair stands; what must wait for its
    /// acknowledgement.
    pub(crate) fn end(mut self, outbox: &Outbox) -> Option<Grave> {
        let first = self.lanes.first_mut()?;
        if first.wire.is_none() || !first.has_slot() || first.old.is_some() {
            return None;
        }
        let record = Record {
            body: RecordBody::Goodbye {
                totals: outbox.totals(),
            },
            fences: self.said.fences(),
            credits: Vec::new(),
        };
        say(first, &record, None);
        first.flush().ok()?;
        Some(Grave {
            lanes: self.lanes,
            since: Instant::now(),
        })
    }

    /// Whether the link goes on without a lane: nothing of this end is on it, and another is well.
    pub(crate) fn is_spare(&self, index: usize) -> bool {
        let mut others = (0..).zip(&self.lanes).filter(|(at, _)| *at != index);
        self.lanes[index].is_idle() && others.any(|(_, lane)| lane.is_well())
    }

    /// Whether a lane is well.
    pub(crate) fn is_any_well(&self) -> bool {
        self.lanes.iter().any(Lane::is_well)
    }

    /// Stops a lane whose queue pair is dead.
    pub(crate) fn stop(&mut self, lane: usize) {
        bring_up::retire(&mut self.lanes[lane]);
    }
}

/// The shortest stripe on so many pairs of rails. The collectives put at most one slot of their staging at once, between
/// CPUs 128 to 384 KiB: it must be worth all rails.
const fn least_stripe(pairs: usize) -> u64 {
    if pairs > 1 { 16 << 10 } else { 128 << 10 }
}

/// How a put goes out: over which lanes, and from which memory.
fn prepare(
    put: &Put,
    windows: &Windows,
    shared: &Arc<Shared>,
    striping: &Striping,
) -> (Shares, Option<Arc<Memory>>) {
    let shares = striping.share(put.total);
    let (address, bytes) = put.source.span(put.total);
    // Also what is short: the CPU cannot copy it.
    if let Some(device) = shared.registry.device(address, bytes) {
        return (shares, Some(device));
    }
    let short = put.total as usize <= Record::EAGER_MAX && shares == Shares::Whole;
    if short || !put.source.is_contiguous() {
        return (shares, None);
    }
    let memory = windows
        .source(address, bytes)
        .cloned()
        .or_else(|| shared.registry.find(address, bytes))
        .or_else(|| shared.register_once(address, bytes));
    (shares, memory)
}

/// The lanes of a link that is over, until the peer has heard its last word.
#[derive(Debug)]
pub(crate) struct Grave {
    lanes: Vec<Lane>,
    since: Instant,
}

impl Grave {
    /// Whether nothing is awaited any more.
    pub(crate) fn is_done(&mut self, now: Instant) -> bool {
        let mut ended = Vec::new();
        let Some(first) = self.lanes.first_mut() else {
            return true;
        };
        let mut arrivals = Vec::new();
        let collected = match &mut first.wire {
            Some(wire) => wire.collect(|arrival| arrivals.push(arrival)),
            None => return true,
        };
        for arrival in arrivals {
            first.note(arrival, &mut ended);
        }
        collected.is_err()
            || first.is_idle()
            || now.saturating_duration_since(self.since) > LAST_WORD
    }
}
