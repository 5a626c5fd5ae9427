//! The messages of programs, and which must wait for which.
//!
//! A message waits for the messages that brought what it carries; one of a rank's input alone waits
//! for nothing, and neither does what only its order in the program delays. So each message has a
//! *stage*: how many messages come before it. Of blocks it is known which message brought them,
//! unless there are too many: then it is taken to be the last one.
//!
//! Two things keep that short. Where everybody sends as much to everybody else, there is nothing to
//! walk. And loops in which nothing but blocks changes are walked a few times only: what follows is
//! the same.

mod walk;

use unisono_plan::ir::Loop;
use unisono_plan::{Algorithm, Op, Program, Shape, Template};

use crate::PlanError;
use crate::schedule::Message as Cutting;
use walk::Walk;

/// How often loops in which only blocks change are walked.
const TURNS: u32 = 4;
/// The most steps that are walked.
const MOST_STEPS: u64 = 12_000_000;

/// A message, as often as it is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Message {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) stage: u32,
    /// Bytes of one of them.
    pub(super) bytes: f64,
    /// How many follow each other.
    pub(super) times: f64,
}

/// The messages of a plan.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    /// By sender, then receiver.
    messages: Vec<Message>,
    /// Stages in which everybody sends so many bytes to everybody else.
    pub(super) exchanges: Vec<(usize, f64)>,
    pub(super) stages: usize,
    /// Bytes that a rank reduces and copies at most.
    pub(super) reduced: f64,
    pub(super) copied: f64,
    pub(super) steps: u64,
}

impl Rounds {
    pub(super) fn of_rank(&self, from: u32) -> &[Message] {
        let start = self.messages.partition_point(|m| m.from < from);
        let end = self.messages.partition_point(|m| m.from <= from);
        &self.messages[start..end]
    }
}

/// The rounds of a template's programs. None if they are too many to be walked.
pub(super) fn of(
    template: &Template,
    op: Op,
    ranks: u32,
    bytes: u64,
) -> Result<Option<Rounds>, PlanError> {
    if let Some(rounds) = exchange(template, op, ranks, bytes) {
        return Ok(Some(rounds));
    }
    let Some(programs) = programs_of(template, op, ranks)? else {
        return Ok(None);
    };
    // Loops are cut only where all ranks walk them alike, or channels would run dry.
    let alike = programs.iter().all(|p| loops(p) == loops(&programs[0]));
    let length = |program: &Program| match alike {
        true => walked(program),
        false => program.len() as u64,
    };
    if programs.iter().map(length).sum::<u64>() > MOST_STEPS {
        return Ok(None);
    }
    let rounds = Walk::new(programs, op, bytes, alike)?.rounds()?;
    Ok(Some(rounds))
}

/// How often each loop of a program is walked, and how often it runs.
fn loops(program: &Program) -> Vec<(u32, u32)> {
    let of = |l: &Loop| (l.times, turns(program, l));
    program.loops.iter().map(of).collect()
}

/// Where everybody sends as much to everybody else.
fn exchange(template: &Template, op: Op, ranks: u32, bytes: u64) -> Option<Rounds> {
    let algorithm = match template {
        Template::Flat(algorithm) | Template::Ordered { algorithm, .. } => *algorithm,
        _ => return None,
    };
    let message = Cutting::new(op, ranks, bytes);
    let block = bytes as f64 / f64::from(ranks);
    let others = f64::from(ranks - 1);
    let (rounds, each, reduced, copied) = match (algorithm, op) {
        (Algorithm::MeshOneShot | Algorithm::Pairwise, Op::AllToAll) => {
            let block = message.block(0);
            let block = (block.end - block.start) as f64;
            (1, block, 0.0, others * block)
        }
        (Algorithm::MeshOneShot, Op::AllGather) => (1, block, 0.0, others * block),
        (Algorithm::MeshOneShot, Op::ReduceScatter) => (1, block, others * block, 0.0),
        (Algorithm::MeshOneShot, Op::AllReduce) => (1, bytes as f64, others * bytes as f64, 0.0),
        (Algorithm::MeshTwoShot, Op::AllReduce) => (2, block, others * block, others * block),
        (Algorithm::MeshOneShot, Op::Barrier) => (1, 0.0, 0.0, 0.0),
        _ => return None,
    };
    let pairs = u64::from(ranks) * u64::from(ranks - 1);
    Some(Rounds {
        messages: Vec::new(),
        exchanges: (0..rounds).map(|round| (round, each)).collect(),
        stages: rounds,
        reduced,
        copied,
        steps: pairs * 2 * rounds as u64,
    })
}

/// All ranks' programs; none if they are too long. Names of blocks don't matter here, and there may
/// be as many for every rank as there are ranks.
fn programs_of(template: &Template, op: Op, ranks: u32) -> Result<Option<Vec<Program>>, PlanError> {
    let mut programs = Vec::with_capacity(ranks as usize);
    for rank in 0..ranks {
        let mut program = template.generate(&Shape {
            op,
            ranks,
            rank,
            windowed: false,
            turns: false,
        })?;
        program.names = None;
        // Of a rooted operation one rank has more to do than the others.
        if rank > 0 && walked(&program) * u64::from(ranks) > 4 * MOST_STEPS {
            return Ok(None);
        }
        programs.push(program);
    }
    Ok(Some(programs))
}

/// How many steps of a program are walked, if its loops can be cut.
fn walked(program: &Program) -> u64 {
    let inside = |l: &Loop| u64::from(l.len) * u64::from(turns(program, l).saturating_sub(1));
    program.steps.len() as u64 + program.loops.iter().map(inside).sum::<u64>()
}

/// How often a loop is walked.
fn turns(program: &Program, around: &Loop) -> u32 {
    let first = around.first as usize;
    let inside = &program.steps[first..first + around.len as usize];
    let still = |step: &unisono_plan::Step| step.drift.to == 0 && step.drift.from == 0;
    match inside.iter().all(still) {
        true => around.times.min(TURNS),
        false => around.times,
    }
}
