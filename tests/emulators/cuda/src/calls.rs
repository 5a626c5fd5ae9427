//! How often each function was called, for tests: what a program asks of a driver is its time.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, PoisonError};

static CALLS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// Counts a call.
pub(crate) fn count(name: &str) {
    let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    match calls.get_mut(name) {
        Some(count) => *count += 1,
        None => {
            calls.insert(name.to_owned(), 1);
        }
    }
}

/// Calls so far of all functions of this process whose names begin with a text. No driver has this.
///
/// # Safety
/// The text ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unisono_emulator_calls(begin: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    let begin = unsafe { CStr::from_ptr(begin) }.to_string_lossy();
    let calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = calls.iter().filter(|(name, _)| name.starts_with(&*begin));
    found.map(|(_, count)| count).sum()
}
