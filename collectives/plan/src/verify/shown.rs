//! Whether puts can be shown: whether each that is to be is one of a group, to all others, of one value.

use crate::ir::{Action, Program, Step};

use super::error::{Fault, VerifyError};

/// Checks that an executor may [show](crate::ir) the puts of a program.
///
/// That nobody waits for ever though the first put of a group waits for the slots of all, any run shows: it waits so too.
/// Linear in the program's length times its ranks, loops unrolled.
///
/// # Errors
/// The first step that [is shown](Program::shows) and not one of a whole group: as many puts as there are other ranks, one right after the
/// other, of one value and piece, each to another rank.
pub fn check_shown(program: &Program) -> Result<(), VerifyError> {
    let others = program.ranks.saturating_sub(1) as usize;
    let mut group: Vec<Step> = Vec::with_capacity(others);
    for (index, step) in program.walk().enumerate() {
        let wrong = |why| {
            Err(VerifyError {
                rank: program.rank,
                step: Some(index),
                piece: None,
                fault: Fault::Step { why },
            })
        };
        match step.action {
            Action::Put { value, .. } if program.shows(program.rank, value.blocks()) => {
                if group.iter().any(|other| !joins(other, &step)) {
                    return wrong(
                        "what is shown is another value than before, or goes to one rank twice",
                    );
                }
                group.push(step);
                if group.len() == others {
                    group.clear();
                }
            }
            _ if group.is_empty() => {}
            _ => return wrong("what is shown does not go to everybody, one right after the other"),
        }
    }
    match group.first() {
        None => Ok(()),
        Some(_) => Err(VerifyError {
            rank: program.rank,
            step: None,
            piece: None,
            fault: Fault::Step {
                why: "what is shown last does not go to everybody",
            },
        }),
    }
}

/// Whether two steps put the same to different ranks, of the same piece.
fn joins(one: &Step, other: &Step) -> bool {
    match (one.action, other.action) {
        (
            Action::Put { to, value },
            Action::Put {
                to: too,
                value: same,
            },
        ) => to != too && value == same && one.skew == other.skew && !other.begins,
        _ => false,
    }
}
