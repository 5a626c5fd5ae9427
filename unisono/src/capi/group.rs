//! Groups: what a thread calls between `unisono_group_start` and `unisono_group_end`.

#![allow(unsafe_code, reason = "calls that hold handles and addresses")]

use std::cell::RefCell;

use super::call::Checked;
use super::comm::{Comm, borrow};
use super::result::{Failure, Outcome, guard, invalid};

thread_local! {
    static OPEN: RefCell<Open> = RefCell::default();
}

/// The group that a thread has open.
#[derive(Default)]
struct Open {
    /// Starts without their end; 0 if no group is open.
    depth: u32,
    calls: Vec<(*const Comm, Checked)>,
    /// Calls so far, also those that were wrong.
    count: usize,
    /// The first call that was wrong.
    failure: Option<Failure>,
}

/// Whether this thread has a group open.
pub(super) fn is_open() -> bool {
    OPEN.with_borrow(|open| open.depth > 0)
}

/// Adds a call to the open group. What is wrong with it is told at once, and again at the end.
pub(super) fn note(call: impl FnOnce() -> Outcome<(*const Comm, Checked)>) -> Outcome {
    let call = call();
    OPEN.with_borrow_mut(|open| {
        open.count += 1;
        let number = open.count;
        match call {
            Ok(call) => {
                open.calls.push(call);
                Ok(())
            }
            Err(Failure { code, story }) => {
                let story = format!("{story} (call {number} of the group)");
                open.failure.get_or_insert_with(|| Failure {
                    code,
                    story: format!("{story}; nothing of the group was started"),
                });
                Err(Failure { code, story })
            }
        }
    })
}

/// Refuses what cannot be done while a group is open.
pub(super) fn refuse(what: &str, instead: &str) -> Outcome {
    match is_open() {
        false => Ok(()),
        true => Err(invalid(format!(
            "{what}: not between unisono_group_start and unisono_group_end; {instead}"
        ))),
    }
}

#[unsafe(no_mangle)]
extern "C" fn unisono_group_start() -> i32 {
    guard(|| {
        OPEN.with_borrow_mut(|open| open.depth += 1);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_group_end() -> i32 {
    guard(|| {
        let ended = OPEN.with_borrow_mut(|open| match open.depth {
            0 => Err(invalid("group_end: no group was started")),
            1 => Ok(Some(std::mem::take(open))),
            _ => {
                open.depth -= 1;
                Ok(None)
            }
        })?;
        let Some(Open { calls, failure, .. }) = ended else {
            return Ok(());
        };
        if let Some(failure) = failure {
            return Err(failure);
        }
        Ok(unisono_collectives::group(|group| {
            for (comm, call) in &calls {
                // SAFETY: it was live when it was called, and the caller keeps it so to the end.
                let Ok(comm) = (unsafe { borrow(*comm) }) else {
                    continue;
                };
                // SAFETY: the caller gives buffers that hold what the call says, to the end of the
                // group.
                unsafe { group.on(&comm.communicator).raw(call.raw()) }?;
            }
            Ok(())
        })?)
    })
}
