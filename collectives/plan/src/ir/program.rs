//! The program of one rank.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{Blocks, Buffer, Cursor, Op, Step};

/// How the message is divided into blocks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Shares {
    /// All blocks equal, up to one element.
    #[default]
    Equal,
    /// Block `b` gets the part of the message between entries `b - 1` and `b`, over the last
    /// entry: rational shares with one common denominator. Never decreasing, last entry not zero.
    Cumulative(Arc<[u64]>),
    /// Each part of the message ([`Op::parts`]) is divided by itself.
    Within {
        /// The first block of each part, and the number of all blocks at the end.
        ///
        /// In an all_to_all there may be more parts than the operation has, as large as the others:
        /// what a rank hands on for others has names then, though no buffer.
        starts: Arc<[u32]>,
        /// As in [`Shares::Cumulative`], but starting anew with each part.
        ends: Arc<[u64]>,
    },
}

/// Some neighbouring steps that are repeated. Loops don't overlap, and none is in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Loop {
    /// The index of the first step.
    pub first: u32,
    /// How many steps; at least 1.
    pub len: u32,
    /// How many times; at least 1.
    pub times: u32,
}

/// What one rank does for one operation.
///
/// The steps are the whole program; the other numbers can be derived from them and are here so
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
    /// Blocks of a section; a divisor of `blocks`. Names of blocks wrap within their section.
    pub section: u32,
    /// Sizes of the blocks, in the order of the message.
    pub shares: Shares,
    /// The number in the message of each name: a permutation. Absent if every block's name is its
    /// number.
    pub names: Option<Arc<[u32]>>,
    /// The rank of each position, where steps name ranks by their positions in an order. Absent
    /// if they name them by their numbers.
    pub order: Option<Arc<[u32]>>,
    /// The names of [`Buffer::Scratch`] that need memory: a run within the message.
    pub scratch: Blocks,
    /// The largest number of blocks in one put, or in one access to a peer's window, of *any*
    /// rank: it decides the number of pieces, on which all ranks must agree.
    ///
    /// 0 where nothing but signals travels.
    pub max_put_blocks: u32,
    /// The largest skew of a step.
    pub max_skew: u16,
    /// Whether the program names [`super::Place::Peer`].
    pub windowed: bool,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Which of them are repeated, in order.
    pub loops: Vec<Loop>,
}

impl Program {
    /// Of a program that [shows](crate::Algorithm::shows_puts) puts: whether one of these blocks, from this rank, is shown.
    /// One of the whole message is (of an all_to_all one of the whole input), or of the rank's own block of it, and the
    /// signals of a barrier: all that goes to everybody.
    #[must_use]
    pub fn shows(&self, from: u32, blocks: Blocks) -> bool {
        match blocks.count {
            0 => self.op == Op::Barrier,
            // A block that belongs to a rank is named by its position.
            1 if self.rank_at(blocks.first) == from => true,
            count => count == self.section,
        }
    }

    /// The rank at a position.
    fn rank_at(&self, position: u32) -> u32 {
        match &self.order {
            None => position,
            Some(order) => order.get(position as usize).copied().unwrap_or(position),
        }
    }

    /// The number in the message of a block.
    #[must_use]
    pub fn number(&self, name: u32) -> u32 {
        match &self.names {
            None => name,
            Some(names) => names.get(name as usize).copied().unwrap_or(name),
        }
    }

    /// The blocks that a buffer of a rank holds, by their numbers in the message.
    ///
    /// Element 0 of the buffer is the first element of the first of them. Scratch holds
    /// [`Program::scratch`], by name.
    #[must_use]
    pub fn held(&self, buffer: Buffer, rank: u32) -> Range<u32> {
        let parts = self.op.holds(buffer, rank, self.ranks);
        self.start_of(parts.start)..self.start_of(parts.end)
    }

    /// The blocks of a part of the message, by their numbers.
    #[must_use]
    pub fn part(&self, part: u32) -> Range<u32> {
        self.start_of(part)..self.start_of(part.saturating_add(1))
    }

    /// The part of the message to which a block belongs, by its number.
    #[must_use]
    pub fn part_of(&self, number: u32) -> u32 {
        match &self.shares {
            Shares::Within { starts, .. } => {
                starts.partition_point(|&start| start <= number).max(1) as u32 - 1
            }
            _ => number / self.blocks_each(),
        }
    }

    /// Which share of its part a block is, by its number: from, to, of how much. All blocks are
    /// alike where parts are not divided by themselves.
    pub(crate) fn share_within_part(&self, number: u32) -> (u64, u64, u64) {
        let Shares::Within { ends, .. } = &self.shares else {
            return (0, 1, 1);
        };
        let part = self.part(self.part_of(number));
        let end = |block: u32| ends.get(block as usize).copied().unwrap_or(0);
        let start = match number.checked_sub(1) {
            Some(before) if before >= part.start => end(before),
            _ => 0,
        };
        (start, end(number), end(part.end.saturating_sub(1)))
    }

    fn start_of(&self, part: u32) -> u32 {
        match &self.shares {
            Shares::Within { starts, .. } => {
                let start = starts.get(part as usize).copied();
                start.unwrap_or(self.blocks)
            }
            _ => part.saturating_mul(self.blocks_each()),
        }
    }

    /// Blocks of each part, where all have as many.
    fn blocks_each(&self) -> u32 {
        (self.blocks / self.op.parts(self.ranks).max(1)).max(1)
    }

    /// The memory that the program takes, in bytes: its steps and loops, and the tables that it refers
    /// to, which it may share with programs of other ranks.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let tables = [&self.names, &self.order].into_iter().flatten();
        let tables: usize = tables.map(|table| size_of_val(&**table)).sum();
        let shares = match &self.shares {
            Shares::Equal => 0,
            Shares::Cumulative(ends) => size_of_val(&**ends),
            Shares::Within { starts, ends } => size_of_val(&**starts) + size_of_val(&**ends),
        };
        size_of::<Self>()
            + self.steps.capacity() * size_of::<Step>()
            + self.loops.capacity() * size_of::<Loop>()
            + tables
            + shares
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
            self.len(),
            self.max_skew
        )?;
        let mut cursor = Cursor::START;
        while let Some(step) = self.at(cursor) {
            if step.begins {
                writeln!(f, "leg")?;
            }
            writeln!(f, "{:4} ~{} {}", cursor.number(), step.skew, step.action)?;
            self.advance(&mut cursor);
        }
        Ok(())
    }
}
