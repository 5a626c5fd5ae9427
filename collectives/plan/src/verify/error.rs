//! What can be wrong with a set of programs.

use std::fmt;
use std::ops::Range;

use crate::ir::{Blocks, Op, Place};

/// A fault, and where it showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyError {
    /// The rank on which it showed.
    pub rank: u32,
    /// The index of the step, if it showed at a step.
    pub step: Option<usize>,
    /// The piece, if it showed in one.
    pub piece: Option<u32>,
    /// What is wrong.
    pub fault: Fault,
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)?;
        if let Some(step) = self.step {
            write!(f, ", step {step}")?;
        }
        if let Some(piece) = self.piece {
            write!(f, ", piece {piece}")?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for VerifyError {}

/// What a blocked rank waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// A put from this rank.
    PutFrom(u32),
    /// A free slot of the channel to this rank.
    SlotTo(u32),
}

/// A rank that can't go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// The rank.
    pub rank: u32,
    /// The index of the step.
    pub step: usize,
    /// The piece.
    pub piece: u32,
    /// What it waits for.
    pub waits: Waits,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rank, step, piece) = (self.rank, self.step, self.piece);
        match self.waits {
            Waits::PutFrom(from) => write!(
                f,
                "rank {rank} at step {step}, piece {piece} waits for a put from rank {from}"
            ),
            Waits::SlotTo(to) => write!(
                f,
                "rank {rank} at step {step}, piece {piece} waits for a free slot to rank {to}"
            ),
        }
    }
}

/// What is wrong with a program, or with a set of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The settings ask for too few slots or for no piece.
    #[error("the settings ask for {slots} slots and {pieces} pieces")]
    Settings {
        /// Slots asked for.
        slots: u32,
        /// Pieces asked for.
        pieces: u32,
    },
    /// The set has not one program for each rank that takes part.
    #[error("the programs are not those of one operation: {why}")]
    Set {
        /// In which way.
        why: String,
    },
    /// A number in the header contradicts the steps.
    #[error("the header says {field} {says}, the steps need {needs}")]
    Header {
        /// The field.
        field: &'static str,
        /// Its value.
        says: String,
        /// The right value.
        needs: String,
    },
    /// A step that means nothing: why.
    #[error("the step makes no sense: {why}")]
    Step {
        /// In which way.
        why: &'static str,
    },
    /// A place outside the buffer that the operation gives.
    #[error("{place} is not in the buffer, which holds blocks {held:?}")]
    Outside {
        /// The place.
        place: Place,
        /// What the buffer holds: numbers in the message, of scratch names.
        held: Range<u32>,
    },
    /// A read of memory with undefined contents.
    #[error("{place} is read, but block {block} was never written")]
    Undefined {
        /// The place.
        place: Place,
        /// The block.
        block: u32,
    },
    /// A value goes where a value of another size belongs.
    #[error("{place} gets {value}, whose size is not known to be the same")]
    Size {
        /// The place.
        place: Place,
        /// The value.
        value: String,
    },
    /// A slot is read or released that isn't current: not waited for yet, or released.
    #[error("there is no current slot from rank {from}")]
    NoSlot {
        /// The rank that puts.
        from: u32,
    },
    /// A wait while the last slot from that rank is still current.
    #[error("the slot from rank {from} is still held")]
    StillHeld {
        /// The rank that puts.
        from: u32,
    },
    /// A slot doesn't hold what the wait or the read names.
    #[error(
        "the slot from rank {from} holds blocks {held} of piece {held_piece}, not {wanted} of piece {wanted_piece}"
    )]
    Contents {
        /// The rank that put.
        from: u32,
        /// What the put holds.
        held: Blocks,
        /// The piece of the put.
        held_piece: u32,
        /// What is asked for.
        wanted: Blocks,
        /// The piece asked for.
        wanted_piece: u32,
    },
    /// A reduction adds a contribution to a value that has it.
    #[error("block {block} gets the contribution of rank {contributor} twice")]
    Twice {
        /// The block.
        block: u32,
        /// The rank whose contribution it is.
        contributor: u32,
    },
    /// An output lacks contributions.
    #[error("block {block} of the output lacks the contributions of ranks {missing:?}")]
    Missing {
        /// The block.
        block: u32,
        /// The ranks whose contributions are missing; at most 16 of them.
        missing: Vec<u32>,
    },
    /// An output is something else than the operation promises.
    #[error("block {block} of the output is {got}, not {wanted}")]
    Wrong {
        /// The block.
        block: u32,
        /// The expression.
        got: String,
        /// What it should be.
        wanted: String,
    },
    /// `last` is set on a partial value, or isn't on a complete one.
    #[error("the reduction of block {block} {}", if *marked {
        "is marked last, but the value is not complete"
    } else {
        "completes the value, but is not marked last"
    })]
    Last {
        /// The block.
        block: u32,
        /// Whether it is marked.
        marked: bool,
    },
    /// Two ranks end with different expressions.
    #[error("block {block} is {mine}, but {theirs} on rank {other}")]
    Differs {
        /// The block.
        block: u32,
        /// The other rank.
        other: u32,
        /// The expression on this rank.
        mine: String,
        /// The expression on the other.
        theirs: String,
    },
    /// Nobody can go on.
    #[error("deadlock: {}", join(.blocked))]
    Deadlock {
        /// The ranks that have not finished, in rank order.
        blocked: Vec<Blocked>,
    },
    /// A rank ends with a slot that it didn't give back.
    #[error("the slot from rank {from} is never released")]
    Unreleased {
        /// The rank that put.
        from: u32,
    },
    /// Puts that nobody waits for.
    #[error("{puts} puts to rank {to} are never waited for")]
    Unconsumed {
        /// The receiving rank.
        to: u32,
        /// How many.
        puts: usize,
    },
    /// Two accesses to one block of a window, one of them a write, without order between them.
    #[error("{buffer} block {block} of rank {owner} is {} here and {} by rank {other}, unordered",
        if *write { "written" } else { "read" }, if *other_write { "written" } else { "read" })]
    Race {
        /// The rank whose buffer it is.
        owner: u32,
        /// Its name.
        buffer: &'static str,
        /// The block.
        block: u32,
        /// Whether this access writes.
        write: bool,
        /// The rank of the other access. Its own entry and exit count as writes by the owner.
        other: u32,
        /// Whether the other access writes.
        other_write: bool,
    },
    /// The operation completes though some rank may not have entered it.
    #[error("{op} completes without having heard of ranks {unheard:?}")]
    Unheard {
        /// The operation.
        op: Op,
        /// The ranks; at most 16 of them.
        unheard: Vec<u32>,
    },
    /// A rank of a broadcast or scatter that puts nothing to any peer, not even a signal.
    #[error("in {op} nobody hears of this rank")]
    NeverHeard {
        /// The operation.
        op: Op,
    },
    /// A rank of a collective that waits for no peer.
    #[error("{op} waits for no peer")]
    NeverWaits {
        /// The operation.
        op: Op,
    },
}

fn join(blocked: &[Blocked]) -> String {
    const SHOWN: usize = 8;
    let mut text = blocked
        .iter()
        .take(SHOWN)
        .map(Blocked::to_string)
        .collect::<Vec<_>>()
        .join("; ");
    if blocked.len() > SHOWN {
        text += &format!("; and {} more", blocked.len() - SHOWN);
    }
    text
}
