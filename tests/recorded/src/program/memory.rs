//! Memory as cells: one for each element of all that commands touch.

use std::ops::Range;

use super::place::{Owner, Places};
use super::{ELEMENT, len};
use crate::command::Command;
use crate::log::Log;

/// The cells of a program.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Ranges of addresses in order, none of which touch, and the first cell of each.
    regions: Vec<(Range<u64>, u32)>,
    /// By cell, the number of the slot that it is of, if another rank fills it.
    slots: Vec<Option<u32>>,
    /// By cell, the rank that shows others what it puts there.
    shown: Vec<Option<u32>>,
    places: Places,
}

impl Memory {
    /// Cells for all buffers, and for whatever commands of a stream or link name.
    ///
    /// # Errors
    /// Addresses that are of no buffer, slot or scratch, in words.
    pub(crate) fn new(log: &Log) -> Result<Self, String> {
        let places = Places::new(log);
        let mut touched: Vec<Range<u64>> = Vec::new();
        for queue in &log.queues {
            for command in &queue.commands {
                match command {
                    Command::Copy(c) => {
                        touched.extend([c.dst..c.dst + c.bytes, c.src..c.src + c.bytes]);
                    }
                    Command::Reduce(c) => {
                        let bytes = c.elements * ELEMENT;
                        touched.extend([c.dst, c.a, c.b].map(|at| at..at + bytes));
                    }
                    Command::Put(c) => touched.push(c.src..c.src + c.bytes),
                    Command::Read(c) => touched.push(c.dst..c.dst + c.bytes),
                    _ => {}
                }
            }
        }
        for buffers in log.calls.iter().flatten() {
            touched.extend([buffers.input.clone(), buffers.output.clone()]);
        }
        // What links write lies in slots of others.
        touched.extend((0..places.slots()).map(|number| places.nth_slot(number)));
        touched.retain(|range| !range.is_empty());
        touched.sort_by_key(|range| range.start);
        let mut regions: Vec<(Range<u64>, u32)> = Vec::new();
        for range in touched {
            match regions.last_mut() {
                Some((last, _)) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => regions.push((range, 0)),
            }
        }
        let mut cells = 0;
        for (range, first) in &mut regions {
            *first = cells;
            cells += len(range.end - range.start)?;
        }
        let mut memory = Self {
            regions,
            slots: vec![None; cells as usize],
            shown: Vec::new(),
            places,
        };
        let shown = (0..cells).map(|cell| match memory.name(cell).0 {
            Owner::Shown { rank } => Some(rank),
            _ => None,
        });
        memory.shown = shown.collect();
        for number in 0..memory.places.slots() {
            let slot = memory.range(&memory.places.nth_slot(number))?;
            for cell in slot {
                memory.slots[cell as usize] = Some(number);
            }
        }
        Ok(memory)
    }

    /// How many cells there are.
    pub(crate) fn cells(&self) -> usize {
        self.slots.len()
    }

    /// How many slots there are.
    pub(crate) fn slots(&self) -> usize {
        self.places.slots() as usize
    }

    /// The number of the slot that a cell is of, if another rank fills it.
    pub(crate) fn slot_of(&self, cell: u32) -> Option<u32> {
        self.slots[cell as usize]
    }

    /// Whether a cell is used over again, when credits have told that it may be.
    pub(crate) fn is_lent(&self, cell: u32) -> bool {
        self.slot_of(cell).is_some() || self.shown[cell as usize].is_some()
    }

    /// The number of the slot that `from` fills on `owner`.
    pub(crate) fn slot_number(&self, owner: u32, from: u32, number: u32) -> u32 {
        self.places.slot_number(owner, from, number)
    }

    /// The first cell of some bytes.
    pub(crate) fn cell(&self, address: u64, bytes: u64) -> Result<u32, String> {
        if self.places.at(address, bytes).is_none() {
            return Err(format!("{address:#x} is in no buffer, slot or scratch"));
        }
        self.find(address)
    }

    /// The cells of a buffer.
    pub(crate) fn range(&self, at: &Range<u64>) -> Result<Range<u32>, String> {
        if at.is_empty() {
            return Ok(0..0);
        }
        let first = self.find(at.start)?;
        Ok(first..first + len(at.end - at.start)?)
    }

    /// The cells of the slot that `from` fills on `owner`.
    pub(crate) fn slot(&self, owner: u32, from: u32, number: u32) -> Range<u32> {
        self.nth_slot(self.slot_number(owner, from, number))
    }

    /// The cells of the slot of this number among all that ranks fill for each other; none behind those.
    pub(crate) fn nth_slot(&self, number: u32) -> Range<u32> {
        if number >= self.places.slots() {
            return 0..0;
        }
        (self.range(&self.places.nth_slot(number))).unwrap_or(0..0)
    }

    /// Whether a cell is of where a rank shows others what it puts.
    pub(crate) fn is_shown_by(&self, cell: u32, rank: u32) -> bool {
        self.shown[cell as usize] == Some(rank)
    }

    /// What a cell is of, and the number of its element there.
    pub(crate) fn name(&self, cell: u32) -> (Owner, u64) {
        let index = self.regions.partition_point(|(_, first)| *first <= cell);
        let (range, first) = &self.regions[index - 1];
        let address = range.start + u64::from(cell - first) * ELEMENT;
        match self.places.at(address, ELEMENT) {
            Some((owner, start)) => (owner, (address - start) / ELEMENT),
            None => (Owner::Nobody, address),
        }
    }

    fn find(&self, address: u64) -> Result<u32, String> {
        let index = self
            .regions
            .partition_point(|(range, _)| range.start <= address);
        let (range, first) = &self.regions[index.checked_sub(1).ok_or("before all memory")?];
        if address >= range.end {
            return Err(format!("{address:#x} has no cell"));
        }
        Ok(first + len(address - range.start)?)
    }
}
