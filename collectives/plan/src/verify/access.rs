//! How the machine reads and writes places.

use crate::ir::{Buffer, Place, Program};

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
        let section = self.programs[index].section;
        (a.blocks().iter(section).zip(x.iter().zip(&y)))
            .map(|(block, (&x, &y))| {
                let sum = self.expressions.sum(x, y);
                let sum = sum.map_err(|contributor| Fault::Twice { block, contributor })?;
                if last != self.expressions.is_complete(sum, self.ranks) {
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
        let program = &self.programs[index];
        let (me, section) = (program.rank, program.section);
        let blocks = place.blocks();
        if let Place::Slot { from, .. } = place {
            let message = self.current(from, me).ok_or(Fault::NoSlot { from })?;
            let wrong = || contents(from, message, blocks, piece);
            let start = message.blocks.find(blocks, section).ok_or_else(wrong)?;
            if message.piece != piece {
                return Err(wrong());
            }
            return Ok(message.values[start as usize..][..blocks.count as usize].to_vec());
        }
        let (owner, buffer) = owner(me, place);
        let mut values = Vec::with_capacity(blocks.count as usize);
        for name in blocks.iter(section) {
            let block = number(program, buffer, name);
            let cell = self.cell(owner, buffer, block, piece, place)?;
            let known = &self.running[index].known;
            self.memory
                .read(cell, known)
                .map_err(|conflict| race(owner, buffer, block, false, conflict))?;
            let at = (owner, buffer, block);
            let value = self.memory.value(cell, at, &mut self.expressions);
            values.push(value.ok_or(Fault::Undefined { place, block })?);
        }
        Ok(values)
    }

    /// Writes values to a place, block by block.
    pub(super) fn store(
        &mut self,
        index: usize,
        place: Place,
        piece: u32,
        values: &[Expr],
    ) -> Result<(), Fault> {
        let program = &self.programs[index];
        let (owner, buffer) = owner(program.rank, place);
        for (name, &value) in place.blocks().iter(program.section).zip(values) {
            let block = number(program, buffer, name);
            self.size(owner, buffer, block, value, place)?;
            let cell = self.cell(owner, buffer, block, piece, place)?;
            let known = &self.running[index].known;
            let written = self.memory.write(cell, known);
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
                value: self.expressions.text(value, 0),
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
        let cell = self.memory.cell(owner, buffer, block, piece);
        cell.ok_or_else(|| Fault::Outside {
            place,
            held: self.memory.held(owner, buffer),
        })
    }

    /// Whether a copy is onto itself, as the first copy of an all_gather in place is.
    pub(super) fn is_same_memory(&self, index: usize, dst: Place, src: Place, piece: u32) -> bool {
        let program = &self.programs[index];
        if matches!(src, Place::Slot { .. }) || matches!(dst, Place::Slot { .. }) {
            return false;
        }
        let cell = |place: Place| {
            let (owner, buffer) = owner(program.rank, place);
            let block = number(program, buffer, place.blocks().first);
            self.memory.cell(owner, buffer, block, piece)
        };
        let count = |place: Place| place.blocks().count;
        cell(dst).is_some() && cell(dst) == cell(src) && count(dst) == count(src)
    }
}

/// How memory knows a block: scratch by its name, other buffers by its number in the message.
fn number(program: &Program, buffer: Buffer, name: u32) -> u32 {
    match buffer {
        Buffer::Scratch => name,
        Buffer::In | Buffer::Out => program.number(name),
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
