//! What commands do to memory.

use super::expressions::Value;
use super::slots::Said;
use super::{Fault, Machine};
use crate::program::ELEMENT;

impl Machine<'_> {
    pub(super) fn copy(&mut self, queue: usize, dst: u32, src: u32, len: u32) -> Result<(), Fault> {
        for i in 0..len {
            let value = self.load(queue, src + i)?;
            self.store(queue, dst + i, value)?;
        }
        Ok(())
    }

    /// Reads elements of a peer's buffer at an address.
    pub(super) fn read(
        &mut self,
        queue: usize,
        dst: u32,
        from: u64,
        len: u32,
    ) -> Result<(), Fault> {
        let src = self.program.memory.cell(from, u64::from(len) * ELEMENT);
        let src = src.map_err(|place| Fault::Undefined { place })?;
        self.copy(queue, dst, src, len)
    }

    /// Where a buffer is, as a rank has told.
    pub(super) fn told(&self, at: u64) -> Result<u64, Fault> {
        self.told.get(&at).copied().ok_or_else(|| Fault::Undefined {
            place: "where a peer's buffer is".to_owned(),
        })
    }

    pub(super) fn reduce(
        &mut self,
        queue: usize,
        dst: u32,
        [a, b]: [u32; 2],
        len: u32,
    ) -> Result<(), Fault> {
        for i in 0..len {
            let (x, y) = (self.load(queue, a + i)?, self.load(queue, b + i)?);
            let sum = self.expressions.sum(x, y);
            let sum = sum.ok_or_else(|| Fault::Sum {
                left: self.expressions.text(x),
                right: self.expressions.text(y),
            })?;
            self.store(queue, dst + i, sum)?;
        }
        Ok(())
    }

    fn load(&mut self, queue: usize, cell: u32) -> Result<Value, Fault> {
        let read = (self.traces).read(cell, queue, &self.queues[queue].known.firm);
        read.map_err(|other| self.race(cell, other))?;
        self.values[cell as usize].ok_or_else(|| Fault::Undefined {
            place: self.place(cell),
        })
    }

    fn store(&mut self, queue: usize, cell: u32, value: Value) -> Result<(), Fault> {
        let slot = self.program.memory.slot_of(cell);
        if slot.is_some_and(|slot| self.slots.said(slot) != Said::Free) {
            let place = self.place(cell);
            return Err(Fault::Full { place });
        }
        self.write(queue, cell)?;
        self.values[cell as usize] = Some(value);
        Ok(())
    }

    pub(super) fn write(&mut self, queue: usize, cell: u32) -> Result<(), Fault> {
        let known = &self.queues[queue].known;
        let is_lent = self.program.memory.is_lent(cell);
        let clock = if is_lent { &known.all } else { &known.firm };
        let written = self.traces.write(cell, queue, clock);
        written.map_err(|other| self.race(cell, other))
    }

    fn race(&self, cell: u32, other: usize) -> Fault {
        Fault::Race {
            place: self.place(cell),
            other: self.program.queues[other].rank,
        }
    }

    pub(super) fn place(&self, cell: u32) -> String {
        let (owner, element) = self.program.memory.name(cell);
        format!("element {element} of {owner}")
    }
}
