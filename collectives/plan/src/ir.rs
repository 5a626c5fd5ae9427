//! The plan IR: the program of one rank.
//!
//! # Message, blocks and pieces
//!
//! The *message* of an operation is: all_reduce, broadcast, reduce, send and recv, the `count`
//! elements; all_gather and gather, the whole output; reduce_scatter and scatter, the whole input;
//! all_to_all, input and output, one after the other; barrier, nothing. It is divided into
//! [`Program::blocks`] *blocks* by [`Program::shares`]. Blocks hold whole elements, so they may
//! differ by one element and may be empty. A place always names blocks by their number in the
//! message, also in a buffer that holds only some of them ([`Program::held`]): `In` of all_gather
//! and `Out` of reduce_scatter hold the own block alone.
//!
//! In all_to_all over `p` ranks, block `d` is what goes to rank `d`, block `p + s` what comes from
//! rank `s`: `In` holds the first half of the message, `Out` the second. The two halves may be cut
//! in different ways, and differently on each rank: a rank knows its own row and column of the
//! table of sizes and no more. So block `p + s` on rank `d` has the size of block `d` on rank `s`,
//! and nothing else is known of sizes, unless all are equal.
//!
//! A large message is cut into `P` *pieces*. Piece `r` of the message is the `r`-th sub-range of
//! *every* block, so that a piece is a small message with the same blocks, and pieces are
//! independent of each other. A place of several blocks is, in one piece, a strided set in a
//! user's buffer, and is packed without gaps, in block order, in a slot and in scratch.
//! [`crate::Geometry`] computes all of this.
//!
//! # Execution
//!
//! ```text
//! for round in 0 .. P + max_skew {
//!     for step in steps {
//!         piece = round - step.skew;
//!         if 0 <= piece < P { run step on piece }
//!     }
//! }
//! ```
//!
//! The skew gives software pipelining: work on one piece fills the time in which another piece
//! travels. Steps run in order; a step may start when the one before it has taken effect.
//!
//! # Channels
//!
//! Each ordered pair of ranks has a *channel*: a first-in first-out queue of `D` slots, each of
//! which holds one put. Every program in this crate runs with any `D >= MIN_SLOTS`
//! ([`MIN_SLOTS`]), and its result does not depend on `D`.
//!
//! - [`Action::Put`] waits for a free slot, writes the value into it and signals.
//! - [`Action::Wait`] waits for the next put from a peer and makes it the current
//!   [`Place::Slot`] of that peer. At most one slot of a peer is current at a time.
//! - [`Action::Release`] gives the current slot of a peer back; it can't be read any more.
//!
//! A put of [`Value::Empty`] is a bare signal. It takes a slot too, so that signals and data stay
//! in one order, and it is waited for and released like any other.
//!
//! # Rules that every program keeps, and that the verifier checks
//!
//! - *In place.* `In` and `Out` may be the same memory in the way of MPI and NCCL: all_reduce,
//!   broadcast, reduce and all_to_all `in == out`, all_gather and gather
//!   `in == out + rank * count`, reduce_scatter and scatter `out == in + rank * count`. So block
//!   `b` of `In` is block `b` of `Out` wherever both exist; in all_to_all, block `p + b`.
//!   A copy of a place onto itself does nothing and should be skipped. The destination of a
//!   reduction may be one of its operands, exactly; it never overlaps one partly.
//! - *Everybody is heard.* With more than one rank, every rank of a collective waits for some
//!   peer. Hence a rank that called another operation, or another root, exchanges a signature with
//!   a rank that did not. When an operation completes on a rank, had entered it:
//!
//!   | | on the root | elsewhere |
//!   |---|---|---|
//!   | all_reduce, reduce_scatter, all_gather, all_to_all, barrier | | every rank |
//!   | broadcast, scatter | every rank | the root |
//!   | reduce, gather | every rank | some peer |
//!
//!   That is why the receivers of a broadcast or scatter acknowledge, and why whoever collects in
//!   a reduce or gather signals to those that send to it as it enters.
//! - *Bits.* All ranks end with the same expression tree for a block, so with the same bits.
//!   `a (+) b` is written in the order of its operands; it rounds once.
//! - *Windows.* A program with [`Place::Peer`] may touch a peer's memory only between a signal
//!   that this peer sent in this operation and a signal that this peer waits for before it ends.

use std::fmt;
use std::sync::Arc;

pub use crate::op::{Op, OpKind, UnknownOp};

/// The fewest slots of a channel with which every program runs.
pub const MIN_SLOTS: u32 = 2;

/// Memory of one rank that a program names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Buffer {
    /// The caller's input. Written only where it is also the output (in place).
    In,
    /// The caller's output.
    Out,
    /// The library's own memory, with undefined contents at the start of each piece.
    ///
    /// It has the same blocks as the message, but only those of [`Program::scratch`] need memory,
    /// and only for `max_skew + 1` pieces: piece `r` may use instance `r % (max_skew + 1)`.
    Scratch,
}

/// A contiguous range of blocks of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// The first block.
    pub first: u32,
    /// How many blocks.
    pub count: u32,
}

impl Blocks {
    /// No block.
    pub const NONE: Blocks = Blocks { first: 0, count: 0 };

    /// `count` blocks from `first` on.
    #[must_use]
    pub const fn new(first: u32, count: u32) -> Self {
        Self { first, count }
    }

    /// One block.
    #[must_use]
    pub const fn one(block: u32) -> Self {
        Self::new(block, 1)
    }

    /// The block after the last one.
    #[must_use]
    pub const fn end(self) -> u32 {
        self.first + self.count
    }

    /// Whether there is no block in the range.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.count == 0
    }

    /// Whether `other` lies within this range. An empty range lies within any.
    #[must_use]
    pub const fn contains(self, other: Blocks) -> bool {
        other.is_empty() || (self.first <= other.first && other.end() <= self.end())
    }

    /// The block numbers.
    pub fn iter(self) -> std::ops::Range<u32> {
        self.first..self.end()
    }

    /// The smallest range that holds both.
    #[must_use]
    pub fn hull(self, other: Blocks) -> Blocks {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let first = self.first.min(other.first);
        Blocks::new(first, self.end().max(other.end()) - first)
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            0 => f.write_str("[]"),
            1 => write!(f, "[{}]", self.first),
            _ => write!(f, "[{}..{}]", self.first, self.end()),
        }
    }
}

/// Where an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// A buffer of this rank.
    Local {
        /// Which buffer.
        buffer: Buffer,
        /// Which blocks of it.
        blocks: Blocks,
    },
    /// The current slot of a channel to this rank. It can be read only.
    Slot {
        /// The rank that put it.
        from: u32,
        /// Which blocks of those that the put holds; see [`Action::Wait`].
        blocks: Blocks,
    },
    /// A buffer of a peer, which must be a window. Windowed programs only, mapped links only.
    Peer {
        /// The peer.
        rank: u32,
        /// Which buffer: never scratch.
        buffer: Buffer,
        /// Which blocks of it.
        blocks: Blocks,
    },
}

impl Place {
    /// The blocks that the place names; they give its size.
    #[must_use]
    pub fn blocks(self) -> Blocks {
        match self {
            Place::Local { blocks, .. }
            | Place::Slot { blocks, .. }
            | Place::Peer { blocks, .. } => blocks,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Local { buffer, blocks } => write!(f, "{buffer:?}{blocks}"),
            Place::Slot { from, blocks } => write!(f, "Slot({from}){blocks}"),
            Place::Peer {
                rank,
                buffer,
                blocks,
            } => write!(f, "Peer({rank}).{buffer:?}{blocks}"),
        }
    }
}

/// What a put carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Value {
    /// Nothing: a bare signal.
    Empty,
    /// The contents of a place.
    Copy(Place),
    /// `a (+) b`, reduced on the way into the slot. Both name the same blocks.
    Reduce {
        /// The left operand.
        a: Place,
        /// The right operand.
        b: Place,
        /// As in [`Action::Reduce`].
        last: bool,
    },
}

impl Value {
    /// The blocks that the put holds.
    #[must_use]
    pub fn blocks(self) -> Blocks {
        match self {
            Value::Empty => Blocks::NONE,
            Value::Copy(place) | Value::Reduce { a: place, .. } => place.blocks(),
        }
    }
}

/// One thing that a rank does with one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// `dst = src`. Both name the same blocks; in all_to_all blocks of the same sizes.
    Copy {
        /// A local or a peer's place.
        dst: Place,
        /// Any place.
        src: Place,
    },
    /// `dst = a (+) b`, in this order, rounded to the element type.
    Reduce {
        /// A local or a peer's place. It may be exactly `a` or `b`.
        dst: Place,
        /// The left operand.
        a: Place,
        /// The right operand.
        b: Place,
        /// The result is the operation's complete value: what `avg` divides.
        last: bool,
    },
    /// Waits for a free slot of the channel to `to`, writes the value into it, signals.
    Put {
        /// The receiving rank.
        to: u32,
        /// What the slot will hold.
        value: Value,
    },
    /// Waits for the next put from a rank and makes it that rank's current slot.
    Wait {
        /// The rank that puts.
        from: u32,
        /// What the put holds: exactly the blocks of its value, none for a bare signal. In
        /// all_to_all the two sides may know them by different numbers.
        blocks: Blocks,
    },
    /// Gives the current slot of a rank back to it.
    Release {
        /// The rank that put it.
        from: u32,
    },
}

impl Action {
    /// In an all_to_all over `ranks` ranks, the block that the action is about: what decides in
    /// how many pieces it runs, where blocks have sizes of their own.
    #[must_use]
    pub fn subject(self, ranks: u32) -> u32 {
        match self {
            Action::Put { to, .. } => to,
            Action::Wait { from, .. } | Action::Release { from } => ranks.saturating_add(from),
            Action::Copy { dst, src } => match src {
                Place::Slot { from, .. } => ranks.saturating_add(from),
                _ => dst.blocks().first,
            },
            Action::Reduce { dst, .. } => dst.blocks().first,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = |last: bool| if last { " (last)" } else { "" };
        match *self {
            Action::Copy { dst, src } => write!(f, "{dst} = {src}"),
            Action::Reduce { dst, a, b, last } => write!(f, "{dst} = {a} + {b}{}", mark(last)),
            Action::Put { to, value } => match value {
                Value::Empty => write!(f, "put {to}: signal"),
                Value::Copy(place) => write!(f, "put {to}: {place}"),
                Value::Reduce { a, b, last } => write!(f, "put {to}: {a} + {b}{}", mark(last)),
            },
            Action::Wait { from, blocks } => write!(f, "wait {from}: {blocks}"),
            Action::Release { from } => write!(f, "release {from}"),
        }
    }
}

/// An action and the pipeline stage in which it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// What to do.
    pub action: Action,
    /// How many rounds behind the newest piece.
    pub skew: u16,
}

/// How the message is divided into blocks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Shares {
    /// All blocks equal, up to one element.
    #[default]
    Equal,
    /// Block `b` gets the part of the message between entries `b - 1` and `b`, over the last
    /// entry: rational shares with one common denominator. Never decreasing, last entry not zero.
    Cumulative(Arc<[u64]>),
}

/// What one rank does for one operation.
///
/// The step list is the whole program; the other numbers can be derived from it and are here so
/// that an executor needs no pass over the steps to size its memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    /// The operation, as this rank calls it.
    pub op: Op,
    /// The rank whose program this is.
    pub rank: u32,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Blocks of the message; at least 1.
    pub blocks: u32,
    /// Sizes of the blocks.
    pub shares: Shares,
    /// The blocks of [`Buffer::Scratch`] that need memory.
    pub scratch: Blocks,
    /// The largest number of blocks in one put, or in one access to a peer's window, of *any*
    /// rank: it decides the number of pieces, on which all ranks must agree.
    ///
    /// 0 where nothing but signals travels.
    pub max_put_blocks: u32,
    /// The largest skew of a step.
    pub max_skew: u16,
    /// Whether the program names [`Place::Peer`].
    pub windowed: bool,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl Program {
    /// The blocks that a buffer of this rank holds; see [`Op::holds`].
    #[must_use]
    pub fn holds(&self, buffer: Buffer) -> Blocks {
        self.held(buffer, self.rank)
    }

    /// The blocks that a buffer of a rank holds.
    ///
    /// Every part of the message ([`Op::parts`]) has as many blocks as the others.
    #[must_use]
    pub fn held(&self, buffer: Buffer, rank: u32) -> Blocks {
        let parts = self.op.holds(buffer, rank, self.ranks);
        let each = self.blocks / self.op.parts(self.ranks).max(1);
        Blocks::new(parts.start * each, (parts.end - parts.start) * each)
    }

    /// How many instances of the scratch blocks must exist: one for each piece in flight.
    #[must_use]
    pub fn scratch_instances(&self) -> u32 {
        u32::from(self.max_skew) + 1
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} rank {} of {}: {} blocks, {} steps, skew up to {}",
            self.op,
            self.rank,
            self.ranks,
            self.blocks,
            self.steps.len(),
            self.max_skew
        )?;
        for (index, step) in self.steps.iter().enumerate() {
            writeln!(f, "{index:4} ~{} {}", step.skew, step.action)?;
        }
        Ok(())
    }
}
