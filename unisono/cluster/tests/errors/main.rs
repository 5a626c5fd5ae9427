//! Each kind of error, with its exact place, what it says and what it says to do.

#[path = "../common/mod.rs"]
mod common;
mod file;
mod keys;
mod links;
mod rules;
mod secrets;
mod values;

use common::{File, describe, place};
use unisono_cluster::{Problem, ProblemKind, check};

fn problems(text: &str) -> Vec<Problem> {
    match check(&File::new(text).path()) {
        Ok(warnings) => panic!("no problem in:\n{text}\n{warnings:?}"),
        Err(problems) => problems,
    }
}

/// The file has exactly this problem.
#[track_caller]
fn only(text: &str, kind: ProblemKind, at: (u32, u32), message: &str, help: &str) {
    let found = problems(text);
    let shown = describe(&found);
    assert_eq!(found.len(), 1, "{shown}");
    assert_eq!(found[0].kind, kind, "{shown}");
    assert_eq!(place(&found[0].source), at, "{shown}");
    assert!(found[0].message.contains(message), "{shown}");
    assert!(found[0].help.contains(help), "{shown}");
}
