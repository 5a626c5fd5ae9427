//! From a place of the plan to addresses.

use unisono_plan::{Blocks, Buffer};

use super::op::{Op, Planned};

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
}

/// Where the blocks of a place lie.
#[derive(Clone, Copy)]
pub(super) struct Resolved {
    base: u64,
    packed: bool,
    pub blocks: Blocks,
}

impl Resolved {
    /// Blocks one after another, the first at `address`.
    pub(super) fn packed(address: u64, blocks: Blocks) -> Self {
        Self {
            base: address,
            packed: true,
            blocks,
        }
    }

    /// Some `blocks` of `within`, which lie one after another from `address`.
    pub(super) fn part(op: &Op, address: u64, within: Blocks, blocks: Blocks, piece: u64) -> Self {
        let offset = if blocks.first == within.first {
            0
        } else {
            op.planned
                .geometry
                .packed_offset(within, blocks.first, piece)
        };
        Self::packed(address + offset * op.planned.element, blocks)
    }

    /// Blocks of a buffer of `owner`, each at its place in the message.
    pub(super) fn buffer(op: &Op, rank: u32, owner: u32, buffer: Buffer, blocks: Blocks) -> Self {
        let planned = &op.planned;
        let (input, output) = if owner == rank {
            (op.input, op.output)
        } else {
            let peer = op.peers[owner as usize];
            (peer.input, peer.output)
        };
        let address = if buffer == Buffer::In { input } else { output };
        let held = planned.program.held(buffer, owner);
        // The buffer starts with the first block that it holds; the base is where block 0 would be.
        let before = planned.geometry.block(held.first).start * planned.element;
        Self {
            base: address.wrapping_sub(before),
            packed: false,
            blocks,
        }
    }

    /// Address of the i-th block in `piece`; `before` is the bytes of the blocks before it.
    pub(super) fn address(&self, planned: &Planned, index: u32, piece: u64, before: u64) -> u64 {
        if self.packed {
            return self.base + before;
        }
        let from = planned
            .geometry
            .piece(self.blocks.first + index, piece)
            .start;
        self.base.wrapping_add(from * planned.element)
    }
}
