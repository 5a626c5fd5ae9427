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
//! Blocks have *names*: their numbers in the message, unless [`Program::names`] says otherwise. Names
//! count modulo [`Program::section`] within their section, so that a set of blocks may go over the
//! end of a section and on at its start ([`Blocks`]).
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
//! for leg in legs {
//!     for round in 0 .. P + max_skew {
//!         for step in leg {
//!             piece = round - step.skew;
//!             if 0 <= piece < P { run step on piece }
//!         }
//!     }
//! }
//! ```
//!
//! Most programs are one *leg*: a piece goes through all steps, and the next one follows. Where a step [begins
//! one](Step::begins), all pieces are through what comes before it. So a rank may be done with one peer, piece by piece,
//! before it turns to another. [`Program::seek`] is this loop.
//!
//! Equal steps for one peer after the other are written once, as a [`Loop`]: in its `i`-th iteration
//! the peers and blocks that a step names are `i` times its [`Drift`] further on. So the program of
//! a ring or of a mesh is as short for thousands of ranks as for two. [`Program::at`] gives the
//! steps one by one, with the drift applied.
//!
//! The skew gives software pipelining: work on one piece fills the time in which another piece
//! travels. Steps run in order; a step may start when the one before it has taken effect. Pieces of one leg are not in
//! flight with those of the next.
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
//! *Shown puts.* Where all ranks map each other's memory, those of an algorithm that [shows
//! them](crate::Algorithm::shows_puts) need not be written once for each receiver. There every put of the whole message (in
//! all_to_all: of the whole input), or of the sender's own block of it, and every signal of a barrier is one of a group: the same value to each of the other
//! ranks, one right after the other. An
//! executor may write the value once, in a slot of its own memory, after waiting for a free slot of all the channels, and
//! signal once that it is there, where all look. The slots and signals of these are counted by themselves, one a group: as
//! each channel has one put of each group and holds at most `D`, the slot of a group is free when that of the `D`-th next
//! one is needed. (So it is with as many flags, and places for short ones, as an executor lets a channel hold of these.)
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
//!   | broadcast, scatter | every rank to which it puts something | the root |
//!   | reduce, gather | every rank | some peer |
//!
//!   In a broadcast or scatter every rank is heard by some peer, too. That is why their receivers
//!   acknowledge, and why whoever collects in a reduce or gather signals to those that send to it as
//!   it enters. An executor may leave a wait for a bare signal at a rooted operation's end to a later
//!   operation, if it then still compares. Of a program [without answers](Program::unanswered) who only sends hears of
//!   nobody; each of the others hears of those from which it gets something.
//! - *Bits.* All ranks end with the same expression tree for a block, so with the same bits.
//!   `a (+) b` is written in the order of its operands; it rounds once.
//! - *Windows.* A program with [`Place::Peer`] may touch a peer's memory only between a signal
//!   that this peer sent in this operation and a signal that this peer waits for before it ends.

mod action;
mod blocks;
mod place;
mod program;
mod unanswered;
mod walk;

pub use action::{Action, Drift, Step};
pub use blocks::Blocks;
pub use place::{Place, Value};
pub use program::{Loop, Program, Shares};
pub use walk::{Cursor, ProgramCounter};

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
    /// The library's own memory, with undefined contents at the start of each piece. Not in programs of several legs.
    ///
    /// It has the same blocks as the message, but only those of [`Program::scratch`] need memory,
    /// and only for `max_skew + 1` pieces: piece `r` may use instance `r % (max_skew + 1)`.
    Scratch,
}
