//! Where operands are, and what a put carries.

use std::fmt;

use super::{Blocks, Buffer};

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
        /// Which blocks of those that the put holds: some neighbours of them, in their order; see
        /// [`super::Action::Wait`].
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

impl Place {
    /// The place with other ranks and blocks.
    #[must_use]
    pub fn map(self, rank_to: impl Fn(u32) -> u32, blocks_to: impl Fn(Blocks) -> Blocks) -> Self {
        match self {
            Place::Local { buffer, blocks } => Place::Local {
                buffer,
                blocks: blocks_to(blocks),
            },
            Place::Slot { from, blocks } => Place::Slot {
                from: rank_to(from),
                blocks: blocks_to(blocks),
            },
            Place::Peer {
                rank,
                buffer,
                blocks,
            } => Place::Peer {
                rank: rank_to(rank),
                buffer,
                blocks: blocks_to(blocks),
            },
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
        /// As in [`super::Action::Reduce`].
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
