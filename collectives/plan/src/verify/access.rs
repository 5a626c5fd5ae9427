//! How the machine reads and writes places.

use crate::ir::{Blocks, Buffer, Place};

use super::error::Fault;
use super::expression::Expr;
use super::machine::{Machine, contents};
use super::memory::{Cell, Conflict};

impl Machine<'_> {
    /// `a (+) b`, block by block.
    pub(super) fn reduce(
        &mut self,
        index: usize,
        a: Place,
        b: Place,
        last: bool,
        piece: u32,
    ) -> Result<Vec<Expr>, Fault> {
        let x = self.load(index, a, piece)?;
        let y = self.load(index, b, piece)?;
        self.report.blocks_reduced += x.len() as u64;
        (a.blocks().iter().zip(x.iter().zip(&y)))
            .map(|(block, (&x, &y))| {
                let sum = self.expressions.sum(x, y);
                let sum = sum.map_err(|contributor| Fault::Twice { block, contributor })?;
                if last != (self.expressions.contributors(sum) == self.ranks) {
                    let marked = last;
                    return Err(Fault::Last { block, marked });
                }
                Ok(sum)
            })
            .collect()
    }

    /// The values of a place, block by block.
    pub(super) fn load(
        &mut self,
        index: usize,
        place: Place,
        piece: u32,
    ) -> Result<Vec<Expr>, Fault> {
        let me = self.programs[index].rank;
        let blocks = place.blocks();
        if let Place::Slot { from, .. } = place {
            let current = self.channel(from, me).current.as_ref();
            let message = current.ok_or(Fault::NoSlot { from })?;
            if !message.blocks.contains(blocks) || message.piece != piece {
                return Err(contents(from, message, blocks, piece));
            }
            let skipped = (blocks.first - message.blocks.first) as usize;
            return Ok(message.values[skipped..][..blocks.count as usize].to_vec());
        }
        let (owner, buffer) = owner(me, place);
        blocks
            .iter()
            .map(|block| {
                let cell = self.cell(owner, buffer, block, piece, place)?;
                let clock = &self.running[index].clock;
                self.memory
                    .read(cell, clock)
                    .map_err(|conflict| race(owner, buffer, block, false, conflict))?;
                let value = self.memory.value(cell);
                value.ok_or(Fault::Undefined { place, block })
            })
            .collect()
    }

    /// Writes values to a place, block by block.
    pub(super) fn store(
        &mut self,
        index: usize,
        place: Place,
        piece: u32,
        values: &[Expr],
    ) -> Result<(), Fault> {
        let (owner, buffer) = owner(self.programs[index].rank, place);
        for (block, &value) in place.blocks().iter().zip(values) {
            self.size(owner, buffer, block, value, place)?;
            let cell = self.cell(owner, buffer, block, piece, place)?;
            let clock = &self.running[index].clock;
            let written = self.memory.write(cell, clock);
            written.map_err(|conflict| race(owner, buffer, block, true, conflict))?;
            self.memory.set(cell, value);
        }
        Ok(())
    }

    /// In an all_to_all with sizes that only two ranks know, a value fits into no place but its own.
    fn size(
        &self,
        owner: u32,
        buffer: Buffer,
        block: u32,
        value: Expr,
        place: Place,
    ) -> Result<(), Fault> {
        if !self.settings.unequal {
            return Ok(());
        }
        let pair = match buffer {
            Buffer::Out => block.checked_sub(self.ranks).map(|from| (from, owner)),
            Buffer::In => Some((owner, block)),
            Buffer::Scratch => None,
        };
        match pair {
            Some((from, to)) if self.expressions.is_input(value, from, to) => Ok(()),
            _ => Err(Fault::Size {
                place,
                value: self.expressions.text(value),
            }),
        }
    }

    fn cell(
        &self,
        owner: u32,
        buffer: Buffer,
        block: u32,
        piece: u32,
        place: Place,
    ) -> Result<Cell, Fault> {
        let held = self.memory.held(owner, buffer);
        if held.contains(Blocks::one(block)) {
            Ok(self.memory.cell(owner, buffer, block, piece))
        } else {
            Err(Fault::Outside { place, held })
        }
    }

    /// Whether a copy is onto itself, as the first copy of an all_gather in place is.
    pub(super) fn is_same_memory(&self, me: u32, dst: Place, src: Place, piece: u32) -> bool {
        if matches!(src, Place::Slot { .. }) || matches!(dst, Place::Slot { .. }) {
            return false;
        }
        let cell = |place: Place| {
            let (owner, buffer) = owner(me, place);
            self.cell(owner, buffer, place.blocks().first, piece, place)
                .ok()
        };
        cell(dst).is_some() && cell(dst) == cell(src)
    }
}

/// The rank whose buffer a place is, and which.
fn owner(me: u32, place: Place) -> (u32, Buffer) {
    match place {
        Place::Local { buffer, .. } => (me, buffer),
        Place::Peer { rank, buffer, .. } => (rank, buffer),
        // Slots are handled before this is asked.
        Place::Slot { .. } => (me, Buffer::Scratch),
    }
}

pub(super) fn race(
    owner: u32,
    buffer: Buffer,
    block: u32,
    write: bool,
    conflict: Conflict,
) -> Fault {
    Fault::Race {
        owner,
        buffer: match buffer {
            Buffer::In => "In",
            Buffer::Out => "Out",
            Buffer::Scratch => "Scratch",
        },
        block,
        write,
        other: conflict.other,
        other_write: conflict.other_write,
    }
}
