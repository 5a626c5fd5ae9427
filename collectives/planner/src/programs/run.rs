//! Runs programs, and notes what each step waits for.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use unisono_network::{Network, Router};
use unisono_plan::{Action, Blocks, Buffer as Memory, Geometry, Place as Where, Program, Value};

use super::cells::{Cell, Cells};
use super::{Paths, ProgramError, Setting};
use crate::schedule::{Buffer, Extent, Kind, Part, Place, Schedule, StepId, Turn, Weave};

/// A signal that follows another one waits for so many puts again, so as not to wait for the
/// latency of the other one. Of more it only waits for that.
const MOST_HEARD: usize = 64;

/// What a put left in a slot.
#[derive(Debug, Clone)]
struct Filled {
    put: StepId,
    blocks: Blocks,
    piece: u64,
    number: u64,
    readers: Vec<StepId>,
}

/// The queue from one rank to another.
#[derive(Debug, Default)]
struct Channel {
    queue: VecDeque<Filled>,
    current: Option<Filled>,
    puts: u64,
    /// Of each slot that was given back, who had read it.
    released: VecDeque<Vec<StepId>>,
}

/// One rank on its way.
#[derive(Default)]
struct Rank {
    counter: unisono_plan::ir::ProgramCounter,
    cells: Cells,
    /// What its next signal says that it has heard: puts that it waited for, and where those were
    /// many the signal that has told them already.
    heard: Vec<StepId>,
    done: bool,
    waiting: bool,
}

pub(super) struct Run<'a> {
    programs: &'a [Program],
    geometries: &'a [Geometry],
    element: u64,
    slots: u64,
    slot_bytes: u64,
    paths: &'a Paths,
    ranks: Vec<Rank>,
    channels: FxHashMap<(u32, u32), Channel>,
    weave: Weave,
    /// A rank's place in `programs`.
    index_of: FxHashMap<u32, usize>,
}

/// Bytes of a place, and what they depend on.
#[derive(Default)]
struct Operand {
    /// Where they are, run by run.
    runs: Vec<(Place, u64)>,
    after: Vec<StepId>,
    cells: Vec<Cell>,
    slot: Option<u32>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        programs: &'a [Program],
        bytes: u64,
        geometries: &'a [Geometry],
        element: u64,
        setting: Setting,
        paths: &'a Paths,
    ) -> Self {
        let first = &programs[0];
        let widest = programs.iter().map(|p| p.max_put_blocks).max().unwrap_or(0);
        let room = geometries[0].room(widest).saturating_mul(element);
        Self {
            programs,
            geometries,
            element,
            slots: u64::from(setting.slots.max(unisono_plan::ir::MIN_SLOTS)),
            slot_bytes: room.next_multiple_of(16),
            paths,
            ranks: programs.iter().map(|_| Rank::default()).collect(),
            channels: FxHashMap::default(),
            weave: Weave::new(first.op, first.ranks, bytes),
            index_of: programs
                .iter()
                .enumerate()
                .map(|(i, p)| (p.rank, i))
                .collect(),
        }
    }

    pub(super) fn schedule(mut self, network: &Network) -> Result<Schedule, ProgramError> {
        let mut router = Router::new(network);
        if let Some(program) = self.programs.iter().find(|program| program.windowed) {
            return Err(ProgramError::Windowed { rank: program.rank });
        }
        for (index, program) in self.programs.iter().enumerate() {
            let instance = self.instance_bytes(index);
            let instances = u64::from(program.scratch_instances());
            self.weave.scratch(program.rank, instance * instances);
        }
        let mut ready: VecDeque<usize> = (0..self.programs.len()).collect();
        while let Some(index) = ready.pop_front() {
            self.ranks[index].waiting = false;
            self.run_rank(index, &mut ready, &mut router)?;
        }
        match self.ranks.iter().position(|rank| !rank.done) {
            Some(index) => Err(ProgramError::Stuck {
                rank: self.programs[index].rank,
            }),
            None => Ok(self.weave.finish()),
        }
    }

    /// Runs a rank until it ends or waits for another.
    fn run_rank(
        &mut self,
        index: usize,
        ready: &mut VecDeque<usize>,
        router: &mut Router<'_>,
    ) -> Result<(), ProgramError> {
        let programs = self.programs;
        let program = &programs[index];
        let pieces = self.geometries[index].pieces();
        while let Some((step, piece)) = program.seek(&mut self.ranks[index].counter, pieces) {
            if !self.action(index, step.action, piece, ready, router)? {
                self.ranks[index].waiting = true;
                return Ok(());
            }
            program.pass(&mut self.ranks[index].counter);
        }
        self.ranks[index].done = true;
        Ok(())
    }

    /// Runs one action. Gives whether it could.
    fn action(
        &mut self,
        index: usize,
        action: Action,
        piece: u64,
        ready: &mut VecDeque<usize>,
        router: &mut Router<'_>,
    ) -> Result<bool, ProgramError> {
        let me = self.programs[index].rank;
        match action {
            Action::Copy { dst, src } => {
                let a = self.operand(index, src, piece, false);
                self.local(index, Kind::Copy, dst, a, None, piece);
            }
            Action::Reduce { dst, a, b, .. } => {
                let a = self.operand(index, a, piece, false);
                let b = self.operand(index, b, piece, false);
                self.local(index, Kind::Reduce, dst, a, Some(b), piece);
            }
            Action::Put { to, value } => {
                let channel = self.channels.entry((me, to)).or_default();
                let number = channel.puts;
                let credit = match number.checked_sub(self.slots) {
                    None => None,
                    Some(_) => match channel.released.pop_front() {
                        Some(readers) => Some(readers),
                        None => return Ok(false),
                    },
                };
                channel.puts += 1;
                let credit = credit.map(|readers| self.credit(to, me, &readers, router));
                let put = self.put(index, to, value, piece, number, credit)?;
                let filled = Filled {
                    put,
                    blocks: value.blocks(),
                    piece,
                    number,
                    readers: Vec::new(),
                };
                self.channels
                    .entry((me, to))
                    .or_default()
                    .queue
                    .push_back(filled);
                self.wake(to, ready);
            }
            Action::Wait { from, blocks } => {
                let channel = self.channels.entry((from, me)).or_default();
                let Some(mut filled) = channel.queue.pop_front() else {
                    return Ok(false);
                };
                filled.blocks = blocks;
                self.ranks[index].heard.push(filled.put);
                channel.current = Some(filled);
            }
            Action::Release { from } => {
                let channel = self.channels.entry((from, me)).or_default();
                if let Some(filled) = channel.current.take() {
                    // Who only waited has read it too.
                    let readers = match filled.readers.is_empty() {
                        true => vec![filled.put],
                        false => filled.readers,
                    };
                    channel.released.push_back(readers);
                }
                self.wake(from, ready);
            }
        }
        Ok(true)
    }

    fn wake(&mut self, rank: u32, ready: &mut VecDeque<usize>) {
        if let Some(&index) = self.index_of.get(&rank)
            && std::mem::replace(&mut self.ranks[index].waiting, false)
        {
            ready.push_back(index);
        }
    }

    /// The signal that gives a slot back.
    fn credit(
        &mut self,
        from: u32,
        to: u32,
        readers: &[StepId],
        router: &mut Router<'_>,
    ) -> StepId {
        let path = router.path(from, to).unwrap_or_default();
        self.weave.step(Part {
            rank: from,
            peer: to,
            kind: Kind::Signal,
            path: &path,
            extents: &[],
            after: readers,
            priority: 0,
            turn: Turn::Channel,
        })
    }

    fn put(
        &mut self,
        index: usize,
        to: u32,
        value: Value,
        piece: u64,
        number: u64,
        credit: Option<StepId>,
    ) -> Result<StepId, ProgramError> {
        let me = self.programs[index].rank;
        let (a, b) = match value {
            Value::Empty => (Operand::default(), None),
            Value::Copy(place) => (self.operand(index, place, piece, false), None),
            Value::Reduce { a, b, .. } => {
                let b = self.operand(index, b, piece, false);
                (self.operand(index, a, piece, false), Some(b))
            }
        };
        let slot = number % self.slots * self.slot_bytes;
        let place = Place::new(Buffer::Slots { from: me }, slot);
        let size: u64 = a.runs.iter().map(|(_, bytes)| bytes).sum();
        let extents = extents(&a, b.as_ref(), &[(place, size)]);
        let mut after: Vec<StepId> = credit.into_iter().collect();
        after.extend_from_slice(&a.after);
        after.extend(b.iter().flat_map(|b| &b.after));
        let kind = match value {
            Value::Empty => {
                after.extend_from_slice(&self.ranks[index].heard);
                Kind::Signal
            }
            _ => Kind::Put,
        };
        let path = self.paths.get(&(me, to));
        let path = path.ok_or(ProgramError::NoPath { from: me, to })?;
        let step = self.weave.step(Part {
            rank: me,
            peer: to,
            kind,
            path,
            extents: &extents,
            after: distinct(&mut after),
            priority: piece,
            turn: Turn::Channel,
        });
        let heard = &mut self.ranks[index].heard;
        if kind == Kind::Signal && heard.len() > MOST_HEARD {
            heard.clear();
            heard.push(step);
        }
        self.reads(index, &a, step);
        if let Some(b) = &b {
            self.reads(index, b, step);
        }
        Ok(step)
    }

    fn local(
        &mut self,
        index: usize,
        kind: Kind,
        dst: Where,
        a: Operand,
        b: Option<Operand>,
        piece: u64,
    ) {
        let target = self.operand(index, dst, piece, true);
        let same = |operand: &Operand| operand.runs == target.runs;
        if kind == Kind::Copy && same(&a) {
            return;
        }
        let extents = extents(&a, b.as_ref(), &target.runs);
        let mut after = target.after;
        after.extend_from_slice(&a.after);
        after.extend(b.iter().flat_map(|b| &b.after));
        let me = self.programs[index].rank;
        let step = self.weave.step(Part {
            rank: me,
            peer: me,
            kind,
            path: &[],
            extents: &extents,
            after: distinct(&mut after),
            priority: piece,
            turn: Turn::Channel,
        });
        self.reads(index, &a, step);
        if let Some(b) = &b {
            self.reads(index, b, step);
        }
        for cell in target.cells {
            self.ranks[index].cells.written(cell, step);
        }
    }

    fn reads(&mut self, index: usize, operand: &Operand, step: StepId) {
        let me = self.programs[index].rank;
        for &cell in &operand.cells {
            self.ranks[index].cells.read(cell, step);
        }
        if let Some(from) = operand.slot
            && let Some(channel) = self.channels.get_mut(&(from, me))
            && let Some(current) = &mut channel.current
        {
            current.readers.push(step);
        }
    }

    /// Where a place is, and what must be before it is read, or written.
    fn operand(&self, index: usize, place: Where, piece: u64, write: bool) -> Operand {
        let program = &self.programs[index];
        let geometry = &self.geometries[index];
        let mut operand = Operand::default();
        match place {
            Where::Slot { from, blocks } => {
                let channel = self.channels.get(&(from, program.rank));
                if let Some(current) = channel.and_then(|channel| channel.current.as_ref()) {
                    let slot = current.number % self.slots * self.slot_bytes;
                    let start = current.blocks.find(blocks, geometry.section()).unwrap_or(0);
                    let before = geometry.packed_offset(current.blocks, start, current.piece);
                    let bytes = geometry.packed(blocks, piece) * self.element;
                    let offset = slot + before * self.element;
                    let place = Place::new(Buffer::Slots { from }, offset);
                    operand.runs.push((place, bytes));
                    operand.after.push(current.put);
                    operand.slot = Some(from);
                }
            }
            Where::Local { buffer, blocks } | Where::Peer { buffer, blocks, .. } => {
                for name in blocks.iter(geometry.section()) {
                    let range = geometry.piece(name, piece);
                    let bytes = (range.end - range.start) * self.element;
                    let at = self.place(index, buffer, name, piece);
                    join(&mut operand.runs, at, bytes);
                    let cell = self.cell(index, buffer, name, piece);
                    let cells = &self.ranks[index].cells;
                    match write {
                        true => cells.before_write(cell, &mut operand.after),
                        false => cells.before_read(cell, &mut operand.after),
                    }
                    operand.cells.push(cell);
                }
            }
        }
        operand
    }

    fn place(&self, index: usize, buffer: Memory, name: u32, piece: u64) -> Place {
        let (program, geometry) = (&self.programs[index], &self.geometries[index]);
        match buffer {
            Memory::In | Memory::Out => {
                let start = geometry.start_of(program, buffer, program.rank);
                let at = geometry.piece(name, piece).start - start;
                let buffer = match buffer {
                    Memory::In => Buffer::In,
                    _ => Buffer::Out,
                };
                Place::new(buffer, at * self.element)
            }
            Memory::Scratch => {
                let within = geometry.scratch_offset(program.scratch, name, piece);
                let instance = piece % u64::from(program.scratch_instances());
                let base = instance * self.instance_bytes(index);
                Place::new(Buffer::Scratch, base + within * self.element)
            }
        }
    }

    fn cell(&self, index: usize, buffer: Memory, name: u32, piece: u64) -> Cell {
        let program = &self.programs[index];
        match buffer {
            Memory::Scratch => {
                let instance = piece % u64::from(program.scratch_instances());
                (buffer, name, instance)
            }
            _ => (buffer, program.number(name), piece),
        }
    }

    fn instance_bytes(&self, index: usize) -> u64 {
        let blocks = self.programs[index].scratch.count;
        let room = self.geometries[index].room(blocks);
        (room * self.element).next_multiple_of(16)
    }
}

/// Adds a run, as a part of the one before if it goes on there.
fn join(runs: &mut Vec<(Place, u64)>, at: Place, bytes: u64) {
    if bytes == 0 {
        return;
    }
    match runs.last_mut() {
        Some((place, before))
            if place.buffer == at.buffer && place.offset + *before == at.offset =>
        {
            *before += bytes;
        }
        _ => runs.push((at, bytes)),
    }
}

/// Cuts operands and target at each other's runs.
fn extents(a: &Operand, b: Option<&Operand>, to: &[(Place, u64)]) -> Vec<Extent> {
    let mut cuts: Vec<Runs<'_>> = vec![Runs::new(&a.runs), Runs::new(to)];
    cuts.extend(b.map(|b| Runs::new(&b.runs)));
    let mut extents = Vec::new();
    while let Some(bytes) = cuts.iter().map(Runs::left).min().filter(|&bytes| bytes > 0) {
        let places: Vec<Place> = cuts.iter_mut().map(|runs| runs.take(bytes)).collect();
        extents.push(Extent {
            a: places[0],
            b: places.get(2).copied(),
            to: places[1],
            bytes,
        });
    }
    extents
}

/// Goes through runs in steps of any length.
struct Runs<'r> {
    runs: &'r [(Place, u64)],
    at: usize,
    used: u64,
}

impl<'r> Runs<'r> {
    fn new(runs: &'r [(Place, u64)]) -> Self {
        Self {
            runs,
            at: 0,
            used: 0,
        }
    }

    fn left(&self) -> u64 {
        self.runs
            .get(self.at)
            .map_or(0, |(_, bytes)| bytes - self.used)
    }

    fn take(&mut self, bytes: u64) -> Place {
        let (place, all) = self.runs[self.at];
        let taken = Place::new(place.buffer, place.offset + self.used);
        self.used += bytes;
        if self.used >= all {
            self.at += 1;
            self.used = 0;
        }
        taken
    }
}

/// Each step once.
fn distinct(after: &mut Vec<StepId>) -> &[StepId] {
    after.sort_unstable();
    after.dedup();
    after
}
