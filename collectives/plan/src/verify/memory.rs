//! The buffers of all ranks, one cell for each block of each piece.

use crate::ir::{Blocks, Buffer, Op, Program};

use super::Settings;
use super::clock::{Clock, Moment};
use super::expression::{Expr, Expressions};

/// Where a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell(usize);

/// Two accesses without order between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Conflict {
    /// The rank of the earlier access.
    pub(super) other: u32,
    /// Whether the earlier access wrote.
    pub(super) other_write: bool,
}

/// Who touched a cell, as far as it still matters.
#[derive(Debug, Clone)]
struct Trace {
    write: Moment,
    reads: Vec<Moment>,
}

/// The part of memory that is one buffer of one rank.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    blocks: Blocks,
}

/// All buffers.
#[derive(Debug)]
pub(super) struct Memory {
    pieces: usize,
    in_place: bool,
    /// The first block of an output whose blocks are numbered apart from the input's, else 0.
    out_from: u32,
    /// Indexed by rank and buffer; absent ranks have empty spans.
    spans: Vec<[Span; 3]>,
    values: Vec<Option<Expr>>,
    /// As long as `values` if windows are used, else empty.
    traces: Vec<Trace>,
}

impl Memory {
    /// Memory in which the inputs are defined and nothing else is.
    pub(super) fn new(
        programs: &[Program],
        ranks: u32,
        settings: Settings,
        expressions: &mut Expressions,
    ) -> Self {
        let nothing = Span {
            start: 0,
            blocks: Blocks::NONE,
        };
        let mut memory = Memory {
            pieces: settings.pieces as usize,
            in_place: settings.in_place,
            out_from: programs.first().map_or(0, |program| match program.op {
                Op::AllToAll => program.blocks / 2,
                _ => 0,
            }),
            spans: vec![[nothing; 3]; ranks as usize],
            values: Vec::new(),
            traces: Vec::new(),
        };
        let windowed = programs.iter().any(|program| program.windowed);
        for program in programs {
            let rank = program.rank;
            for buffer in [Buffer::In, Buffer::Out, Buffer::Scratch] {
                let blocks = match buffer {
                    Buffer::Scratch => program.scratch,
                    _ => program.holds(buffer),
                };
                let start = memory.values.len();
                memory.spans[rank as usize][buffer as usize] = Span { start, blocks };
                for block in blocks.iter() {
                    for piece in 0..settings.pieces {
                        let value =
                            (buffer == Buffer::In).then(|| expressions.input(rank, block, piece));
                        memory.values.push(value);
                    }
                }
            }
            if windowed {
                let entry = Clock::new(rank, ranks).now();
                let trace = Trace {
                    write: entry,
                    reads: Vec::new(),
                };
                memory.traces.resize(memory.values.len(), trace);
            }
        }
        memory
    }

    /// The blocks that a buffer holds.
    pub(super) fn held(&self, rank: u32, buffer: Buffer) -> Blocks {
        self.spans[rank as usize][buffer as usize].blocks
    }

    /// The cell of a block that the buffer holds. In place, that of the output is the input's.
    pub(super) fn cell(&self, rank: u32, buffer: Buffer, block: u32, piece: u32) -> Cell {
        let spans = &self.spans[rank as usize];
        let mut span = spans[buffer as usize];
        let mut block = block;
        let input = spans[Buffer::In as usize];
        if self.in_place && buffer == Buffer::Out {
            // The same block, but in all_to_all the output has the second half of the numbers.
            let twin = block.checked_sub(self.out_from).unwrap_or(block);
            if input.blocks.contains(Blocks::one(twin)) {
                (span, block) = (input, twin);
            }
        }
        let index = (block - span.blocks.first) as usize;
        Cell(span.start + index * self.pieces + piece as usize)
    }

    pub(super) fn value(&self, cell: Cell) -> Option<Expr> {
        self.values[cell.0]
    }

    pub(super) fn set(&mut self, cell: Cell, value: Expr) {
        self.values[cell.0] = Some(value);
    }

    /// Notes a read, or says with which write it races.
    pub(super) fn read(&mut self, cell: Cell, clock: &Clock) -> Result<(), Conflict> {
        let Some(trace) = self.traces.get_mut(cell.0) else {
            return Ok(());
        };
        ordered(trace.write, true, clock)?;
        let now = clock.now();
        trace.reads.retain(|read| read.rank != now.rank);
        trace.reads.push(now);
        Ok(())
    }

    /// Notes a write, or says with which access it races. The end of the operation on the rank
    /// that owns the cell counts as a write: the caller may overwrite the buffer.
    pub(super) fn write(&mut self, cell: Cell, clock: &Clock) -> Result<(), Conflict> {
        let Some(trace) = self.traces.get_mut(cell.0) else {
            return Ok(());
        };
        for &read in &trace.reads {
            ordered(read, false, clock)?;
        }
        ordered(trace.write, true, clock)?;
        trace.reads.clear();
        trace.write = clock.now();
        Ok(())
    }
}

fn ordered(earlier: Moment, other_write: bool, clock: &Clock) -> Result<(), Conflict> {
    if clock.knows(earlier) {
        Ok(())
    } else {
        Err(Conflict {
            other: earlier.rank,
            other_write,
        })
    }
}
