//! Runs the programs of all ranks without memory, and notes their messages.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use unisono_plan::ir::ProgramCounter;
use unisono_plan::{Action, Buffer, Op, Place, Program, Shares, Value};

use super::{Message, Rounds, TURNS, turns};
use crate::PlanError;
use crate::programs;
use crate::schedule::Message as Cutting;

/// The most blocks of all ranks whose stages are told apart.
const MOST_BLOCKS: u64 = 4 << 20;

struct Rank {
    counter: ProgramCounter,
    /// How many messages come before what the rank knows now.
    known: u32,
    /// The same, counting bare signals too.
    heard: u32,
    /// The same of what each current slot holds, by the peer that filled it.
    slots: FxHashMap<u32, u32>,
    /// The same of each block of the output, then of scratch, where they are told apart.
    blocks: Vec<u32>,
    waiting: bool,
    done: bool,
    reduced: f64,
    copied: f64,
}

pub(super) struct Walk {
    programs: Vec<Program>,
    /// How often each step of a program stands for itself, where loops were cut.
    times: Vec<Vec<f64>>,
    /// Bytes of a block, where all are equal.
    block: f64,
    geometries: Vec<unisono_plan::Geometry>,
    element: f64,
    ranks: Vec<Rank>,
    channels: FxHashMap<(u32, u32), VecDeque<(u32, bool)>>,
    rounds: Rounds,
}

impl Walk {
    pub(super) fn new(
        mut programs: Vec<Program>,
        op: Op,
        bytes: u64,
        alike: bool,
    ) -> Result<Self, PlanError> {
        let ranks = programs.len() as u32;
        let steps: u64 = programs.iter().map(crate::counted::steps).sum();
        let mut times = Vec::with_capacity(programs.len());
        for program in &mut programs {
            let mut of_step = vec![1.0; program.steps.len()];
            for index in 0..program.loops.len() {
                let around = program.loops[index];
                let turns = if alike {
                    turns(program, &around)
                } else {
                    around.times
                };
                let first = around.first as usize;
                let share = f64::from(around.times) / f64::from(turns.max(1));
                of_step[first..first + around.len as usize].fill(share);
                program.loops[index].times = turns;
            }
            times.push(of_step);
        }
        let equal = programs
            .iter()
            .all(|program| program.shares == Shares::Equal);
        let message = Cutting::new(op, ranks, bytes);
        let geometries = match equal {
            true => Vec::new(),
            false => programs::geometries(&programs, bytes, message.element, 1)?,
        };
        let whole = match op {
            Op::AllToAll => 2 * bytes,
            _ => bytes,
        };
        let blocks = programs.iter().map(|program| u64::from(program.blocks));
        let cut = alike && programs[0].loops.iter().any(|l| l.times == TURNS);
        let told_apart = match blocks.sum::<u64>() <= MOST_BLOCKS && !cut {
            true => 2 * programs[0].blocks as usize,
            false => 0,
        };
        let rank = |_: &Program| Rank {
            counter: ProgramCounter::START,
            known: 0,
            heard: 0,
            slots: FxHashMap::default(),
            blocks: vec![0; told_apart],
            waiting: false,
            done: false,
            reduced: 0.0,
            copied: 0.0,
        };
        Ok(Self {
            block: whole as f64 / f64::from(programs[0].blocks.max(1)),
            geometries,
            element: message.element as f64,
            ranks: programs.iter().map(rank).collect(),
            times,
            programs,
            channels: FxHashMap::default(),
            rounds: Rounds {
                steps,
                ..Rounds::default()
            },
        })
    }

    pub(super) fn rounds(mut self) -> Result<Rounds, PlanError> {
        let mut ready: VecDeque<u32> = (0..self.programs.len() as u32).collect();
        while let Some(rank) = ready.pop_front() {
            self.ranks[rank as usize].waiting = false;
            self.run(rank, &mut ready);
        }
        if let Some(rank) = self.ranks.iter().position(|rank| !rank.done) {
            return Err(programs::ProgramError::Stuck { rank: rank as u32 }.into());
        }
        let most = |of: fn(&Rank) -> f64| self.ranks.iter().map(of).fold(0.0, f64::max);
        let (reduced, copied) = (most(|rank| rank.reduced), most(|rank| rank.copied));
        let mut rounds = self.rounds;
        (rounds.reduced, rounds.copied) = (reduced, copied);
        rounds.messages.sort_by_key(|m| (m.from, m.to, m.stage));
        let last = rounds.messages.iter().map(|m| m.stage as usize + 1).max();
        rounds.stages = last.unwrap_or(0);
        Ok(rounds)
    }

    /// Runs a rank until it ends or waits.
    fn run(&mut self, rank: u32, ready: &mut VecDeque<u32>) {
        let index = rank as usize;
        // One piece.
        while let Some((step, _)) = self.programs[index].seek(&mut self.ranks[index].counter, 1) {
            let times = self.times_of(index);
            if !self.action(rank, step.action, times, ready) {
                self.ranks[index].waiting = true;
                return;
            }
            self.programs[index].pass(&mut self.ranks[index].counter);
        }
        self.ranks[index].done = true;
    }

    fn times_of(&self, index: usize) -> f64 {
        let step = self.ranks[index].counter.step().step() as usize;
        self.times[index].get(step).copied().unwrap_or(1.0)
    }

    fn bytes(&self, index: usize, blocks: unisono_plan::Blocks) -> f64 {
        match self.geometries.get(index) {
            Some(geometry) => geometry.packed(blocks, 0) as f64 * self.element,
            None => f64::from(blocks.count) * self.block,
        }
    }

    /// Runs one action. Gives whether it could.
    fn action(&mut self, me: u32, action: Action, times: f64, ready: &mut VecDeque<u32>) -> bool {
        let index = me as usize;
        match action {
            Action::Copy { src, dst } => {
                let stage = self.stage(index, src);
                self.brought(index, dst, stage);
                let same = matches!((src, dst), (Place::Local { .. }, Place::Local { .. }));
                let bytes = self.bytes(index, dst.blocks());
                if !same {
                    self.ranks[index].copied += bytes * times;
                }
            }
            Action::Reduce { dst, a, b, .. } => {
                let stage = self.stage(index, a).max(self.stage(index, b));
                self.brought(index, dst, stage);
                let bytes = self.bytes(index, dst.blocks());
                self.ranks[index].reduced += bytes * times;
            }
            Action::Put { to, value } => {
                let (stage, signal) = match value {
                    Value::Empty => (self.ranks[index].heard, true),
                    Value::Copy(place) => (self.stage(index, place), false),
                    Value::Reduce { a, b, .. } => {
                        (self.stage(index, a).max(self.stage(index, b)), false)
                    }
                };
                let bytes = self.bytes(index, value.blocks());
                self.rounds.messages.push(Message {
                    from: me,
                    to,
                    stage,
                    bytes: if signal { 0.0 } else { bytes },
                    times,
                });
                let channel = self.channels.entry((me, to)).or_default();
                channel.push_back((stage + 1, signal));
                if let Some(peer) = self.ranks.get_mut(to as usize)
                    && std::mem::replace(&mut peer.waiting, false)
                {
                    ready.push_back(to);
                }
            }
            Action::Wait { from, .. } => {
                let channel = self.channels.get_mut(&(from, me));
                let Some((stage, signal)) = channel.and_then(VecDeque::pop_front) else {
                    return false;
                };
                let rank = &mut self.ranks[index];
                rank.heard = rank.heard.max(stage);
                if !signal {
                    rank.known = rank.known.max(stage);
                }
                rank.slots.insert(from, stage);
            }
            Action::Release { .. } => {}
        }
        true
    }

    /// How many messages come before what a place holds.
    fn stage(&self, index: usize, place: Place) -> u32 {
        let rank = &self.ranks[index];
        match place {
            Place::Slot { from, .. } => rank.slots.get(&from).copied().unwrap_or(rank.known),
            Place::Local {
                buffer: Buffer::In, ..
            } => 0,
            Place::Local { buffer, blocks } if !rank.blocks.is_empty() => {
                let program = &self.programs[index];
                let stages = blocks.iter(program.section).map(|block| {
                    let cell = cell(program, buffer, block);
                    rank.blocks.get(cell).copied().unwrap_or(rank.known)
                });
                stages.max().unwrap_or(0)
            }
            _ => rank.known,
        }
    }

    /// Notes how many messages come before what a place holds from now on.
    fn brought(&mut self, index: usize, place: Place, stage: u32) {
        let Place::Local { buffer, blocks } = place else {
            return;
        };
        let (program, rank) = (&self.programs[index], &mut self.ranks[index]);
        if rank.blocks.is_empty() {
            return;
        }
        for block in blocks.iter(program.section) {
            if let Some(known) = rank.blocks.get_mut(cell(program, buffer, block)) {
                *known = stage;
            }
        }
    }
}

/// Where the stage of a block is kept.
fn cell(program: &Program, buffer: Buffer, block: u32) -> usize {
    let before = match buffer {
        Buffer::Scratch => program.blocks,
        _ => 0,
    };
    (before + block) as usize
}
