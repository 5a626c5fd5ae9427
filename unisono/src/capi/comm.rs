//! Communicators.

#![allow(unsafe_code, reason = "exported functions that take pointers")]

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, PoisonError};

use unisono_collectives::{AbortHandle, Communicator, Window};

use super::group;
use super::reduction::Reductions;
use super::result::{Outcome, code, guard, invalid};

/// What `unisono_comm` is.
pub(super) struct Comm {
    pub communicator: Communicator,
    abort: AbortHandle,
    /// Memory of `unisono_alloc`, by address.
    pub windows: Mutex<HashMap<u64, Window<u8>>>,
    /// Reductions that the program made.
    pub reductions: Reductions,
}

impl Comm {
    /// A handle.
    pub fn boxed(communicator: Communicator) -> *mut Self {
        Box::into_raw(Box::new(Self {
            abort: communicator.abort_handle(),
            communicator,
            windows: Mutex::default(),
            reductions: Reductions::default(),
        }))
    }
}

/// Borrows a handle.
///
/// # Safety
/// `comm` is NULL or a handle that lives for `'a`.
pub(super) unsafe fn borrow<'a>(comm: *const Comm) -> Outcome<&'a Comm> {
    // SAFETY: the caller promises a live handle.
    unsafe { comm.as_ref() }.ok_or_else(|| invalid("comm is NULL"))
}

/// Where an answer is to be written.
///
/// # Safety
/// `to` is NULL or can be written.
pub(super) unsafe fn answer<T>(name: &str, to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(invalid(format!("{name} is NULL")));
    }
    // SAFETY: the caller promises that it can be written; C gives no initialised value to drop.
    unsafe { to.write(value) };
    Ok(())
}

/// Refuses NULL before work is done whose answer nobody could take.
pub(super) fn wanted<T>(name: &str, to: *mut T) -> Outcome {
    match to.is_null() {
        true => Err(invalid(format!("{name} is NULL"))),
        false => Ok(()),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_rank(comm: *const Comm, rank: *mut u32) -> i32 {
    // SAFETY: the caller gives a live handle and a place for the answer.
    guard(|| unsafe { answer("rank", rank, borrow(comm)?.communicator.rank()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_size(comm: *const Comm, size: *mut u32) -> i32 {
    // SAFETY: the caller gives a live handle and a place for the answer.
    guard(|| unsafe { answer("size", size, borrow(comm)?.communicator.size()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_split(
    comm: *const Comm,
    color: i32,
    key: i64,
    result: *mut *mut Comm,
) -> i32 {
    guard(|| {
        wanted("result", result)?;
        group::refuse("comm_split", ALONE)?;
        let color = match color {
            -1 => None,
            color => Some(u32::try_from(color).map_err(|_| {
                invalid(format!(
                    "color is {color}; give 0 or more, or UNISONO_NO_COLOR"
                ))
            })?),
        };
        // SAFETY: the caller gives a live handle.
        let made = unsafe { borrow(comm) }?.communicator.split(color, key)?;
        // SAFETY: the caller gives a place for a handle.
        unsafe {
            answer(
                "result",
                result,
                made.map_or(std::ptr::null_mut(), Comm::boxed),
            )
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_duplicate(comm: *const Comm, result: *mut *mut Comm) -> i32 {
    guard(|| {
        wanted("result", result)?;
        group::refuse("comm_duplicate", ALONE)?;
        // SAFETY: the caller gives a live handle.
        let made = unsafe { borrow(comm) }?.communicator.duplicate()?;
        // SAFETY: the caller gives a place for a handle.
        unsafe { answer("result", result, Comm::boxed(made)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_shrink(comm: *const Comm, result: *mut *mut Comm) -> i32 {
    guard(|| {
        wanted("result", result)?;
        group::refuse("comm_shrink", ALONE)?;
        // SAFETY: the caller gives a live handle.
        let made = unsafe { borrow(comm) }?.communicator.shrink()?;
        // SAFETY: the caller gives a place for a handle.
        unsafe { answer("result", result, Comm::boxed(made)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_finalize(comm: *mut Comm) -> i32 {
    guard(|| {
        group::refuse("comm_finalize", ALONE)?;
        // SAFETY: the caller gives a live handle that it uses no more, or NULL.
        let Some(comm) = (unsafe { take(comm) }) else {
            return Ok(());
        };
        comm.finalize()
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_finalize_all(comms: *const *mut Comm, size: u32) -> i32 {
    guard(|| {
        group::refuse("comm_finalize_all", ALONE)?;
        wanted("comms", comms.cast_mut())?;
        // SAFETY: the caller gives as many handles, that it uses no more, or NULL.
        let all = unsafe { std::slice::from_raw_parts(comms, size as usize) };
        // SAFETY: as above.
        let all: Vec<_> = all
            .iter()
            .filter_map(|comm| unsafe { take(*comm) })
            .collect();
        // Each waits for the others.
        std::thread::scope(|scope| {
            let left: Vec<_> = (all.into_iter())
                .map(|comm| scope.spawn(move || comm.finalize()))
                .collect();
            let mut result = Ok(());
            for thread in left {
                let left = thread.join();
                let left = left.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                result = result.and(left);
            }
            result
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_destroy(comm: *mut Comm) -> i32 {
    guard(|| {
        group::refuse("comm_destroy", ALONE)?;
        // SAFETY: the caller gives a live handle that it uses no more, or NULL.
        drop(unsafe { take(comm) });
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_abort(comm: *const Comm, reason: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: the caller gives a live handle.
        let comm = unsafe { borrow(comm) }?;
        let reason = if reason.is_null() {
            "no reason given".into()
        } else {
            // SAFETY: the caller gives a text that ends in NUL.
            unsafe { CStr::from_ptr(reason) }.to_string_lossy()
        };
        comm.abort.abort(&reason);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_async_error(comm: *const Comm, error: *mut i32) -> i32 {
    guard(|| {
        // SAFETY: the caller gives a live handle.
        let broken = unsafe { borrow(comm) }?.communicator.async_error();
        // SAFETY: the caller gives a place for the answer.
        unsafe { answer("error", error, broken.as_ref().map_or(0, code)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unisono_comm_forget_recorded(comm: *const Comm) -> i32 {
    guard(|| {
        // SAFETY: the caller gives a live handle.
        let comm = unsafe { borrow(comm) }?;
        // SAFETY: the caller runs no graph with a call of the communicator's any more.
        unsafe { comm.communicator.forget_recorded() };
        Ok(())
    })
}

/// What to do with a function that a group cannot hold.
pub(super) const ALONE: &str = "call it before or after";

/// # Safety
/// `comm` is NULL or a live handle that nobody uses any more.
unsafe fn take(comm: *mut Comm) -> Option<Box<Comm>> {
    // SAFETY: handles come from `Comm::boxed`, and the caller gives each back once.
    (!comm.is_null()).then(|| unsafe { Box::from_raw(comm) })
}

impl Comm {
    /// Leaves together with all ranks, and frees.
    fn finalize(self) -> Outcome {
        let Self {
            communicator,
            windows,
            ..
        } = self;
        // Peers may still write into windows until all have come here.
        let left = communicator.finalize();
        drop(windows);
        Ok(left?)
    }

    /// The memory of `unisono_alloc`.
    pub fn windows(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Window<u8>>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
