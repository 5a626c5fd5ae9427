//! Calls that were started.

#![allow(unsafe_code, reason = "exported functions that take pointers")]

use unisono_collectives::Work;

use super::comm::answer;
use super::result::{Outcome, guard, invalid};

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_work_wait(work: *const Work) -> i32 {
    // SAFETY: the caller gives a live handle.
    guard(|| Ok(unsafe { borrow(work) }?.wait()?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_work_test(work: *const Work, done: *mut i32) -> i32 {
    guard(|| {
        // SAFETY: the caller gives a live handle.
        let is_done = unsafe { borrow(work) }?.is_done()?;
        // SAFETY: the caller gives a place for the answer.
        unsafe { answer("done", done, i32::from(is_done)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_work_free(work: *mut Work) -> i32 {
    guard(|| {
        if !work.is_null() {
            // SAFETY: it comes from a function that starts a call, and the caller gives it back once.
            drop(unsafe { Box::from_raw(work) });
        }
        Ok(())
    })
}

/// # Safety
/// `work` is NULL or a handle that lives for `'a`.
unsafe fn borrow<'a>(work: *const Work) -> Outcome<&'a Work> {
    // SAFETY: the caller promises a live handle.
    unsafe { work.as_ref() }.ok_or_else(|| invalid("work is NULL"))
}
