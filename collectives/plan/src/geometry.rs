//! Which elements a block is, and a piece of a block.
//!
//! All arithmetic is exact: cuts are floors of rational products, computed in 128 bits where 64
//! don't suffice. Every rank that knows (count, blocks, shares, pieces) computes the same cuts.

use std::ops::Range;

use crate::ir::{Blocks, Program, Shares};

/// A message of `count` elements cut into blocks and pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    count: u64,
    blocks: u32,
    pieces: u64,
    shares: Shares,
}

/// A message that can't be cut as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// There must be a block and a piece.
    #[error(
        "a message needs at least one block and one piece, got {blocks} blocks and {pieces} pieces"
    )]
    Nothing {
        /// Blocks asked for.
        blocks: u32,
        /// Pieces asked for.
        pieces: u64,
    },
    /// The shares don't describe the blocks.
    #[error(
        "shares of {got} blocks for a message of {blocks} blocks, or shares that decrease or add up to nothing"
    )]
    Shares {
        /// Blocks of the message.
        blocks: u32,
        /// Entries of the shares.
        got: usize,
    },
    /// Not even one element of each block fits into a slot.
    #[error(
        "a slot of {slot_bytes} bytes can't hold one element of {element_bytes} bytes of each of {blocks} blocks; use larger slots or another algorithm"
    )]
    SlotTooSmall {
        /// Bytes of one slot.
        slot_bytes: u64,
        /// Bytes of one element.
        element_bytes: u32,
        /// Blocks in the widest put.
        blocks: u32,
    },
}

impl Geometry {
    /// Cuts `count` elements into `blocks` blocks by `shares`, and each block into `pieces`.
    pub fn new(
        count: u64,
        blocks: u32,
        shares: Shares,
        pieces: u64,
    ) -> Result<Self, GeometryError> {
        if blocks == 0 || pieces == 0 {
            return Err(GeometryError::Nothing { blocks, pieces });
        }
        if let Shares::Cumulative(ends) = &shares {
            let ordered = ends.windows(2).all(|pair| pair[0] <= pair[1]);
            if ends.len() != blocks as usize || !ordered || ends.last() == Some(&0) {
                return Err(GeometryError::Shares {
                    blocks,
                    got: ends.len(),
                });
            }
        }
        Ok(Self {
            count,
            blocks,
            pieces,
            shares,
        })
    }

    /// The message of a program, with as many pieces as [`pieces_for`] asks for.
    pub fn for_program(
        program: &Program,
        count: u64,
        element_bytes: u32,
        slot_bytes: u64,
    ) -> Result<Self, GeometryError> {
        let mut whole = Self::new(count, program.blocks, program.shares.clone(), 1)?;
        whole.pieces = whole.pieces_for(program.max_put_blocks, element_bytes, slot_bytes)?;
        Ok(whole)
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

    /// Pieces of the message.
    #[must_use]
    pub fn pieces(&self) -> u64 {
        self.pieces
    }

    /// The elements of a block. Empty past the last block.
    #[must_use]
    pub fn block(&self, block: u32) -> Range<u64> {
        self.cut(block)..self.cut(block.saturating_add(1))
    }

    /// The elements, counted from the start of the message, of one piece of one block.
    #[must_use]
    pub fn piece(&self, block: u32, piece: u64) -> Range<u64> {
        let Range { start, end } = self.block(block);
        if self.pieces == 1 {
            return if piece == 0 { start..end } else { end..end };
        }
        let size = end - start;
        let at = |index: u64| start + scale(size, index.min(self.pieces), self.pieces);
        at(piece)..at(piece.saturating_add(1))
    }

    /// Elements of one piece of several blocks: what a put of them holds.
    #[must_use]
    pub fn packed(&self, blocks: Blocks, piece: u64) -> u64 {
        blocks
            .iter()
            .map(|block| {
                let range = self.piece(block, piece);
                range.end - range.start
            })
            .sum()
    }

    /// Where, in elements, block `block` starts in a slot that holds one piece of `blocks`.
    #[must_use]
    pub fn packed_offset(&self, blocks: Blocks, block: u32, piece: u64) -> u64 {
        let before = block.clamp(blocks.first, blocks.end()) - blocks.first;
        self.packed(Blocks::new(blocks.first, before), piece)
    }

    /// Elements of the largest piece of any `blocks` neighbouring blocks, or a little more: how
    /// much room a slot or a scratch instance needs.
    #[must_use]
    pub fn room(&self, blocks: u32) -> u64 {
        let each = self.largest_block().div_ceil(self.pieces);
        each.saturating_mul(u64::from(blocks)).min(self.count)
    }

    /// The fewest pieces with which every put of up to `put_blocks` blocks fits into a slot.
    pub fn pieces_for(
        &self,
        put_blocks: u32,
        element_bytes: u32,
        slot_bytes: u64,
    ) -> Result<u64, GeometryError> {
        let largest = self.largest_block();
        let whole = u128::from(largest) * u128::from(put_blocks);
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
            each => Ok(largest.div_ceil(each)),
        }
    }

    /// Elements of the largest block.
    fn largest_block(&self) -> u64 {
        match &self.shares {
            Shares::Equal => self.count.div_ceil(u64::from(self.blocks)),
            Shares::Cumulative(_) => (0..self.blocks)
                .map(|block| {
                    let range = self.block(block);
                    range.end - range.start
                })
                .max()
                .unwrap_or(0),
        }
    }

    /// The first element of block `block`, or the end of the message.
    fn cut(&self, block: u32) -> u64 {
        let block = block.min(self.blocks);
        match &self.shares {
            Shares::Equal => scale(self.count, u64::from(block), u64::from(self.blocks)),
            Shares::Cumulative(ends) => match block.checked_sub(1) {
                None => 0,
                Some(before) => scale(self.count, ends[before as usize], ends[ends.len() - 1]),
            },
        }
    }
}

/// `floor(value * part / whole)` for `part <= whole`.
fn scale(value: u64, part: u64, whole: u64) -> u64 {
    match value.checked_mul(part) {
        Some(product) => product / whole,
        // The quotient is at most `value`, so it fits.
        None => (u128::from(value) * u128::from(part) / u128::from(whole)) as u64,
    }
}

/// The fewest pieces with which every put of a program fits into a slot of `slot_bytes`.
pub fn pieces_for(
    program: &Program,
    count: u64,
    element_bytes: u32,
    slot_bytes: u64,
) -> Result<u64, GeometryError> {
    Geometry::for_program(program, count, element_bytes, slot_bytes).map(|g| g.pieces)
}
