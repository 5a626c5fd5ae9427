//! From a place of the plan to addresses.

use unisono_plan::{Blocks, Buffer};

use super::op::Planned;

/// A contiguous run of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub address: u64,
    pub bytes: u64,
}

impl Run {
    /// No memory.
    pub(super) const NONE: Self = Self {
        address: 0,
        bytes: 0,
    };
}

impl Planned {
    /// Bytes of piece `piece` of block `block`.
    pub(super) fn bytes(&self, block: u32, piece: u64) -> u64 {
        let range = self.geometry.piece(block, piece);
        (range.end - range.start) * self.element
    }

    /// Bytes of piece `piece` of some blocks together.
    pub(super) fn packed(&self, blocks: Blocks, piece: u64) -> u64 {
        self.geometry.packed(blocks, piece) * self.element
    }
}

/// Where the blocks of a place lie.
#[derive(Clone, Copy)]
pub(super) struct Resolved {
    base: u64,
    lie: Lie,
    pub blocks: Blocks,
}

/// How blocks lie to each other.
#[derive(Clone, Copy)]
enum Lie {
    /// One after another, the first at the base.
    Packed,
    /// Each at its place in the message, which would start at the base.
    InMessage,
    /// Each at its place in scratch, which starts at the base.
    InScratch,
    /// Each at its number in the message, all with the same room.
    Scaled,
}

impl Resolved {
    /// Blocks one after another, the first at `address`.
    pub(super) fn packed(address: u64, blocks: Blocks) -> Self {
        Self {
            base: address,
            lie: Lie::Packed,
            blocks,
        }
    }

    /// Some `blocks` of `within`, which lie one after another from `address`.
    pub(super) fn part(
        planned: &Planned,
        address: u64,
        within: Blocks,
        blocks: Blocks,
        piece: u64,
    ) -> Self {
        let geometry = &planned.geometry;
        // The verifier has shown that they are neighbours there.
        let offset = match within.find(blocks, geometry.section()) {
            None | Some(0) => 0,
            Some(start) => geometry.packed_offset(within, start, piece),
        };
        Self::packed(address + offset * planned.element, blocks)
    }

    /// Some `blocks` of the instance of scratch at `address`, which holds `within`.
    pub(super) fn scratch(
        planned: &Planned,
        address: u64,
        within: Blocks,
        blocks: Blocks,
        piece: u64,
    ) -> Self {
        let geometry = &planned.geometry;
        if blocks.is_plain(geometry.section()) {
            let offset = geometry.scratch_offset(within, blocks.first, piece);
            return Self::packed(address + offset * planned.element, blocks);
        }
        Self {
            base: address,
            lie: Lie::InScratch,
            blocks,
        }
    }

    /// Blocks of the instance of scaled input at `address`.
    pub(super) fn scaled(address: u64, blocks: Blocks) -> Self {
        Self {
            base: address,
            lie: Lie::Scaled,
            blocks,
        }
    }

    /// Blocks of a buffer of `owner` that begins at `address`, each at its place in the message.
    pub(super) fn buffer(
        planned: &Planned,
        address: u64,
        owner: u32,
        buffer: Buffer,
        blocks: Blocks,
    ) -> Self {
        let start = planned.geometry.start_of(&planned.program, buffer, owner);
        Self {
            base: address.wrapping_sub(start * planned.element),
            lie: Lie::InMessage,
            blocks,
        }
    }

    /// Other blocks of the same memory.
    pub(super) fn with(self, blocks: Blocks) -> Self {
        Self { blocks, ..self }
    }

    /// Bytes of the i-th block in `piece`.
    pub(super) fn bytes(&self, planned: &Planned, index: u32, piece: u64) -> u64 {
        planned.bytes(self.block(planned, index), piece)
    }

    /// Address of the i-th block in `piece`; `before` is the bytes of the blocks before it.
    pub(super) fn address(&self, planned: &Planned, index: u32, piece: u64, before: u64) -> u64 {
        let geometry = &planned.geometry;
        let from = match self.lie {
            Lie::Packed => return self.base + before,
            Lie::Scaled => {
                let number = planned.program.number(self.block(planned, index));
                return self.base + u64::from(number) * planned.scaled_block_bytes();
            }
            Lie::InMessage => geometry.piece(self.block(planned, index), piece).start,
            Lie::InScratch => {
                let scratch = planned.program.scratch;
                geometry.scratch_offset(scratch, self.block(planned, index), piece)
            }
        };
        self.base.wrapping_add(from * planned.element)
    }

    fn block(&self, planned: &Planned, index: u32) -> u32 {
        self.blocks.at(index, planned.geometry.section())
    }
}

/// Calls `emit` with the addresses and bytes of each run; neighbouring blocks that touch in all
/// places are one run.
pub(super) fn merged<const N: usize>(
    planned: &Planned,
    places: [&Resolved; N],
    piece: u64,
    mut emit: impl FnMut([u64; N], u64),
) {
    let mut before = 0;
    let mut run: Option<([u64; N], u64)> = None;
    for index in 0..places[0].blocks.count {
        let bytes = places[0].bytes(planned, index, piece);
        let at = places.map(|place| place.address(planned, index, piece, before));
        before += bytes;
        match &mut run {
            _ if bytes == 0 => {}
            Some((start, len)) if start.map(|s| s.wrapping_add(*len)) == at => *len += bytes,
            _ => {
                if let Some((start, len)) = run.replace((at, bytes)) {
                    emit(start, len);
                }
            }
        }
    }
    if let Some((start, len)) = run {
        emit(start, len);
    }
}
