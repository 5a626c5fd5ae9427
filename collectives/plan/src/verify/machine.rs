//! Runs the programs of all ranks until they end or block.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::ir::{Action, Blocks, Op, Program, Value};

use super::clock::Clock;
use super::error::{Blocked, Fault, VerifyError, Waits};
use super::expression::{Expr, Expressions};
use super::memory::Memory;
use super::{Report, Settings};

/// What a put left in a slot.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) blocks: Blocks,
    pub(super) piece: u32,
    pub(super) values: Vec<Expr>,
    clock: Rc<[u32]>,
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
    pub(super) clock: Clock,
    pub(super) waits: u64,
    round: u32,
    step: usize,
    blocked: Option<Waits>,
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
    /// Indexed by sender and receiver.
    channels: Vec<Channel>,
    /// The program of each rank.
    index_of: Vec<Option<usize>>,
    pub(super) report: Report,
}

impl<'a> Machine<'a> {
    /// All ranks at their first step. The programs have passed the checks of the header.
    pub(super) fn new(programs: &'a [Program], settings: Settings) -> Self {
        let ranks = programs.first().map_or(0, |program| program.ranks);
        let mut expressions = Expressions::new(ranks);
        let memory = Memory::new(programs, ranks, settings, &mut expressions);
        let mut index_of = vec![None; ranks as usize];
        for (index, program) in programs.iter().enumerate() {
            index_of[program.rank as usize] = Some(index);
        }
        let rank = |program: &Program| Rank {
            clock: Clock::new(program.rank, ranks),
            waits: 0,
            round: 0,
            step: 0,
            blocked: None,
        };
        let mut channels = Vec::new();
        channels.resize_with(ranks as usize * ranks as usize, Channel::default);
        Self {
            programs,
            settings,
            ranks,
            expressions,
            memory,
            running: programs.iter().map(rank).collect(),
            channels,
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
                Some(Blocked {
                    rank: program.rank,
                    step: rank.step,
                    piece: rank.round - u32::from(program.steps[rank.step].skew),
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

    pub(super) fn channel(&self, from: u32, to: u32) -> &Channel {
        &self.channels[self.channel_index(from, to)]
    }

    fn channel_mut(&mut self, from: u32, to: u32) -> &mut Channel {
        let index = self.channel_index(from, to);
        &mut self.channels[index]
    }

    fn channel_index(&self, from: u32, to: u32) -> usize {
        from as usize * self.ranks as usize + to as usize
    }

    /// Runs a rank until it blocks or ends.
    fn run_rank(&mut self, index: usize, ready: &mut VecDeque<usize>) -> Result<(), VerifyError> {
        let programs = self.programs;
        let program = &programs[index];
        let rounds = self.settings.pieces + u32::from(program.max_skew);
        self.running[index].blocked = None;
        loop {
            let at = &mut self.running[index];
            if at.step == program.steps.len() {
                at.step = 0;
                at.round += 1;
            }
            if at.round >= rounds || program.steps.is_empty() {
                return Ok(());
            }
            let (round, number) = (at.round, at.step);
            let step = program.steps[number];
            let piece = round.wrapping_sub(u32::from(step.skew));
            if piece < self.settings.pieces_of(program, step.action) {
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
            self.running[index].step += 1;
        }
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
                if self.is_same_memory(me, dst, src, piece) {
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
                let channel = self.channel(me, to);
                let used = channel.queue.len() + usize::from(channel.current.is_some());
                if used >= self.settings.slots as usize {
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
                    clock: self.running[index].clock.send(),
                };
                self.channel_mut(me, to).queue.push_back(message);
                self.wake(to, Waits::PutFrom(me), ready);
            }
            Action::Wait { from, blocks } => {
                let op = self.programs[index].op;
                let channel = self.channel_mut(from, me);
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
                let clock = Rc::clone(&message.clock);
                message.blocks = blocks;
                channel.current = Some(message);
                self.running[index].clock.receive(&clock);
                self.running[index].waits += 1;
            }
            Action::Release { from } => {
                let channel = self.channel_mut(from, me);
                if channel.current.take().is_none() {
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
