//! Runs the programs of all ranks until they end or block.

use std::collections::VecDeque;

use crate::ir::{Action, Blocks, Op, Program, ProgramCounter, Shares, Step, Value};

use super::clock::Known;
use super::error::{Blocked, Fault, VerifyError, Waits};
use super::expression::{Expr, Expressions};
use super::hash::Map;
use super::memory::Memory;
use super::{Report, Settings};

/// What a put left in a slot.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) blocks: Blocks,
    pub(super) piece: u32,
    pub(super) values: Vec<Expr>,
    known: Known,
}

/// The queue from one rank to another.
#[derive(Debug, Default)]
pub(super) struct Channel {
    /// Puts that nobody has waited for.
    pub(super) queue: VecDeque<Message>,
    /// The current slot of the receiver.
    pub(super) current: Option<Message>,
}

/// One rank on its way through its program.
#[derive(Debug)]
pub(super) struct Rank {
    pub(super) known: Known,
    pub(super) waits: u64,
    counter: ProgramCounter,
    blocked: Option<Waits>,
    /// Puts to come that have their slots.
    granted: u32,
    /// Waits to come whose puts were there.
    met: u32,
}

/// All ranks, their channels and their memory.
#[derive(Debug)]
pub(super) struct Machine<'a> {
    pub(super) programs: &'a [Program],
    pub(super) settings: Settings,
    pub(super) ranks: u32,
    pub(super) expressions: Expressions,
    pub(super) memory: Memory,
    /// One for each program.
    pub(super) running: Vec<Rank>,
    /// By sender and receiver: those that were ever used.
    pub(super) channels: Map<(u32, u32), Channel>,
    /// The program of each rank.
    index_of: Vec<Option<usize>>,
    pub(super) report: Report,
}

impl<'a> Machine<'a> {
    /// All ranks at their first step. The programs have passed the checks of the header.
    pub(super) fn new(programs: &'a [Program], settings: Settings) -> Self {
        let ranks = programs.first().map_or(0, |program| program.ranks);
        let memory = Memory::new(programs, ranks, settings);
        let mut index_of = vec![None; ranks as usize];
        for (index, program) in programs.iter().enumerate() {
            index_of[program.rank as usize] = Some(index);
        }
        let traced = memory.is_traced();
        let rank = |program: &Program| Rank {
            known: Known::new(program.rank, ranks, traced),
            waits: 0,
            counter: ProgramCounter::START,
            blocked: None,
            granted: 0,
            met: 0,
        };
        Self {
            programs,
            settings,
            ranks,
            expressions: Expressions::new(),
            memory,
            running: programs.iter().map(rank).collect(),
            channels: Map::default(),
            index_of,
            report: Report::default(),
        }
    }

    /// Runs every rank to its end.
    pub(super) fn run(&mut self) -> Result<(), VerifyError> {
        let mut ready: VecDeque<usize> = (0..self.programs.len()).collect();
        while let Some(index) = ready.pop_front() {
            self.run_rank(index, &mut ready)?;
        }
        let blocked: Vec<Blocked> = (self.running.iter().zip(self.programs))
            .filter_map(|(rank, program)| {
                let waits = rank.blocked?;
                let mut counter = rank.counter;
                let (_, piece) = program.seek(&mut counter, self.pieces())?;
                Some(Blocked {
                    rank: program.rank,
                    step: rank.counter.step().number() as usize,
                    piece: piece as u32,
                    waits,
                })
            })
            .collect();
        match blocked.first() {
            None => Ok(()),
            Some(&first) => Err(VerifyError {
                rank: first.rank,
                step: Some(first.step),
                piece: Some(first.piece),
                fault: Fault::Deadlock { blocked },
            }),
        }
    }

    /// The program of a rank, if it takes part.
    pub(super) fn program_of(&self, rank: u32) -> Option<&'a Program> {
        let index = self.index_of.get(rank as usize).copied().flatten()?;
        self.programs.get(index)
    }

    /// Whether what comes has the sizes of the blocks by which the receiver knows it: it is the same
    /// share of what one rank has for another.
    fn same_sizes(&self, program: &Program, blocks: Blocks, values: &[Expr]) -> bool {
        if !matches!(
            (program.op, &program.shares),
            (Op::AllToAll, Shares::Within { .. })
        ) {
            return true;
        }
        let pairs = blocks.iter(program.section).zip(values);
        pairs.into_iter().all(|(name, &value)| {
            let origin = self.expressions.origin(value);
            let Some((rank, number)) = origin else {
                return false;
            };
            let theirs = self.program_of(rank).map(|p| p.share_within_part(number));
            theirs == Some(program.share_within_part(program.number(name)))
        })
    }

    /// The current slot of a channel, if there is one.
    pub(super) fn current(&self, from: u32, to: u32) -> Option<&Message> {
        self.channels.get(&(from, to))?.current.as_ref()
    }

    fn pieces(&self) -> u64 {
        self.settings.pieces.into()
    }

    fn channel(&mut self, from: u32, to: u32) -> &mut Channel {
        self.channels.entry((from, to)).or_default()
    }

    /// Runs a rank until it blocks or ends.
    fn run_rank(&mut self, index: usize, ready: &mut VecDeque<usize>) -> Result<(), VerifyError> {
        let programs = self.programs;
        let program = &programs[index];
        let pieces = self.pieces();
        self.running[index].blocked = None;
        while let Some((step, piece)) = program.seek(&mut self.running[index].counter, pieces) {
            let piece = piece as u32;
            if piece < self.settings.pieces_of(program, step.action) {
                let number = self.running[index].counter.step().number() as usize;
                let early = self.slots_of_group(index, step, piece);
                if let Some(waits) = early.or_else(|| self.puts_of_group(index, step, piece)) {
                    self.running[index].blocked = Some(waits);
                    return Ok(());
                }
                let done = self.action(index, step.action, piece, ready);
                match done.map_err(|fault| VerifyError {
                    rank: program.rank,
                    step: Some(number),
                    piece: Some(piece),
                    fault,
                })? {
                    None => self.report.steps += 1,
                    Some(waits) => {
                        self.running[index].blocked = Some(waits);
                        return Ok(());
                    }
                }
            }
            program.pass(&mut self.running[index].counter);
        }
        Ok(())
    }

    /// Waits for the slots of all puts from here on that follow each other, to different ranks: those who
    /// run programs may do so before the first of them. Who waits later waits for less, so what is proved
    /// of this holds for him.
    fn slots_of_group(&mut self, index: usize, first: Step, piece: u32) -> Option<Waits> {
        let program = &self.programs[index];
        if !matches!(first.action, Action::Put { .. }) {
            return None;
        }
        if let Some(left) = self.running[index].granted.checked_sub(1) {
            self.running[index].granted = left;
            return None;
        }
        let mut cursor = self.running[index].counter.step();
        let mut met = Vec::new();
        let mut next = Some(first);
        while let Some(step) = next {
            let Action::Put { to, .. } = step.action else {
                break;
            };
            let here =
                step.skew == first.skew && piece < self.settings.pieces_of(program, step.action);
            if !here || met.contains(&to) {
                break;
            }
            let slots = self.settings.slots as usize;
            let channel = self.channel(program.rank, to);
            if channel.queue.len() + usize::from(channel.current.is_some()) >= slots {
                return Some(Waits::SlotTo(to));
            }
            met.push(to);
            next = program.follow(&mut cursor);
        }
        self.running[index].granted = (met.len() as u32).saturating_sub(1);
        None
    }

    /// Waits for all puts whose waits come from here on with nothing but this rank's own work and their releases between
    /// them. As above, who waits for fewer together waits for less.
    fn puts_of_group(&mut self, index: usize, first: Step, piece: u32) -> Option<Waits> {
        let program = &self.programs[index];
        if !self.settings.early_waits || !matches!(first.action, Action::Wait { .. }) {
            return None;
        }
        if let Some(left) = self.running[index].met.checked_sub(1) {
            self.running[index].met = left;
            return None;
        }
        let mut cursor = self.running[index].counter.step();
        let mut met: Vec<u32> = Vec::new();
        let mut next = Some(first);
        while let Some(step) = next {
            if step.skew != first.skew {
                break;
            }
            let runs = piece < self.settings.pieces_of(program, step.action);
            match step.action {
                _ if !runs => {}
                Action::Wait { from, .. } => {
                    if met.contains(&from) {
                        break;
                    }
                    let channel = self.channel(from, program.rank);
                    if channel.current.is_some() {
                        break;
                    }
                    if channel.queue.is_empty() {
                        return Some(Waits::PutFrom(from));
                    }
                    met.push(from);
                }
                Action::Copy { .. } | Action::Reduce { .. } => {}
                Action::Release { from } if met.contains(&from) => {}
                Action::Release { .. } | Action::Put { .. } => break,
            }
            next = program.follow(&mut cursor);
        }
        self.running[index].met = (met.len() as u32).saturating_sub(1);
        None
    }

    /// Runs one action, or says for what it has to wait.
    fn action(
        &mut self,
        index: usize,
        action: Action,
        piece: u32,
        ready: &mut VecDeque<usize>,
    ) -> Result<Option<Waits>, Fault> {
        let me = self.programs[index].rank;
        match action {
            Action::Copy { dst, src } => {
                if self.is_same_memory(index, dst, src, piece) {
                    return Ok(None);
                }
                let values = self.load(index, src, piece)?;
                self.store(index, dst, piece, &values)?;
            }
            Action::Reduce { dst, a, b, last } => {
                let values = self.reduce(index, a, b, last, piece)?;
                self.store(index, dst, piece, &values)?;
            }
            Action::Put { to, value } => {
                let slots = self.settings.slots as usize;
                let channel = self.channel(me, to);
                if channel.queue.len() + usize::from(channel.current.is_some()) >= slots {
                    return Ok(Some(Waits::SlotTo(to)));
                }
                let values = match value {
                    Value::Empty => Vec::new(),
                    Value::Copy(src) => self.load(index, src, piece)?,
                    Value::Reduce { a, b, last } => self.reduce(index, a, b, last, piece)?,
                };
                self.report.puts += 1;
                self.report.blocks_put += values.len() as u64;
                let message = Message {
                    blocks: value.blocks(),
                    piece,
                    values,
                    known: self.running[index].known.send(),
                };
                self.channel(me, to).queue.push_back(message);
                self.wake(to, Waits::PutFrom(me), ready);
            }
            Action::Wait { from, blocks } => {
                let op = self.programs[index].op;
                let channel = self.channel(from, me);
                if channel.current.is_some() {
                    return Err(Fault::StillHeld { from });
                }
                let Some(mut message) = channel.queue.pop_front() else {
                    return Ok(Some(Waits::PutFrom(from)));
                };
                // Only in all_to_all the two sides number blocks differently.
                let alike = match op {
                    Op::AllToAll => message.blocks.count == blocks.count,
                    _ => message.blocks == blocks,
                };
                if !alike || message.piece != piece {
                    return Err(contents(from, &message, blocks, piece));
                }
                let program = &self.programs[index];
                if !self.same_sizes(program, blocks, &message.values) {
                    return Err(contents(from, &message, blocks, piece));
                }
                let known = message.known.clone();
                message.blocks = blocks;
                self.channel(from, me).current = Some(message);
                self.running[index].known.receive(&known);
                self.running[index].waits += 1;
            }
            Action::Release { from } => {
                if self.channel(from, me).current.take().is_none() {
                    return Err(Fault::NoSlot { from });
                }
                self.wake(from, Waits::SlotTo(me), ready);
            }
        }
        Ok(None)
    }

    fn wake(&mut self, rank: u32, waits: Waits, ready: &mut VecDeque<usize>) {
        if let Some(index) = self.index_of[rank as usize]
            && self.running[index].blocked == Some(waits)
        {
            self.running[index].blocked = None;
            ready.push_back(index);
        }
    }
}

pub(super) fn contents(from: u32, message: &Message, wanted: Blocks, wanted_piece: u32) -> Fault {
    Fault::Contents {
        from,
        held: message.blocks,
        held_piece: message.piece,
        wanted,
        wanted_piece,
    }
}
