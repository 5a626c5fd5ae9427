//! A plan becomes commands: walks the program, leg by leg and piece by piece, and writes one batch for the stream
//! and one for each posted link.
//!
//! Lowering can stop after any step and go on later, so a long message needs no long batch.

mod fetch;
mod land;
mod point;
mod read;
mod show;

use std::collections::VecDeque;

use unisono_hal::{Batch, Call, CopyPieces, Reduce, Scale};
use unisono_plan::{Action, Blocks, Buffer, Op as PlanOp, Place, Step, Value, ir};

use super::op::Op;
use super::peer::{Lies, Own, Peer, Way, credit};
use super::place::{Resolved, Run, merged};
use super::pointed::Message;
use super::track::Deferred;
use super::unchecked::Unchecked;
use crate::reduction::{How, Reduction};
pub(super) use land::Lands;

/// A put of so many bytes is worth a link of its own.
const WORTH: u64 = 64 << 10;
/// Puts that go out together, at most.
const TOGETHER: usize = 16;

/// Commands that a batch holds at most before it is submitted.
pub(super) const BATCH: usize = 256;

/// Where in its program an op is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    counter: ir::ProgramCounter,
    /// Pieces whose input has been scaled.
    scaled: u64,
}

impl Cursor {
    pub(crate) fn is_start(&self) -> bool {
        self.counter == ir::ProgramCounter::START
    }
}

/// A wait in the stream: what an error names if it does not end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// The stream's command number, from 0.
    pub command: u64,
    pub peer: u32,
    /// `None` for a signal that an earlier call left owed.
    pub step: Option<u32>,
}

/// What lowering writes into, and what it has to know of its rank.
pub(crate) struct Lowering<'a> {
    pub own: Own,
    pub peers: &'a mut [Peer],
    /// Whether any peer is reached by a posted link.
    pub posted: bool,
    pub stream: &'a mut Batch,
    /// Commands written to the stream before this batch.
    pub emitted: u64,
    pub waiting: &'a mut VecDeque<Waiting>,
    /// The number of the op, to tell the first signal between two ranks.
    pub number: u64,
    /// Scratch of this rank, for all instances.
    pub scratch: u64,
    pub runs: &'a mut Vec<Run>,
    /// The step that is written, for errors.
    pub step: u32,
    /// Where signals wait for the copies of the puts that follow theirs; none where a core copies, one put
    /// after the other in any case.
    pub late: Option<&'a mut Vec<Late>>,
    /// Where what a posted link is to do waits for the stream, beside the main track.
    pub deferred: Option<&'a mut VecDeque<Deferred>>,
    /// Where the stream compares no words.
    pub unchecked: Option<&'a mut Unchecked>,
    /// Where puts may land at their places.
    pub lands: Option<&'a mut Lands>,
}

/// The signal of a put whose bytes are on their way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    to: u32,
    words: Option<[u64; 3]>,
}

/// How far lowering came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lowered {
    /// The op is fully written.
    All,
    /// The batch is full.
    Full,
    /// The rest hangs on what is known once the stream is past what was written: what a peer tells, how long something took.
    Untold,
}

impl Lowering<'_> {
    /// Writes commands from `cursor` on.
    pub(crate) fn run(&mut self, op: &Op, cursor: &mut Cursor) -> Lowered {
        if cursor.is_start() {
            op.before.iter().for_each(|mark| mark.write(self.stream));
            if let Some(aside) = &op.aside {
                self.stream.copy(aside.memory.base(), aside.of, aside.bytes);
            }
        }
        match op.message {
            Message::InWindow { address, .. } => {
                self.copy_message(op, address);
                return Lowered::Untold;
            }
            Message::Taken(took) => self.give_message_back(op, took),
            _ => match self.steps(op, cursor) {
                Lowered::All => {}
                not_all => return not_all,
            },
        }
        self.signal_late();
        self.await_taken(op);
        self.settle_all(op);
        op.after.iter().for_each(|mark| mark.write(self.stream));
        Lowered::All
    }

    /// Writes the steps of the program.
    fn steps(&mut self, op: &Op, cursor: &mut Cursor) -> Lowered {
        let (program, geometry) = (&op.planned.program, &op.planned.geometry);
        let pieces = geometry.pieces();
        while let Some((step, piece)) = program.seek(&mut cursor.counter, pieces) {
            if op.planned.scaled
                && cursor.scaled < pieces
                && cursor.scaled <= cursor.counter.round()
            {
                self.scale(op, cursor.scaled);
                cursor.scaled += 1;
            }
            if piece < geometry.pieces_of(&step.action, program.ranks) {
                let target = op.target.as_ref();
                if target.is_some_and(|told| told.holds(&step.action))
                    || self.hangs_on_message(op, &step.action)
                {
                    self.signal_late();
                    return Lowered::Untold;
                }
                let at = cursor.counter.step();
                self.together(op, &step, at, piece);
                self.fetch(op, &step, at, piece);
                self.land(op, &step, at, piece);
                self.step(op, &step, at.number(), piece);
            }
            program.pass(&mut cursor.counter);
            // Behind a step: each run comes further, and the first leaves the start.
            if self.stream.len() >= BATCH {
                self.signal_late();
                return Lowered::Full;
            }
        }
        Lowered::All
    }

    /// Before the first of several puts that follow each other: waits for the credits of all. Then their
    /// copies can follow each other, and a device sends over all of its links at once. The verifier proves
    /// that nobody waits for ever so.
    fn together(&mut self, op: &Op, first: &Step, mut at: ir::Cursor, piece: u64) {
        let is_first = self.late.as_ref().is_some_and(|late| late.is_empty());
        if !is_first || !self.is_large(op, first, piece) {
            return;
        }
        let program = &op.planned.program;
        let mut met = [u32::MAX; TOGETHER];
        let mut next = Some(*first);
        for place in 0..TOGETHER {
            let Some(step) = next else { break };
            let Action::Put { to, value } = step.action else {
                break;
            };
            let pieces = op.planned.geometry.pieces_of(&step.action, program.ranks);
            let here = step.skew == first.skew && piece < pieces;
            if !here || met.contains(&to) || !self.is_large(op, &step, piece) {
                break;
            }
            met[place] = to;
            self.step = at.number();
            let bytes = op.planned.packed(value.blocks(), piece);
            self.await_credits(to, self.peers[to as usize].rooms_of(&self.own, bytes));
            next = program.follow(&mut at);
        }
    }

    /// Whether a step is a put that is worth a link of its own.
    fn is_large(&self, op: &Op, step: &Step, piece: u64) -> bool {
        let Action::Put {
            to,
            value: Value::Copy(src),
        } = &step.action
        else {
            return false;
        };
        self.peers[*to as usize].is_written() && op.planned.packed(src.blocks(), piece) >= WORTH
    }

    fn await_credits(&mut self, to: u32, rooms: u32) {
        let target = to as usize;
        if let Some(credits) = self.peers[target].lacks_credits(&self.own, rooms) {
            self.note_wait(to);
            let beside = self.deferred.is_some();
            self.peers[target].await_credits(&self.own, self.stream, credits, beside);
        }
    }

    /// Writes the signals that wait.
    fn signal_late(&mut self) {
        if let Some(late) = &mut self.late {
            for Late { to, words } in late.drain(..) {
                self.peers[to as usize].signal_data(&self.own, self.stream, words);
            }
        }
    }

    fn step(&mut self, op: &Op, step: &Step, index: u32, piece: u64) {
        self.step = index;
        let is_more = self.late.as_ref().is_some_and(|late| {
            let to = match step.action {
                Action::Put { to, .. } => Some(to),
                _ => None,
            };
            late.len() < TOGETHER && late.iter().all(|late| Some(late.to) != to)
        });
        let is_large = is_more && self.is_large(op, step, piece);
        if !is_large {
            self.signal_late();
        }
        match &step.action {
            Action::Wait { from, .. } if self.peers[*from as usize].early => {
                self.peers[*from as usize].early = false;
            }
            Action::Wait { from, blocks } => self.await_data(op, *from, *blocks, piece),
            Action::Release { from } => {
                self.peers[*from as usize].lies = Lies::Here;
                let peer = &self.peers[*from as usize];
                let slot = peer.current_slot(&self.own);
                self.settle(slot, op.planned.packed(peer.current_blocks, piece));
                self.release(*from);
            }
            Action::Copy {
                src: Place::Slot { from, .. },
                ..
            } if self.peers[*from as usize].lies == Lies::Copied => {}
            Action::Copy { dst, src } => {
                let past = is_past(op, dst);
                let dst = self.resolve(op, dst, piece);
                match *src {
                    Place::Peer {
                        rank,
                        buffer,
                        blocks,
                    } if op.planned.reads => self.read(op, &dst, (rank, buffer, blocks), piece),
                    _ => {
                        let src = self.resolve(op, src, piece);
                        self.copy(op, &dst, &src, piece, past);
                    }
                }
            }
            action if op.target.as_ref().is_some_and(|told| told.leaves(action)) => {}
            Action::Reduce { dst, a, b, last } => {
                let past = is_past(op, dst);
                let dst = self.resolve(op, dst, piece);
                self.reduce(op, &dst, [a, b], [*last, past], piece);
            }
            Action::Put { to, value } => self.put(op, *to, value, piece, is_large),
        }
    }

    fn await_data(&mut self, op: &Op, from: u32, blocks: Blocks, piece: u64) {
        let wait = self.note_wait(from);
        let shown = op.planned.shows(from, blocks);
        let bytes = op.planned.packed(blocks, piece);
        let peer = &mut self.peers[from as usize];
        let words = (peer.compared != self.number).then(|| op.words_from(from));
        peer.compared = self.number;
        if let (Some(unchecked), Some(words)) = (&mut self.unchecked, words) {
            let flag = match shown {
                true => peer.shown_next(&self.own).flag,
                false => {
                    let flag = peer.next_data(&self.own);
                    peer.near.signal_host + self.own.arena.data_flag(from, flag)
                }
            };
            unchecked.expect(wait, flag, words);
        }
        peer.await_data(&self.own, self.stream, words, blocks, (bytes, shown));
        if words.is_some() {
            self.keep_ends(op, from);
        }
    }

    fn put(&mut self, op: &Op, to: u32, value: &Value, piece: u64, is_large: bool) {
        if op.planned.shows(self.own.rank, value.blocks()) {
            return self.show(op, to, value, piece);
        }
        let target = to as usize;
        let words = (self.peers[target].signed != self.number).then(|| op.words_to(to));
        self.peers[target].signed = self.number;
        let bytes = op.planned.packed(value.blocks(), piece);
        let room = self.peers[target].room(&self.own, bytes);
        let rooms = self.peers[target].rooms_now(&self.own, room);
        if self.peers[target].lacks_credits(&self.own, rooms).is_some() {
            // A wait for a peer that waits for what was not told.
            self.signal_late();
            self.await_credits(to, rooms);
        }
        let gathers = self.peers[target].gathers();
        let posted = gathers.is_some();
        self.runs.clear();
        match value {
            Value::Empty => {}
            Value::Copy(src) if gathers == Some(true) => {
                let src = self.resolve(op, src, piece);
                self.gather(op, &src, piece);
            }
            Value::Copy(src) => {
                let slot = self.peers[target].next_slot(&self.own, room);
                let src = self.resolve(op, src, piece);
                self.copy(op, &Resolved::packed(slot, src.blocks), &src, piece, false);
                self.runs.push(Run {
                    address: slot,
                    bytes,
                });
            }
            Value::Reduce { a, b, last } => {
                let slot = self.peers[target].next_slot(&self.own, room);
                let dst = Resolved::packed(slot, value.blocks());
                self.reduce(op, &dst, [a, b], [*last, false], piece);
                self.runs.push(Run {
                    address: slot,
                    bytes,
                });
            }
        }
        if words.is_some() {
            self.tell_ends(op, to);
            self.point(op, to);
        }
        if !posted
            && is_large
            && let Some(late) = &mut self.late
        {
            late.push(Late { to, words });
            return;
        }
        let peer = &mut self.peers[target];
        if !posted {
            peer.signal_data(&self.own, self.stream, words);
            return;
        }
        let after = self.emitted + self.stream.len() as u64;
        match &mut self.deferred {
            None => peer.post(&self.own, self.stream, self.runs, words),
            Some(deferred) => peer.puts(&self.own, self.runs, words, |_, put| {
                deferred.push_back(Deferred::new(after, to, put));
            }),
        }
    }

    fn release(&mut self, from: u32) {
        let peer = &mut self.peers[from as usize];
        if !peer.give_back(&self.own) {
            return;
        }
        let after = self.emitted + self.stream.len() as u64;
        match (&mut self.deferred, &peer.way) {
            (Some(deferred), Way::Posted(_)) => {
                deferred.push_back(Deferred::new(after, from, credit(&self.own)));
            }
            _ => peer.release(&self.own, self.stream),
        }
    }

    /// At the end of an op: no link may still read what it put.
    fn settle_all(&mut self, op: &Op) {
        let beside = self.deferred.is_some();
        let op = op.planned.program.op;
        self.settle_peers(|peer, own, stream| {
            // Beside the main track others have puts of their own.
            let is_own = match op {
                PlanOp::Send { to } => peer.rank == to,
                PlanOp::Recv { .. } => false,
                _ => true,
            };
            if is_own || !beside {
                peer.settle_all(own, stream);
            }
        });
    }

    /// The sources of a posted put, merged where they touch.
    fn gather(&mut self, op: &Op, src: &Resolved, piece: u64) {
        let mut before = 0;
        for index in 0..src.blocks.count {
            let bytes = src.bytes(&op.planned, index, piece);
            let address = src.address(&op.planned, index, piece, before);
            before += bytes;
            match self.runs.last_mut() {
                _ if bytes == 0 => {}
                Some(last) if last.address + last.bytes == address => last.bytes += bytes,
                _ => self.runs.push(Run { address, bytes }),
            }
        }
    }

    fn copy(&mut self, op: &Op, dst: &Resolved, src: &Resolved, piece: u64, past: bool) {
        merged(&op.planned, [dst, src], piece, |[dst, src], bytes| {
            if dst != src {
                self.settle(dst, bytes);
                self.stream.copy_strided(&CopyPieces {
                    dst,
                    src,
                    bytes,
                    repeat: 1,
                    dst_stride: 0,
                    src_stride: 0,
                    streaming: past,
                });
            }
        });
    }

    /// `last` is for complete values, `past` for those that go past the caches.
    fn reduce(
        &mut self,
        op: &Op,
        dst: &Resolved,
        operands: [&Place; 2],
        [last, past]: [bool; 2],
        piece: u64,
    ) {
        let planned = &op.planned;
        let [a, b] = [0, 1].map(|at| self.operand(op, operands[at as usize], at, piece));
        let divisor = if last { planned.divisor } else { 0 };
        let user = match &op.reduction {
            Some(Reduction(How::User(user))) => Some(user.raw()),
            _ => None,
        };
        merged(planned, [dst, &a, &b], piece, |[dst, a, b], bytes| {
            self.settle(dst, bytes);
            if let Some((function, context)) = user {
                self.stream.call(&Call {
                    function,
                    context,
                    dst,
                    a,
                    b,
                    elements: bytes / planned.element,
                    element_bytes: planned.element,
                });
                return;
            }
            self.stream.reduce(&Reduce {
                dst,
                a,
                b,
                elements: bytes / planned.element,
                repeat: 1,
                dst_stride: 0,
                a_stride: 0,
                b_stride: 0,
                dtype: planned.dtype,
                reduction: planned.reduction,
                divisor,
                streaming: past,
            });
        });
    }

    /// Multiplies one piece of the input by this rank's factor, before any step uses it.
    fn scale(&mut self, op: &Op, piece: u64) {
        let planned = &op.planned;
        let Some(factor) = op.factor() else {
            return;
        };
        let instance = self.scaled(op, piece);
        let buffer = Resolved::buffer(planned, op.input, self.own.rank, Buffer::In, Blocks::NONE);
        for block in 0..planned.program.blocks {
            // Blocks that are neighbours in the message, and not in a section of names.
            let one = Blocks::one(block);
            let source = buffer.with(one);
            let target = Resolved::scaled(instance, one);
            merged(planned, [&target, &source], piece, |[dst, src], bytes| {
                self.settle(dst, bytes);
                self.stream.scale(&Scale {
                    dst,
                    src,
                    elements: bytes / planned.element,
                    factor,
                    dtype: planned.dtype,
                });
            });
        }
    }

    /// Where one piece of the scaled input lies.
    fn scaled(&self, op: &Op, piece: u64) -> u64 {
        let instance = piece % u64::from(op.planned.program.scratch_instances());
        let before = op.planned.plan_scratch_bytes();
        self.scratch + before + instance * op.planned.scaled_instance_bytes()
    }

    /// Before `bytes` at `address` are overwritten: no posted put may still read them.
    fn settle(&mut self, address: u64, bytes: u64) {
        // Beside the main track nothing is overwritten but what callers gave to write.
        if self.deferred.is_none() {
            self.settle_peers(|peer, own, stream| {
                peer.settle(own, stream, address, address + bytes);
            });
        }
    }

    /// Lets each posted peer write waits for its link, and notes them.
    fn settle_peers(&mut self, settle: impl Fn(&mut Peer, &Own, &mut Batch)) {
        if !self.posted {
            return;
        }
        for peer in self.peers.iter_mut() {
            let before = self.stream.len();
            settle(peer, &self.own, self.stream);
            let waits = before..self.stream.len();
            self.waiting.extend(waits.map(|command| Waiting {
                command: self.emitted + command as u64,
                peer: peer.rank,
                step: Some(self.step),
            }));
        }
    }

    fn note_wait(&mut self, peer: u32) -> Waiting {
        let wait = Waiting {
            command: self.emitted + self.stream.len() as u64,
            peer,
            step: Some(self.step),
        };
        self.waiting.push_back(wait);
        wait
    }

    fn resolve(&self, op: &Op, place: &Place, piece: u64) -> Resolved {
        match *place {
            Place::Slot { from, blocks } => {
                let peer = &self.peers[from as usize];
                let address = peer.current_slot(&self.own);
                Resolved::part(&op.planned, address, peer.current_blocks, blocks, piece)
            }
            Place::Local {
                buffer: Buffer::Scratch,
                blocks,
            } => {
                let program = &op.planned.program;
                let instance = piece % u64::from(program.scratch_instances());
                let address = self.scratch + instance * op.planned.scratch_instance_bytes();
                Resolved::scratch(&op.planned, address, program.scratch, blocks, piece)
            }
            Place::Local {
                buffer: Buffer::In,
                blocks,
            } if op.planned.scaled => Resolved::scaled(self.scaled(op, piece), blocks),
            Place::Local { buffer, blocks } => {
                let address = match buffer {
                    Buffer::In => op.input,
                    _ => op.output,
                };
                Resolved::buffer(&op.planned, address, self.own.rank, buffer, blocks)
            }
            Place::Peer {
                rank,
                buffer,
                blocks,
            } => {
                let peer = op.peers[rank as usize];
                let address = match (buffer, &op.target) {
                    (Buffer::In, _) => peer.input,
                    (_, Some(told)) => told.output(),
                    (_, None) => peer.output,
                };
                Resolved::buffer(&op.planned, address, rank, buffer, blocks)
            }
        }
    }
}

/// Whether what is written to a place goes past the caches.
fn is_past(op: &Op, dst: &Place) -> bool {
    (op.planned.past.as_ref()).is_some_and(|past| past.takes(dst))
}
