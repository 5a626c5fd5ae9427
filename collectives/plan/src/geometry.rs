//! Which elements a block is, and a piece of a block.
//!
//! All arithmetic is exact: cuts are floors of rational products, computed in 128 bits where 64
//! don't suffice. Every rank that knows (count, blocks, shares, pieces) computes the same cuts.

mod cuts;
mod error;

use std::ops::Range;
use std::sync::Arc;

use crate::ir::{Action, Blocks, Buffer, Op, Program, Shares};

use cuts::{Cuts, scale};
pub use error::GeometryError;

/// How long a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes<'a> {
    /// Elements of the larger of a rank's buffers, as nccl-tests counts. All parts are equal.
    Equal(u64),
    /// Elements of each part ([`Op::parts`]): the counts of all_gather_v and its like; of
    /// all_to_all_v what this rank sends to each rank, then what it gets from each.
    Parts(&'a [u64]),
}

/// A message of `count` elements cut into blocks and pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    count: u64,
    blocks: u32,
    section: u32,
    names: Option<Arc<[u32]>>,
    cuts: Cuts,
    /// Elements of the largest block.
    largest: u64,
    pieces: u64,
    /// Pieces of each block, by its number, where blocks have pieces of their own.
    own_pieces: Option<Arc<[u64]>>,
}

impl Geometry {
    /// Cuts `count` elements into `blocks` blocks by `shares`, and each block into `pieces`. Names
    /// are numbers, and there is one section.
    pub fn new(
        count: u64,
        blocks: u32,
        shares: Shares,
        pieces: u64,
    ) -> Result<Self, GeometryError> {
        if blocks == 0 || pieces == 0 {
            return Err(GeometryError::Nothing { blocks, pieces });
        }
        let parts = match &shares {
            Shares::Within { starts, .. } => starts.len().saturating_sub(1),
            _ => 1,
        };
        let part = |part: usize| scale(count, part as u64, parts as u64);
        let cuts = Cuts::new(blocks, &shares, parts, part)?;
        Ok(Self {
            count,
            blocks,
            section: blocks,
            names: None,
            largest: cuts.largest(),
            cuts,
            pieces,
            own_pieces: None,
        })
    }

    /// Cuts the message of a program, in one piece.
    pub fn of(program: &Program, sizes: Sizes<'_>) -> Result<Self, GeometryError> {
        let (blocks, shares) = (program.blocks, &program.shares);
        let parts = program.op.parts(program.ranks);
        let whole = match sizes {
            Sizes::Equal(count) => {
                let mut count = message_elements(program.op, count);
                if let (Op::AllToAll, Shares::Within { starts, .. }) = (program.op, shares) {
                    // What is handed on is as large as what goes.
                    let each = count / u64::from(parts.max(1));
                    count = each.saturating_mul(starts.len().saturating_sub(1) as u64);
                }
                Self::new(count, blocks, shares.clone(), 1)?
            }
            Sizes::Parts(sizes) if sizes.len() == parts as usize => {
                let mut ends = vec![0u64; sizes.len() + 1];
                for (index, &size) in sizes.iter().enumerate() {
                    let end = ends[index].checked_add(size);
                    ends[index + 1] = end.ok_or(GeometryError::TooLong)?;
                }
                let cuts = Cuts::new(blocks, shares, sizes.len(), |part| ends[part])?;
                Self {
                    count: ends[sizes.len()],
                    blocks,
                    section: blocks,
                    names: None,
                    largest: cuts.largest(),
                    cuts,
                    pieces: 1,
                    own_pieces: None,
                }
            }
            Sizes::Parts(sizes) => {
                let got = sizes.len();
                return Err(GeometryError::Parts { parts, got });
            }
        };
        Ok(Self {
            section: program.section,
            names: program.names.clone(),
            ..whole
        })
    }

    /// The message of a program, with as few pieces as fit into slots of `slot_bytes`.
    pub fn for_program(
        program: &Program,
        sizes: Sizes<'_>,
        element_bytes: u32,
        slot_bytes: u64,
    ) -> Result<Self, GeometryError> {
        let whole = Self::of(program, sizes)?;
        let pieces = whole.pieces_for(program.max_put_blocks, element_bytes, slot_bytes)?;
        whole.in_pieces(pieces)
    }

    /// The same message in so many pieces.
    pub fn in_pieces(self, pieces: u64) -> Result<Self, GeometryError> {
        if pieces == 0 {
            let blocks = self.blocks;
            return Err(GeometryError::Nothing { blocks, pieces });
        }
        Ok(Self {
            pieces,
            own_pieces: None,
            ..self
        })
    }

    /// The same message, each block in as few pieces as fit into `put_bytes`, but at least one.
    ///
    /// For an all_to_all_v: of a block only the two ranks between which it goes know the size, so
    /// nobody else can agree on its pieces. The message has as many pieces as the block with the
    /// most.
    pub fn in_own_pieces(self, element_bytes: u32, put_bytes: u64) -> Result<Self, GeometryError> {
        let each = put_bytes / u64::from(element_bytes.max(1));
        if each == 0 {
            return Err(GeometryError::SlotTooSmall {
                slot_bytes: put_bytes,
                element_bytes,
                blocks: 1,
            });
        }
        let pieces = |number: u32| {
            let size = self.cuts.at(number + 1) - self.cuts.at(number);
            size.div_ceil(each).max(1)
        };
        let own: Arc<[u64]> = (0..self.blocks).map(pieces).collect();
        Ok(Self {
            pieces: own.iter().copied().max().unwrap_or(1),
            own_pieces: Some(own),
            ..self
        })
    }

    /// Elements of the message.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Blocks of the message.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Blocks of a section: modulo what names of blocks count.
    #[must_use]
    pub fn section(&self) -> u32 {
        self.section
    }

    /// Pieces of the message.
    #[must_use]
    pub fn pieces(&self) -> u64 {
        self.pieces
    }

    /// The pieces in which an action of a program over `ranks` ranks runs: [`Geometry::pieces`],
    /// unless blocks have pieces of their own.
    #[must_use]
    pub fn pieces_of(&self, action: &Action, ranks: u32) -> u64 {
        match &self.own_pieces {
            None => self.pieces,
            Some(own) => {
                let block = action.subject(ranks);
                own.get(block as usize).copied().unwrap_or(self.pieces)
            }
        }
    }

    /// The first element, counted from the start of the message, of what a buffer of a rank holds.
    #[must_use]
    pub fn start_of(&self, program: &Program, buffer: Buffer, rank: u32) -> u64 {
        self.cuts.at(program.held(buffer, rank).start)
    }

    /// The elements of a block. Empty past the last block.
    #[must_use]
    pub fn block(&self, block: u32) -> Range<u64> {
        let number = self.number(block);
        self.cuts.at(number)..self.cuts.at(number.saturating_add(1))
    }

    /// The elements, counted from the start of the message, of one piece of one block.
    #[must_use]
    pub fn piece(&self, block: u32, piece: u64) -> Range<u64> {
        let Range { start, end } = self.block(block);
        let pieces = match &self.own_pieces {
            None => self.pieces,
            Some(own) => {
                let number = self.number(block) as usize;
                own.get(number).copied().unwrap_or(self.pieces)
            }
        };
        if pieces == 1 {
            return if piece == 0 { start..end } else { end..end };
        }
        let part = part_of(end - start, piece, pieces);
        start + part.start..start + part.end
    }

    /// Elements of one piece of several blocks: what a put of them holds.
    #[must_use]
    pub fn packed(&self, blocks: Blocks, piece: u64) -> u64 {
        if self.own_pieces.is_none()
            && let Some(sum) = self.packed_at_once(blocks, piece)
        {
            return sum;
        }
        let size = |block| {
            let range = self.piece(block, piece);
            range.end - range.start
        };
        blocks.iter(self.section).map(size).sum()
    }

    /// Where, in elements, the block at a position of a set starts in a slot that holds one piece
    /// of the set.
    #[must_use]
    pub fn packed_offset(&self, blocks: Blocks, position: u32, piece: u64) -> u64 {
        self.packed(blocks.prefix(position.min(blocks.count)), piece)
    }

    /// Where, in elements, a block starts in an instance of scratch that holds these: a run, which may go over the end of
    /// a section into the next one, unlike any other set.
    #[must_use]
    pub fn scratch_offset(&self, scratch: Blocks, name: u32, piece: u64) -> u64 {
        let (mut at, mut sum) = (scratch.first, 0);
        while at < name {
            let next = at - at % self.section + self.section;
            let end = name.min(next);
            sum += self.packed(Blocks::new(at, end - at), piece);
            at = end;
        }
        sum
    }

    /// Elements of the largest piece of any `blocks` blocks, or a little more: how much room a
    /// slot or a scratch instance needs.
    #[must_use]
    pub fn room(&self, blocks: u32) -> u64 {
        let each = match self.own_pieces {
            None => self.largest.div_ceil(self.pieces),
            Some(_) => self.largest,
        };
        each.saturating_mul(u64::from(blocks)).min(self.count)
    }

    /// The fewest pieces with which every put of up to `put_blocks` blocks fits into a slot.
    pub fn pieces_for(
        &self,
        put_blocks: u32,
        element_bytes: u32,
        slot_bytes: u64,
    ) -> Result<u64, GeometryError> {
        let whole = u128::from(self.largest) * u128::from(put_blocks);
        let whole = whole.min(u128::from(self.count)) * u128::from(element_bytes);
        if whole <= u128::from(slot_bytes) {
            return Ok(1);
        }
        let wide = u64::from(put_blocks) * u64::from(element_bytes);
        match slot_bytes / wide {
            0 => Err(GeometryError::SlotTooSmall {
                slot_bytes,
                element_bytes,
                blocks: put_blocks,
            }),
            each => Ok(self.largest.div_ceil(each)),
        }
    }

    /// [`Geometry::packed`] without a look at each block, where that can be.
    fn packed_at_once(&self, blocks: Blocks, piece: u64) -> Option<u64> {
        let sized = |size: u64| {
            let part = part_of(size, piece, self.pieces);
            part.end - part.start
        };
        let count = u64::from(blocks.count);
        if let Cuts::Equal { .. } = self.cuts
            && self.count.is_multiple_of(u64::from(self.blocks))
        {
            return Some(count * sized(self.largest));
        }
        if self.names.is_some() || !blocks.is_plain(self.section) {
            return None;
        }
        let whole = self.cuts.at(blocks.end()) - self.cuts.at(blocks.first);
        if self.pieces == 1 {
            return Some(if piece == 0 { whole } else { 0 });
        }
        let Cuts::Equal { .. } = self.cuts else {
            return None;
        };
        // Blocks are of two sizes, one element apart.
        let small = self.count / u64::from(self.blocks);
        let larger = whole - small * count;
        Some((count - larger) * sized(small) + larger * sized(small + 1))
    }

    fn number(&self, name: u32) -> u32 {
        match &self.names {
            None => name,
            Some(names) => names.get(name as usize).copied().unwrap_or(self.blocks),
        }
    }
}

/// The part of `size` elements that is piece `piece` of `pieces`.
fn part_of(size: u64, piece: u64, pieces: u64) -> Range<u64> {
    let at = |index: u64| scale(size, index.min(pieces), pieces);
    at(piece)..at(piece.saturating_add(1))
}

/// Elements of the message of an operation whose larger buffer has `count`.
#[must_use]
pub fn message_elements(op: Op, count: u64) -> u64 {
    match op {
        // Input and output, one after the other.
        Op::AllToAll => count.saturating_mul(2),
        _ => count,
    }
}
