//! Groups: what a thread calls between `unisono_group_start` and `unisono_group_end`.

#![allow(unsafe_code, reason = "calls that hold handles and addresses")]

use std::cell::RefCell;

use unisono_collectives::Stream;

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
    calls: Vec<Noted>,
    /// Calls so far, also those that were wrong.
    count: usize,
    /// The first call that was wrong.
    failure: Option<Failure>,
}

/// A call of a group.
struct Noted {
    on: *const Comm,
    /// The stream that it is ordered on.
    stream: Option<Stream>,
    call: Checked,
}

/// Whether this thread has a group open.
pub(super) fn is_open() -> bool {
    OPEN.with_borrow(|open| open.depth > 0)
}

/// Adds a call to the open group. What is wrong with it is told at once, and again at the end.
pub(super) fn note(
    on: *const Comm,
    stream: Option<Stream>,
    check: impl FnOnce() -> Outcome<Checked>,
) -> Outcome {
    let call = check();
    OPEN.with_borrow_mut(|open| {
        open.count += 1;
        let number = open.count;
        let other = |noted: &Noted| noted.on == on && noted.stream.is_some() != stream.is_some();
        let call = match call {
            Ok(_) if open.calls.iter().any(other) => Err(invalid(
                "a group's calls on one communicator all have a stream, or none has",
            )),
            call => call,
        };
        match call {
            Ok(call) => {
                open.calls.push(Noted { on, stream, call });
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
            for Noted { on, stream, call } in &calls {
                // SAFETY: it was live when it was called, and the caller keeps it so to the end.
                let Ok(comm) = (unsafe { borrow(*on) }) else {
                    continue;
                };
                let mut on = group.on(&comm.communicator);
                if let Some(stream) = stream {
                    // SAFETY: the caller leaves the buffers alone until the stream is done.
                    unsafe { on.on_stream(stream) }?;
                }
                // SAFETY: the caller gives buffers that hold what the call says, to the end of the
                // group.
                unsafe { on.raw(call.raw()) }?;
            }
            Ok(())
        })?)
    })
}
