//! Runs a program on symbols, with nothing to rely on but what the contract promises.
//!
//! A queue's commands run in order; a WAIT ends when its flag has come far enough, and knows then
//! what the SIGNAL knew that brought it there. Each queue has a vector clock of what it knows of the
//! others. An access of memory must know every earlier access that it conflicts with: then no order
//! in which queues could run changes what is read, and flags only count up, so none changes who has
//! to wait. One schedule decides for all.
//!
//! Credits order nothing but the use of slots over again, for how many there are is a matter of
//! memory: what holds only because there are few slots is found here too.
//!
//! Beside what is read and written, the protocol of slots is held to its words. A slot is its
//! sender's until he says that it is filled, and its receiver's until he gives it back: neither
//! touches it at the other's time. When a call returns, its caller may overwrite its buffers: that
//! counts as a write of them. What a rank shows to all counts as a put to each of the others. At the end every signal has been waited for once, and every slot given
//! back.

use std::collections::HashMap;
use std::rc::Rc;

use crate::mutation::Mutation;
use crate::program::{Line, Program, Raise, Step};

mod access;
mod channels;
mod ending;
mod expressions;
mod fault;
mod known;
mod signals;
mod slots;
mod traces;

use channels::Channels;
use expressions::{Expressions, Value};
pub use fault::Fault;
use known::Known;
use slots::Slots;
use traces::Traces;

/// Proves that a program does what its case promises; with a mutation, what it then does.
///
/// # Errors
/// The first thing that is wrong.
pub fn replay(program: &Program, mutation: Option<Mutation>) -> Result<(), Fault> {
    let mut machine = Machine::new(program, mutation);
    machine.run()?;
    machine.check()
}

/// A signal that was raised, and what its queue knew.
struct Raised {
    known: Known<Rc<[u32]>>,
    words: Option<[u64; 3]>,
}

/// What a flag has seen.
#[derive(Default)]
struct FlagState {
    raised: Vec<Raised>,
    waits: u64,
}

/// A queue on its way.
struct Running {
    /// The next step, and so how many were done.
    at: usize,
    known: Known<Vec<u32>>,
}

struct Machine<'a> {
    program: &'a Program,
    mutation: Option<Mutation>,
    queues: Vec<Running>,
    flags: Vec<FlagState>,
    counters: Vec<u64>,
    values: Vec<Option<Value>>,
    traces: Traces,
    slots: Slots,
    channels: Channels,
    /// By address, where buffers are that ranks read.
    told: HashMap<u64, u64>,
    expressions: Expressions,
}

impl<'a> Machine<'a> {
    fn new(program: &'a Program, mutation: Option<Mutation>) -> Self {
        let queues = program.queues.len();
        let mut machine = Self {
            program,
            mutation,
            queues: (0..queues)
                .map(|_| Running {
                    at: 0,
                    known: Known::new(queues),
                })
                .collect(),
            flags: program.flags.iter().map(|_| FlagState::default()).collect(),
            counters: vec![0; program.counters],
            values: vec![None; program.memory.cells()],
            traces: Traces::new(program.memory.cells()),
            slots: Slots::new(program.memory.slots() + Channels::shown(program.case.ranks)),
            channels: Channels::new(program.case.ranks, program.memory.slots()),
            told: HashMap::new(),
            expressions: Expressions::default(),
        };
        for (call, ranks) in (0..).zip(&program.calls) {
            for (rank, ends) in (0..).zip(ranks) {
                for (element, cell) in (0..).zip(ends.input.clone()) {
                    let value = machine.expressions.input(call, rank, element);
                    machine.values[cell as usize] = Some(value);
                }
            }
        }
        machine
    }

    /// Runs every queue to its end.
    fn run(&mut self) -> Result<(), Fault> {
        let mut moved = true;
        while moved {
            moved = false;
            for queue in 0..self.queues.len() {
                while self
                    .step(queue)
                    .map_err(|fault| self.locate(fault, queue))?
                {
                    moved = true;
                }
            }
        }
        let stuck = (0..self.queues.len())
            .find(|&queue| self.queues[queue].at < self.program.queues[queue].steps.len());
        match stuck {
            None => Ok(()),
            Some(queue) => Err(self.locate(Fault::Deadlock, queue)),
        }
    }

    /// Runs the next step of a queue; false if it has to wait or has ended.
    fn step(&mut self, queue: usize) -> Result<bool, Fault> {
        let program = self.program;
        let at = self.queues[queue].at;
        let Some(step) = program.queues[queue].steps.get(at) else {
            return Ok(false);
        };
        let mutated = self.mutation.map(|mutation| mutation.at(queue, at));
        let mutated = mutated.unwrap_or_default();
        if let Step::Wait { flag, counter, .. } = step
            && !mutated.waits_not
        {
            let goal = self.counters[*counter as usize];
            let Some(raised) = self.flags[*flag as usize].raised.get(goal as usize) else {
                return Ok(false);
            };
            let by_credit = program.flags[*flag as usize].line == Line::Credit;
            (self.queues[queue].known).learn(&raised.known, by_credit);
        }
        let running = &mut self.queues[queue];
        running.at += 1;
        running.known.advance(queue, at as u32 + 1);
        match step {
            Step::Copy { dst, src, len } => self.copy(queue, *dst, *src, *len)?,
            Step::Reduce { dst, a, b, len } => self.reduce(queue, *dst, [*a, *b], *len)?,
            Step::Raise(_) if mutated.signals_not => {}
            Step::Raise(raise) => {
                let raise = mutated
                    .signals
                    .map_or(*raise, |other| self.other(queue, other));
                self.raise(queue, raise)?;
            }
            Step::Wait { .. } if mutated.waits_not => {}
            Step::Wait {
                flag,
                counter,
                words,
            } => self.waited(queue, *flag, *counter, *words)?,
            Step::Put {
                src,
                dst,
                signal,
                done,
            } => {
                self.copy(queue, *dst, src.start, src.end - src.start)?;
                if let Some(signal) = signal
                    && !mutated.signals_not
                {
                    let signal = mutated.signals.map_or(*signal, |o| self.other(queue, o));
                    self.raise(queue, signal)?;
                }
                if let Some(done) = done
                    && !mutated.is_done_not
                {
                    self.raise(queue, *done)?;
                }
            }
            Step::Tell { line, ends } => {
                self.told.extend((*line..).step_by(8).zip(*ends));
            }
            Step::Keep { dst, src } => {
                for at in [0, 8] {
                    let end = self.told(src + at)?;
                    self.told.insert(dst + at, end);
                }
            }
            Step::Read {
                dst,
                base,
                offset,
                len,
            } => {
                let from = self.told(*base)?.wrapping_add(*offset);
                self.read(queue, *dst, from, *len)?;
            }
            Step::End(call) => self.end(queue, *call)?,
        }
        Ok(true)
    }

    /// The signal of another step of a queue.
    fn other(&self, queue: usize, step: usize) -> Raise {
        match &self.program.queues[queue].steps[step] {
            Step::Raise(raise)
            | Step::Put {
                signal: Some(raise),
                ..
            } => *raise,
            step => unreachable!("only signals are swapped, not {step:?}"),
        }
    }

    /// A call has returned: its caller may do to its buffers what he likes.
    fn end(&mut self, queue: usize, call: u32) -> Result<(), Fault> {
        let rank = self.program.queues[queue].rank;
        self.heard(queue, call)?;
        let ends = &self.program.calls[call as usize][rank as usize];
        for cell in ends.input.clone().chain(ends.output.clone()) {
            self.write(queue, cell)?;
        }
        Ok(())
    }

    fn locate(&self, fault: Fault, queue: usize) -> Fault {
        let lane = &self.program.queues[queue];
        // Who waits has not begun its step; every other fault is of one that has.
        let begun = usize::from(fault != Fault::Deadlock);
        Fault::At {
            rank: lane.rank,
            peer: lane.peer,
            step: self.queues[queue].at - begun,
            fault: Box::new(fault),
        }
    }
}
