//! Builds a program step by step and keeps its derived numbers in step.

use crate::algorithms::{Layout, Shape};
use crate::ir::{Action, Blocks, Buffer, Op, Place, Program, Shares, Step, Value};

/// A program under construction.
pub(crate) struct Builder {
    program: Program,
    skew: u16,
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
                shares: Shares::Equal,
                scratch: Blocks::NONE,
                max_put_blocks: layout.put_blocks,
                max_skew: 0,
                windowed: false,
                steps: Vec::new(),
            },
            skew: 0,
        }
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

    /// All blocks of the message.
    pub(crate) fn all(&self) -> Blocks {
        Blocks::new(0, self.program.blocks)
    }

    /// The peers, nearest above first: no two ranks start with the same peer.
    pub(crate) fn peers_above(&self) -> impl Iterator<Item = u32> + use<> {
        let (rank, ranks) = (self.rank(), self.ranks());
        (1..ranks).map(move |distance| wrap(rank, distance, ranks))
    }

    /// The peers, nearest below first: the order in which puts by `peers_above` arrive.
    pub(crate) fn peers_below(&self) -> impl Iterator<Item = u32> + use<> {
        let (rank, ranks) = (self.rank(), self.ranks());
        (1..ranks).map(move |distance| wrap(rank, ranks - distance, ranks))
    }

    /// The skew of the steps that follow.
    pub(crate) fn skew(&mut self, skew: u16) -> &mut Self {
        self.skew = skew;
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

    pub(crate) fn finish(self) -> Program {
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
        });
    }

    fn note(&mut self, place: Place) {
        match place {
            Place::Local {
                buffer: Buffer::Scratch,
                blocks,
            } => self.program.scratch = self.program.scratch.hull(blocks),
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
