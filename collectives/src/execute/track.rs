//! A track: an ordered run of calls on a stream of its own.
//!
//! A communicator's calls run on its main track. The messages of a group run on tracks beside it,
//! one for each direction between two ranks, so that none waits for another.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use unisono_abi::stream_can;
use unisono_hal::{Batch, Device, DeviceKind, Put, Queue, Stream};
use unisono_plan::Op as PlanOp;

use super::common::Common;
use super::direct::{Bound, Buffers, Direct, Handed, Pending, Ran, Running};
use super::lower::{Cursor, Lands, Late, Lowered, Lowering, Waiting};
use super::op::{Op, Planned};
use super::peer::{Way, pace_of};
use super::place::Run;
use super::pointed::Message;
use super::unchecked::Unchecked;
use crate::error::Result;
use crate::signature::Call;

/// Bytes that one poll moves before others have their turn.
pub(super) const BUDGET: u64 = 1 << 20;

/// A stream that was full is given more when it has finished so many commands, half of what it had, or as many as are left.
const ENOUGH: u64 = 64;

/// What a posted link is given once the stream has come so far.
pub(super) struct Deferred {
    /// The stream's command count.
    after: u64,
    peer: u32,
    put: Put,
}

pub(super) struct Track {
    pub stream: Stream,
    /// Commands that the stream has finished, as of the last poll.
    pub finished: u64,
    batch: Batch,
    /// The stream did not take all when it had finished so many commands.
    full_since: Option<u64>,
    cursor: Cursor,
    pub waiting: VecDeque<Waiting>,
    runs: Vec<Run>,
    /// Signals that wait for copies; none where a core copies.
    late: Option<Vec<Late>>,
    /// Not yet fully handed to the stream; the first may be on its way.
    pub queue: VecDeque<Op>,
    lowered: bool,
    /// The commands behind which is known what a peer tells, on which the rest of the op hangs.
    untold: Option<u64>,
    /// Handed over: the stream's command count at which each is complete.
    pub flight: VecDeque<(u64, Op)>,
    /// Commands given to the stream's batches so far.
    emitted: u64,
    /// The number of the op that is being lowered, or runs directly.
    number: u64,
    /// The commands with which it waits for streams of the user's, not yet passed.
    held: VecDeque<Range<u64>>,
    /// The first of the queue runs directly.
    direct: Option<Running>,
    /// A wait of that run is the stream's.
    handed: bool,
    /// Of a track beside the main one: what its stream has not come to yet. The main track's links
    /// wait for the stream by themselves, in its order; these must not hold up each other.
    deferred: Option<VecDeque<Deferred>>,
    /// Where the stream compares no words.
    unchecked: Option<Unchecked>,
    /// Where puts of the op that is lowered may land at their places.
    lands: Lands,
}

impl Track {
    /// The track of a communicator's calls.
    pub(super) fn main(stream: Stream, device: &Device) -> Self {
        let checks = device.info().streams_can(stream_can::CHECKS_WORDS);
        Self {
            stream,
            finished: 0,
            batch: super::new_batch(),
            full_since: None,
            cursor: Cursor::default(),
            waiting: VecDeque::new(),
            runs: Vec::new(),
            late: (device.info().kind != DeviceKind::Cpu).then(Vec::new),
            queue: VecDeque::new(),
            lowered: false,
            untold: None,
            flight: VecDeque::new(),
            emitted: 0,
            number: 0,
            held: VecDeque::new(),
            direct: None,
            handed: false,
            deferred: None,
            unchecked: (!checks).then(Unchecked::default),
            lands: Lands::default(),
        }
    }

    /// A track beside it.
    pub(super) fn beside(stream: Stream, device: &Device) -> Self {
        Self {
            deferred: Some(VecDeque::new()),
            ..Self::main(stream, device)
        }
    }

    /// Nothing queued and nothing in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.flight.is_empty()
    }

    /// The oldest op that is not complete.
    pub(super) fn current(&self) -> Option<&Op> {
        let flight = self.flight.iter().find(|(end, _)| *end > self.finished);
        flight.map(|(_, op)| op).or(self.queue.front())
    }

    pub(super) fn current_mut(&mut self) -> Option<&mut Op> {
        match self.flight.front_mut() {
            Some((_, op)) => Some(op),
            None => self.queue.front_mut(),
        }
    }

    pub(super) fn call(&self) -> Option<Call> {
        self.current().map(|op| op.call)
    }

    /// Lowers and submits as much as the stream takes; `links` is called where links may have
    /// something to take too.
    pub(super) fn feed(
        &mut self,
        common: &mut Common,
        links: impl Fn(&mut Common) -> Result<bool>,
    ) -> Result<Fed> {
        let mut moved = false;
        loop {
            if self.batch.is_empty() && !self.lowered && !self.lower(common)? {
                moved |= links(common)?;
                return Ok(Fed::All(moved));
            }
            if !self.batch.is_empty() && self.has_room() {
                match self.stream.submit(&mut self.batch) {
                    Ok(accepted) => moved |= accepted > 0,
                    Err(error) => return Ok(Fed::Failed(error)),
                }
                self.full_since = (!self.batch.is_empty()).then_some(self.finished);
            }
            links(common)?;
            if !self.batch.is_empty() {
                return Ok(Fed::All(moved));
            }
            if self.lowered {
                self.lowered = false;
                if let Some(op) = self.queue.pop_front() {
                    self.flight.push_back((self.emitted, op));
                }
            }
        }
    }

    /// Whether it is time to submit: the stream was not full before, or has done much of what it had since. Each try has it
    /// check all that is left, though it may take little.
    fn has_room(&self) -> bool {
        let left = self.batch.len() as u64;
        let since = |then| has_done_enough(then..self.finished, self.emitted - left, left);
        self.full_since.is_none_or(since)
    }

    /// Runs what can run directly. `None` if the stream is to be fed instead.
    pub(super) fn run_directly(&mut self, common: &mut Common) -> Result<Option<Fed>> {
        if self.direct.is_none() {
            let Some(op) = self.queue.front().filter(|_| self.can_run_directly(common)) else {
                return Ok(None);
            };
            self.number = common.number_next(&op.planned, false);
            common.prepare(&op.planned)?;
            let direct = op.planned.direct.as_ref();
            let due = direct.is_some_and(|direct| common.begin(&op.planned, direct));
            self.direct = Some(Running::new(due));
        }
        let was_handed = self.handed;
        if was_handed {
            match self.ends_handed() {
                Ok(true) => {}
                Ok(false) => return Ok(Some(Fed::All(false))),
                Err(error) => return Ok(Some(Fed::Failed(error))),
            }
        }
        Ok(Some(match self.go_on_directly(common) {
            Ran::Done => {
                self.direct = None;
                if let Some(op) = self.queue.pop_front() {
                    self.flight.push_back((self.emitted, op));
                }
                Fed::All(true)
            }
            Ran::Waits => Fed::All(was_handed),
            Ran::Moved => Fed::All(true),
            Ran::Failed(error) => Fed::Failed(*error),
            Ran::Wrong(error) => return Err(*error),
        }))
    }

    /// The peer that a direct run waits for.
    pub(super) fn awaited_directly(&self) -> Option<u32> {
        let (running, op) = (self.direct.as_ref()?, self.queue.front()?);
        running.waits_for(op.planned.direct.as_ref()?)
    }

    fn can_run_directly(&self, common: &Common) -> bool {
        common.cpu.is_some()
            && self.flight.is_empty()
            && self.deferred.is_none()
            && self.cursor.is_start()
            && !self.lowered
            && self.batch.is_empty()
            && self.queue.front().is_some_and(|op| {
                // Marks are for streams.
                op.planned.direct.is_some() && op.before.is_empty() && op.after.is_empty()
            })
    }

    /// Begins a direct run of a call that is not queued, behind which nothing is: its number, and whether what is owed
    /// must be made up first. `None`, and nothing was done, if it cannot run so.
    #[inline(always)]
    pub(super) fn begin_directly(
        &mut self,
        common: &mut Common,
        planned: &Arc<Planned>,
        direct: &Direct,
    ) -> Option<(u64, bool)> {
        if common.cpu.is_none() || !self.batch.is_empty() {
            return None;
        }
        if direct.scratch > common.scratch_bytes() {
            common.prepare(planned).ok()?;
        }
        self.number = common.number_next(planned, false);
        let due = common.begin(planned, direct);
        Some((self.number, due))
    }

    /// What has begun so goes on as an op.
    pub(super) fn go_on_as(&mut self, op: Op, running: Running) {
        self.queue.push_front(op);
        self.direct = Some(running);
    }

    fn go_on_directly(&mut self, common: &mut Common) -> Ran {
        let (Some(op), Some(mut running)) = (self.queue.front(), self.direct.take()) else {
            return Ran::Waits;
        };
        let Some(direct) = &op.planned.direct else {
            return Ran::Waits;
        };
        let bound = Bound {
            planned: &op.planned,
            direct,
            words: &op.words,
            number: self.number,
        };
        let buffers = Buffers {
            input: op.input,
            output: op.output,
        };
        let ran = running.run(&bound, buffers, common);
        self.direct = Some(running);
        ran
    }

    /// Before a thread sleeps: the stream waits in place of a direct run. It can be slept on, and
    /// says of a wait that ends badly why.
    pub(super) fn hand_over(&mut self, common: &mut Common) -> unisono_hal::Result<()> {
        let (Some(op), Some(running)) = (self.queue.front(), &mut self.direct) else {
            return Ok(());
        };
        let Some(direct) = op.planned.direct.as_ref().filter(|_| !self.handed) else {
            return Ok(());
        };
        self.batch.clear();
        let (own, batch, number) = (&common.own, &mut self.batch, self.number);
        let mut waits_for = None;
        let due = common.owed.first(&common.peers);
        running.hand_over(direct, due, |pending, step| match pending {
            Pending::Owed { from } => {
                waits_for = Some((from, step));
                let made_up = common.peers[from as usize].make_up(own, batch);
                common.owed.count -= u32::from(made_up);
                Handed::Again
            }
            Pending::Sources { to } => {
                waits_for = Some((to, step));
                common.peers[to as usize].settle_all(own, batch);
                Handed::Done
            }
            Pending::Credits { to, bytes, shown } => {
                let peer = &mut common.peers[to as usize];
                // Credits have no words. If that rank called something else it gives none: it is what is owed that says so.
                if peer.make_up(own, batch) {
                    waits_for = Some((to, None));
                    common.owed.count -= 1;
                    return Handed::Again;
                }
                waits_for = Some((to, step));
                let rooms = match shown {
                    true => peer.rooms_to_show(own, bytes),
                    false => peer.rooms_of(own, bytes),
                };
                match peer.lacks_credits(own, rooms) {
                    Some(credits) => peer.await_credits(own, batch, credits, true),
                    // There is a place for it, but none to send it from.
                    None => peer.settle_all(own, batch),
                }
                Handed::Again
            }
            Pending::Data {
                from,
                blocks,
                bytes,
                shown,
            } => {
                waits_for = Some((from, step));
                let peer = &mut common.peers[from as usize];
                let words = (peer.compared != number).then(|| op.words_from(from));
                peer.compared = number;
                peer.await_data(own, batch, words, blocks, (bytes, shown));
                Handed::Done
            }
        });
        if let Some((peer, step)) = waits_for.filter(|_| !self.batch.is_empty()) {
            self.waiting.push_back(Waiting {
                command: self.emitted,
                peer,
                step,
            });
            self.emitted += self.batch.len() as u64;
            self.handed = true;
            self.stream.submit(&mut self.batch)?;
        }
        Ok(())
    }

    /// Whether the stream has waited.
    fn ends_handed(&mut self) -> unisono_hal::Result<bool> {
        if !self.batch.is_empty() {
            self.stream.submit(&mut self.batch)?;
        }
        self.poll()?;
        if self.finished < self.emitted {
            return Ok(false);
        }
        self.handed = false;
        Ok(true)
    }

    /// Writes the next batch; false if there is nothing to lower.
    fn lower(&mut self, common: &mut Common) -> Result<bool> {
        if !self.is_told(common)? {
            return Ok(false);
        }
        let Some(op) = self.queue.front() else {
            return Ok(false);
        };
        // Commands that were taken still lie in the batch; forget them.
        self.batch.clear();
        if self.cursor.is_start() {
            if common.owed.count > 0 {
                // A batch of their own: the op has not begun, nor does it wait for a stream yet.
                common.make_up_in(self.emitted, &mut self.batch, &mut self.waiting);
                self.emitted += self.batch.len() as u64;
                return Ok(true);
            }
            self.number = common.number_next(&op.planned, self.deferred.is_some());
            common.answers.lowered();
            common.prepare(&op.planned)?;
            if common.posted {
                let is_alone = self.flight.is_empty() && self.deferred.is_none();
                self.lands.begin(op, is_alone);
            }
            if !op.before.is_empty() {
                let marks = op.before.len() as u64;
                self.held.push_back(self.emitted..self.emitted + marks);
            }
        }
        let scratch = common.scratch_base();
        let mut lowering = Lowering {
            own: common.own,
            peers: &mut common.peers,
            posted: common.posted,
            stream: &mut self.batch,
            emitted: self.emitted,
            waiting: &mut self.waiting,
            number: self.number,
            scratch,
            runs: &mut self.runs,
            late: self.late.as_mut(),
            step: 0,
            deferred: self.deferred.as_mut(),
            unchecked: self.unchecked.as_mut(),
            lands: common.posted.then_some(&mut self.lands),
        };
        let lowered = lowering.run(op, &mut self.cursor);
        self.emitted += self.batch.len() as u64;
        self.lowered = lowered == Lowered::All;
        self.untold = (lowered == Lowered::Untold).then_some(self.emitted);
        if self.lowered {
            self.cursor = Cursor::default();
        }
        Ok(true)
    }

    /// Whether a peer has told on what the rest of the op hangs: there is something to do, of which the stream does not know.
    pub(super) fn goes_on(&self) -> bool {
        self.untold.is_some_and(|after| self.finished >= after)
    }

    /// Whether nothing that a peer is to tell is waited for. Takes what it has told.
    fn is_told(&mut self, common: &mut Common) -> Result<bool> {
        let Some(after) = self.untold else {
            return Ok(true);
        };
        if self.finished < after {
            return Ok(false);
        }
        self.untold = None;
        let Some(op) = self.queue.front_mut() else {
            return Ok(true);
        };
        if let Some(target) = &mut op.target {
            target.tell(common.peers[target.root as usize].told(&common.own))?;
        } else if let PlanOp::Recv { from } = op.planned.program.op {
            let told = common.peers[from as usize].told(&common.own);
            common.peers[from as usize].hear(told);
            let bytes = op.planned.bytes_of_buffer();
            op.message = match &op.message {
                Message::InWindow { since, .. } => Message::Taken(pace_of(bytes, since.elapsed())),
                _ => Message::of(&common.windows, from, told, bytes)?,
            };
        }
        Ok(true)
    }

    /// Makes the stream go on.
    pub(super) fn poll(&mut self) -> unisono_hal::Result<bool> {
        let polled = self.stream.poll(BUDGET)?;
        self.finished = polled.completed;
        self.forget_waits();
        Ok(polled.moved)
    }

    /// Compares what peers called with what this rank did, where the stream has not.
    pub(super) fn compare_words(&mut self, rank: u32) -> Result<()> {
        match &mut self.unchecked {
            Some(unchecked) => unchecked.compare(rank, self.finished),
            None => Ok(()),
        }
    }

    /// After a failure: how far the stream came says which wait failed.
    pub(super) fn look(&mut self) {
        if let Ok(state) = self.stream.state() {
            self.finished = state.completed;
            self.forget_waits();
        }
    }

    fn forget_waits(&mut self) {
        let done = self.finished;
        while self.waiting.front().is_some_and(|w| w.command < done) {
            self.waiting.pop_front();
        }
        while self.held.front().is_some_and(|held| held.end <= done) {
            self.held.pop_front();
        }
    }

    /// Whether the oldest op has not begun, since a stream of the user's has not come to it.
    pub(super) fn is_held(&self) -> bool {
        let held = |end| {
            let first = self.held.front();
            first.is_some_and(|held| held.start <= self.finished && held.end <= end)
        };
        let flight = self.flight.iter().find(|(end, _)| *end > self.finished);
        if let Some((end, _)) = flight {
            return held(*end);
        }
        let begun = self.lowered || !self.cursor.is_start();
        match self.queue.front() {
            // What is owed may be made up for before it.
            Some(op) if !begun => !op.before.is_empty() && self.emitted <= self.finished,
            _ => held(u64::MAX),
        }
    }

    /// Whether the stream has taken all that was called.
    pub(super) fn is_handed_over(&self) -> bool {
        self.queue.is_empty()
    }

    /// Gives the links what the stream has come to.
    pub(super) fn post(&mut self, common: &mut Common) {
        let Some(deferred) = &mut self.deferred else {
            return;
        };
        while let Some(first) = deferred.front()
            && first.after <= self.finished
        {
            if let Some(Deferred { peer, put, .. }) = deferred.pop_front()
                && let Way::Posted(posted) = &mut common.peers[peer as usize].way
            {
                posted.batch.put(&put);
            }
        }
    }

    /// Takes out the ops that are complete; the number of them.
    pub(super) fn retire(&mut self, rank: u32) -> Result<u64> {
        let mut count = 0;
        while let Some((end, op)) = self.flight.front()
            && *end <= self.finished
        {
            op.check(rank)?;
            self.flight.pop_front();
            count += 1;
        }
        Ok(count)
    }

    /// Drops what was not handed to the stream.
    pub(super) fn drop_rest(&mut self) {
        // An op that has begun keeps its buffers until the stream is drained.
        if (self.lowered || !self.cursor.is_start() || self.direct.take().is_some())
            && let Some(op) = self.queue.pop_front()
        {
            self.flight.push_back((u64::MAX, op));
        }
        self.queue.clear();
        (self.untold, self.full_since) = (None, None);
        self.batch.clear();
        self.waiting.clear();
        self.held.clear();
        if let Some(unchecked) = &mut self.unchecked {
            unchecked.clear();
        }
        if let Some(deferred) = &mut self.deferred {
            deferred.clear();
        }
    }
}

/// What feeding a stream came to.
pub(super) enum Fed {
    /// It has all that it takes; whether it took something.
    All(bool),
    /// It failed.
    Failed(unisono_hal::Error),
}

impl Deferred {
    /// A put for the link to `peer`, after the stream's first `after` commands.
    pub(super) fn new(after: u64, peer: u32, put: Put) -> Self {
        Self { after, peer, put }
    }
}

/// Whether a stream that was full has `done` so much since, of what it had `accepted` in all, that more of the commands
/// that are `left` may go in.
fn has_done_enough(done: Range<u64>, accepted: u64, left: u64) -> bool {
    let had = accepted.saturating_sub(done.start);
    let enough = had.div_ceil(2).min(left).min(ENOUGH);
    done.end - done.start >= enough
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_stream_is_given_more_when_it_has_done_much_and_at_last_when_it_has_done_all() {
        // It had 700 commands of 1000 to do, and 200 are left.
        let after = |done| has_done_enough(300..300 + done, 1000, 200);
        assert!(!after(0) && !after(ENOUGH - 1) && after(ENOUGH));
        // Few are left.
        assert!(has_done_enough(300..303, 1000, 3));
        // One that takes few: half of them, and all however few there were.
        for had in 1..2 * ENOUGH {
            let after = |done| has_done_enough(5..5 + done, 5 + had, 1000);
            assert!(after(had), "{had}");
            assert_eq!(after(0), had == 0);
            assert_eq!(
                (0..=had).find(|done| after(*done)),
                Some(had.div_ceil(2)),
                "{had}"
            );
        }
    }
}
