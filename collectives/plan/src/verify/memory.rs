//! The buffers of all ranks, one cell for each block of each piece.

use std::ops::Range;

use crate::ir::{Buffer, Op, Program};

use super::Settings;
use super::clock::{Known, Moment};
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
#[derive(Debug, Clone)]
struct Span {
    start: usize,
    /// Numbers of blocks in the message; of scratch, names.
    blocks: Range<u32>,
}

/// All buffers.
#[derive(Debug)]
pub(super) struct Memory {
    pieces: usize,
    in_place: bool,
    /// Whether the blocks of an output are numbered after those of the input.
    out_follows: bool,
    /// Indexed by rank and buffer; absent ranks have empty spans.
    spans: Vec<[Span; 3]>,
    /// Codes of expressions; 0 was never written. Of an input this means what it held at first.
    values: Vec<u32>,
    /// As long as `values` if windows are used, else empty.
    traces: Vec<Trace>,
}

impl Memory {
    /// Memory in which the inputs are defined and nothing else is.
    pub(super) fn new(programs: &[Program], ranks: u32, settings: Settings) -> Self {
        let pieces = settings.pieces as usize;
        let mut spans: Vec<[Span; 3]> = Vec::new();
        spans.resize_with(ranks as usize, || {
            std::array::from_fn(|_| Span {
                start: 0,
                blocks: 0..0,
            })
        });
        let windowed = programs.iter().any(|program| program.windowed);
        let op = programs.first().map(|program| program.op);
        let mut size = 0;
        let mut traces = Vec::new();
        for program in programs {
            let rank = program.rank;
            for buffer in [Buffer::In, Buffer::Out, Buffer::Scratch] {
                let blocks = match buffer {
                    Buffer::Scratch => program.scratch.first..program.scratch.end(),
                    _ => program.held(buffer, rank),
                };
                let cells = blocks.len() * pieces;
                let span = Span {
                    start: size,
                    blocks,
                };
                spans[rank as usize][buffer as usize] = span;
                size += cells;
            }
            if windowed {
                let entry = Known::new(rank, ranks, false).now();
                let trace = Trace {
                    write: entry,
                    reads: Vec::new(),
                };
                traces.resize(size, trace);
            }
        }
        Memory {
            pieces,
            in_place: settings.in_place && op.is_some_and(|op| op.runs_in_place(windowed)),
            out_follows: op == Some(Op::AllToAll),
            spans,
            values: vec![0; size],
            traces,
        }
    }

    /// Whether the order of accesses matters: windows are used.
    pub(super) fn is_traced(&self) -> bool {
        !self.traces.is_empty()
    }

    /// The blocks that a buffer holds: by number, of scratch by name.
    pub(super) fn held(&self, rank: u32, buffer: Buffer) -> Range<u32> {
        self.spans[rank as usize][buffer as usize].blocks.clone()
    }

    /// The cell of a block, if the buffer holds it. In place, that of the output is the input's.
    pub(super) fn cell(&self, rank: u32, buffer: Buffer, block: u32, piece: u32) -> Option<Cell> {
        let spans = &self.spans[rank as usize];
        let own = &spans[buffer as usize];
        if !own.blocks.contains(&block) {
            return None;
        }
        let (mut span, mut block) = (own, block);
        if self.in_place && buffer == Buffer::Out {
            let twin = self.twin(rank, block);
            let input = &spans[Buffer::In as usize];
            if input.blocks.contains(&twin) {
                (span, block) = (input, twin);
            }
        }
        let index = (block - span.blocks.start) as usize;
        Some(Cell(span.start + index * self.pieces + piece as usize))
    }

    /// What a cell holds: that of block `block` of a buffer of `rank`.
    pub(super) fn value(
        &self,
        cell: Cell,
        (rank, buffer, block): (u32, Buffer, u32),
        expressions: &mut Expressions,
    ) -> Option<Expr> {
        let value = Expr::from_code(self.values[cell.0]);
        if value.is_some() {
            return value;
        }
        // Never written: defined only if it is the input, or the output in its place.
        let input = &self.spans[rank as usize][Buffer::In as usize];
        let index = cell.0.checked_sub(input.start)? / self.pieces;
        let inside = index < input.blocks.len() && buffer != Buffer::Scratch;
        let number = match buffer {
            Buffer::In => block,
            _ => self.twin(rank, block),
        };
        inside.then(|| expressions.input(rank, number))
    }

    /// The block of the input that in place is a block of the output: the same one, but in
    /// all_to_all outputs have numbers of their own.
    fn twin(&self, rank: u32, block: u32) -> u32 {
        let [input, output, _] = &self.spans[rank as usize];
        match self.out_follows {
            true => block - output.blocks.start + input.blocks.start,
            false => block,
        }
    }

    pub(super) fn set(&mut self, cell: Cell, value: Expr) {
        self.values[cell.0] = value.code();
    }

    /// Notes a read, or says with which write it races.
    pub(super) fn read(&mut self, cell: Cell, known: &Known) -> Result<(), Conflict> {
        let Some(trace) = self.traces.get_mut(cell.0) else {
            return Ok(());
        };
        ordered(trace.write, true, known)?;
        let now = known.now();
        trace.reads.retain(|read| read.rank != now.rank);
        trace.reads.push(now);
        Ok(())
    }

    /// Notes a write, or says with which access it races. The end of the operation on the rank
    /// that owns the cell counts as a write: the caller may overwrite the buffer.
    pub(super) fn write(&mut self, cell: Cell, known: &Known) -> Result<(), Conflict> {
        let Some(trace) = self.traces.get_mut(cell.0) else {
            return Ok(());
        };
        for &read in &trace.reads {
            ordered(read, false, known)?;
        }
        ordered(trace.write, true, known)?;
        trace.reads.clear();
        trace.write = known.now();
        Ok(())
    }
}

fn ordered(earlier: Moment, other_write: bool, known: &Known) -> Result<(), Conflict> {
    if known.knows(earlier) {
        Ok(())
    } else {
        Err(Conflict {
            other: earlier.rank,
            other_write,
        })
    }
}
