//! Builds a program step by step and keeps its derived numbers in step.

use std::ops::Range;
use std::sync::Arc;

use crate::algorithms::{Layout, Runs, Shape};
use crate::ir::{Action, Blocks, Buffer, Drift, Loop, Op, Place, Program, Shares, Step, Value};

/// A program under construction.
pub(crate) struct Builder {
    program: Program,
    turns: bool,
    runs: Runs,
    skew: u16,
    /// Whether a leg begins with the next step.
    begins: bool,
    /// What the steps of the loop under construction gain with each iteration.
    drift: Drift,
    /// How often the steps under construction are repeated.
    times: u32,
}

impl Builder {
    /// An empty program for a message of equal blocks.
    pub(crate) fn new(shape: &Shape, layout: Layout) -> Self {
        Self {
            program: Program {
                op: shape.op,
                rank: shape.rank,
                ranks: shape.ranks,
                blocks: layout.blocks,
                section: match shape.op {
                    // What goes and what comes.
                    Op::AllToAll => layout.blocks / 2,
                    _ => layout.blocks,
                },
                shares: Shares::Equal,
                names: None,
                order: None,
                scratch: Blocks::NONE,
                max_put_blocks: layout.put_blocks,
                max_skew: 0,
                windowed: false,
                steps: Vec::new(),
                loops: Vec::new(),
            },
            turns: shape.turns,
            runs: Runs::NONE,
            skew: 0,
            begins: false,
            drift: Drift::NONE,
            times: 1,
        }
    }

    /// For ranks that are near each other in such runs.
    pub(crate) fn in_runs(self, runs: Runs) -> Self {
        Self { runs, ..self }
    }

    /// Which ranks are near each other.
    pub(crate) fn runs(&self) -> Runs {
        self.runs
    }

    /// [`Shape::turns`].
    pub(crate) fn turns(&self) -> bool {
        self.turns
    }

    /// Blocks that are not equal, or whose names are not their numbers.
    pub(crate) fn cut(&mut self, section: u32, shares: Shares, names: Option<Arc<[u32]>>) {
        if let Shares::Within { ends, .. } | Shares::Cumulative(ends) = &shares {
            self.program.blocks = ends.len() as u32;
        }
        self.program.section = section;
        self.program.shares = shares;
        self.program.names = names;
    }

    /// The rank whose program this is.
    pub(crate) fn rank(&self) -> u32 {
        self.program.rank
    }

    /// The operation, as this rank calls it.
    pub(crate) fn op(&self) -> Op {
        self.program.op
    }

    /// Ranks of the communicator.
    pub(crate) fn ranks(&self) -> u32 {
        self.program.ranks
    }

    /// The blocks of a part of the message, by their numbers.
    pub(crate) fn part(&self, part: u32) -> Range<u32> {
        self.program.part(part)
    }

    /// All blocks of the message.
    pub(crate) fn all(&self) -> Blocks {
        Blocks::new(0, self.program.blocks)
    }

    /// The rank `distance` above this one.
    pub(crate) fn above(&self, distance: u32) -> u32 {
        wrap(self.rank(), distance, self.ranks())
    }

    /// The rank `distance` below this one.
    pub(crate) fn below(&self, distance: u32) -> u32 {
        wrap(self.rank(), self.ranks() - distance, self.ranks())
    }

    /// What `body` adds, for every peer, nearest above first: no two ranks start with the same
    /// peer. The body is written for the nearest one; ranks drift, and blocks if it says so.
    pub(crate) fn peers_above(&mut self, body: impl FnOnce(&mut Self, u32)) {
        self.peers_up(1, self.ranks() - 1, body);
    }

    /// The same, nearest below first: the order in which puts by `peers_above` arrive.
    pub(crate) fn peers_below(&mut self, body: impl FnOnce(&mut Self, u32)) {
        self.peers_down(1, self.ranks() - 1, body);
    }

    /// What `body` adds, for `count` peers, the first at this distance above.
    pub(crate) fn peers_up(
        &mut self,
        distance: u32,
        count: u32,
        body: impl FnOnce(&mut Self, u32),
    ) {
        if count > 0 {
            let peer = self.above(distance);
            self.repeat(count, |b| body(b.drift(1, 0), peer));
        }
    }

    /// What `body` adds, for `count` peers, the first at this distance below.
    pub(crate) fn peers_down(
        &mut self,
        distance: u32,
        count: u32,
        body: impl FnOnce(&mut Self, u32),
    ) {
        if count > 0 {
            let (peer, down) = (self.below(distance), self.ranks() - 1);
            self.repeat(count, |b| body(b.drift(down, 0), peer));
        }
    }

    /// Repeats what `body` adds. A loop is never in another.
    pub(crate) fn repeat(&mut self, times: u32, body: impl FnOnce(&mut Self)) {
        if times == 0 {
            return;
        }
        let first = self.program.steps.len();
        self.times = times;
        body(self);
        (self.times, self.drift) = (1, Drift::NONE);
        let len = self.program.steps.len() - first;
        if times > 1 && len > 0 {
            let (first, len) = (first as u32, len as u32);
            self.program.loops.push(Loop { first, len, times });
        }
    }

    /// How far the steps that follow in this loop go on with each iteration: ranks, and blocks.
    pub(crate) fn drift(&mut self, peer: u32, block: u32) -> &mut Self {
        self.drift = Drift {
            to: peer,
            from: peer,
            block,
        };
        self
    }

    /// The skew of the steps that follow.
    pub(crate) fn skew(&mut self, skew: u16) -> &mut Self {
        self.skew = skew;
        self
    }

    /// The next step begins a leg.
    pub(crate) fn leg(&mut self) -> &mut Self {
        self.begins = true;
        self
    }

    /// The blocks of the steps that follow drift as the ranks do: up or down by one.
    pub(crate) fn with_blocks(&mut self) -> &mut Self {
        self.drift.block = match self.drift.to {
            0 => 0,
            1 => 1,
            _ => self.program.section - 1,
        };
        self
    }

    /// What the steps that follow read does not drift with the peers to which they put.
    pub(crate) fn same_source(&mut self) -> &mut Self {
        self.drift.from = 0;
        self
    }

    pub(crate) fn put(&mut self, to: u32, value: Value) {
        self.push(Action::Put { to, value });
    }

    pub(crate) fn signal(&mut self, to: u32) {
        self.put(to, Value::Empty);
    }

    pub(crate) fn wait(&mut self, from: u32, blocks: Blocks) {
        self.push(Action::Wait { from, blocks });
    }

    /// Waits for a bare signal and gives its slot back.
    pub(crate) fn hear(&mut self, from: u32) {
        self.wait(from, Blocks::NONE);
        self.release(from);
    }

    /// Waits for blocks from a rank and copies them to the output.
    pub(crate) fn receive(&mut self, from: u32, blocks: Blocks) {
        self.wait(from, blocks);
        self.copy(out(blocks), slot(from, blocks));
        self.release(from);
    }

    pub(crate) fn release(&mut self, from: u32) {
        self.push(Action::Release { from });
    }

    pub(crate) fn copy(&mut self, dst: Place, src: Place) {
        self.push(Action::Copy { dst, src });
    }

    pub(crate) fn reduce(&mut self, dst: Place, a: Place, b: Place, last: bool) {
        self.push(Action::Reduce { dst, a, b, last });
    }

    /// Writes a value to a local place.
    pub(crate) fn store(&mut self, dst: Place, value: Value) {
        match value {
            Value::Empty => {}
            Value::Copy(src) => self.copy(dst, src),
            Value::Reduce { a, b, last } => self.reduce(dst, a, b, last),
        }
    }

    pub(crate) fn finish(mut self) -> Program {
        self.program.steps.shrink_to_fit();
        self.program.loops.shrink_to_fit();
        self.program
    }

    fn push(&mut self, action: Action) {
        match action {
            Action::Copy { dst, src } => {
                self.note(dst);
                self.note(src);
            }
            Action::Reduce { dst, a, b, .. } => {
                self.note(dst);
                self.note(a);
                self.note(b);
            }
            Action::Put { value, .. } => match value {
                Value::Empty => {}
                Value::Copy(src) => self.note(src),
                Value::Reduce { a, b, .. } => {
                    self.note(a);
                    self.note(b);
                }
            },
            Action::Wait { .. } | Action::Release { .. } => {}
        }
        self.program.max_skew = self.program.max_skew.max(self.skew);
        self.program.steps.push(Step {
            action,
            skew: self.skew,
            begins: std::mem::take(&mut self.begins),
            drift: if self.times > 1 {
                self.drift
            } else {
                Drift::NONE
            },
        });
    }

    fn note(&mut self, place: Place) {
        match place {
            Place::Local {
                buffer: Buffer::Scratch,
                blocks,
            } => {
                let (section, drift) = (self.program.section, self.drift.block);
                let times = if drift == 0 { 1 } else { self.times };
                for iteration in 0..times {
                    let by = u64::from(drift) * u64::from(iteration) % u64::from(section);
                    let used = blocks.shifted(by as u32, section).within(section);
                    self.program.scratch = self.program.scratch.hull(used);
                }
            }
            Place::Peer { .. } => self.program.windowed = true,
            Place::Local { .. } | Place::Slot { .. } => {}
        }
    }
}

/// `(rank + distance) mod ranks`, for `distance <= ranks`.
pub(crate) fn wrap(rank: u32, distance: u32, ranks: u32) -> u32 {
    ((u64::from(rank) + u64::from(distance)) % u64::from(ranks)) as u32
}

pub(crate) fn input(blocks: Blocks) -> Place {
    local(Buffer::In, blocks)
}

pub(crate) fn out(blocks: Blocks) -> Place {
    local(Buffer::Out, blocks)
}

pub(crate) fn local(buffer: Buffer, blocks: Blocks) -> Place {
    Place::Local { buffer, blocks }
}

pub(crate) fn slot(from: u32, blocks: Blocks) -> Place {
    Place::Slot { from, blocks }
}

pub(crate) fn peer(rank: u32, buffer: Buffer, blocks: Blocks) -> Place {
    Place::Peer {
        rank,
        buffer,
        blocks,
    }
}
