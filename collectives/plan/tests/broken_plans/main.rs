//! Right programs with one thing broken, each rejected for that reason, at that place.

mod operations;
mod results;
mod shown;
mod slots;
mod structure;
mod windows;

use unisono_plan::Algorithm;
use unisono_plan::ir::{Action, Blocks, Buffer, Op, Place, Program, Step, Value};
use unisono_plan::verify::{Fault, Settings, VerifyError, Waits, programs, verify};

const PLAIN: Settings = Settings {
    slots: 2,
    pieces: 3,
    in_place: false,
    unequal: false,
    early_waits: false,
    unanswered: false,
};
const IN_PLACE: Settings = Settings {
    in_place: true,
    ..PLAIN
};
const BLOCK_0: Blocks = Blocks::one(0);

fn plan(algorithm: Algorithm, op: Op, ranks: u32) -> Vec<Program> {
    sound(programs(algorithm, op, ranks, false).unwrap())
}

fn windowed(algorithm: Algorithm, op: Op, ranks: u32) -> Vec<Program> {
    sound(programs(algorithm, op, ranks, true).unwrap())
}

/// What is broken below was whole before.
///
/// Without loops, so that one step can be changed and no other.
fn sound(plan: Vec<Program>) -> Vec<Program> {
    let plan: Vec<Program> = plan.iter().map(Program::expanded).collect();
    for settings in [PLAIN, IN_PLACE] {
        verify(&plan, settings).unwrap();
    }
    plan
}

fn reject(plan: &[Program], settings: Settings) -> VerifyError {
    let error = verify(plan, settings).expect_err("a broken plan was accepted");
    assert!(error.to_string().starts_with("rank "), "{error}");
    error
}

/// The index of the `nth` step that matches.
fn find(program: &Program, nth: usize, matches: impl Fn(Action) -> bool) -> usize {
    let steps = program.steps.iter().enumerate();
    let mut found = steps.filter(|(_, step)| matches(step.action));
    found.nth(nth).expect("no such step").0
}

fn is_reduce(action: Action) -> bool {
    matches!(action, Action::Reduce { .. })
}

fn is_put(action: Action) -> bool {
    matches!(action, Action::Put { .. })
}

fn is_wait(action: Action) -> bool {
    matches!(action, Action::Wait { .. })
}

fn is_release(action: Action) -> bool {
    matches!(action, Action::Release { .. })
}

fn local(buffer: Buffer) -> Place {
    Place::Local {
        buffer,
        blocks: BLOCK_0,
    }
}

fn at(skew: u16, action: Action) -> Step {
    Step::new(action, skew)
}

/// The rank of a plan whose program has a step that matches.
fn rank_with(plan: &[Program], matches: impl Fn(Action) -> bool) -> usize {
    let has = |program: &Program| program.steps.iter().any(|step| matches(step.action));
    plan.iter().position(has).expect("no such step")
}
