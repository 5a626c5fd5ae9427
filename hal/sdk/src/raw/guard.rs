//! What stands between a call and the plugin's code: poison, panics, and the caller's error struct.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use unisono_abi::status;

use super::structs::write_error;
use crate::{Error, Result, Status};

/// Whether an instance has panicked: shared by it and all that it made.
#[derive(Clone, Debug, Default)]
pub struct Poison(Arc<AtomicBool>);

impl Poison {
    #[inline]
    fn is_set(&self) -> bool {
        // Relaxed: it guards no data; a call that races with the panic may still run.
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a call: its status, with any error written to the caller's struct.
///
/// # Safety
/// `error` is NULL or points to a `unisono_error` whose `struct_size` is set.
#[inline]
pub unsafe fn guard(
    poison: &Poison,
    error: *mut unisono_abi::Error,
    call: impl FnOnce() -> Result<unisono_abi::Status>,
) -> unisono_abi::Status {
    if poison.is_set() {
        // SAFETY: the caller's promise.
        return unsafe { fail(error, &poisoned()) };
    }
    // A panic poisons the instance, so nobody sees what it left half done.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(status)) => status,
        // SAFETY: the caller's promise.
        Ok(Err(e)) => unsafe { fail(error, &e) },
        Err(payload) => {
            poison.set();
            // SAFETY: the caller's promise.
            unsafe { fail(error, &panicked(payload)) }
        }
    }
}

/// Runs a call that answers a plain value, `otherwise` if it cannot.
#[inline]
pub fn guard_value<T>(poison: &Poison, otherwise: T, call: impl FnOnce() -> T) -> T {
    if poison.is_set() {
        return otherwise;
    }
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
        std::mem::forget(payload); // its drop may panic too
        poison.set();
        otherwise
    })
}

/// Runs a call that lets go of something: even if the instance is poisoned.
pub fn guard_release(poison: &Poison, call: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(call)) {
        std::mem::forget(payload); // its drop may panic too
        poison.set();
    }
}

/// Writes an error and answers its status.
///
/// # Safety
/// As for [`guard`].
#[cold]
pub unsafe fn fail(out: *mut unisono_abi::Error, error: &Error) -> unisono_abi::Status {
    // SAFETY: the caller's promise.
    unsafe { write_error(out, error) };
    error.status().code()
}

/// The answer to a NULL where the contract wants a pointer.
///
/// # Safety
/// As for [`guard`].
#[cold]
pub unsafe fn null(out: *mut unisono_abi::Error, what: &'static str) -> unisono_abi::Status {
    // SAFETY: the caller's promise.
    unsafe { fail(out, &Error::invalid(format!("{what} is NULL"))) }
}

#[cold]
fn poisoned() -> Error {
    Error::new(
        Status::Poisoned,
        "this instance panicked earlier; destroy it and create another one",
    )
}

#[cold]
fn panicked(payload: Box<dyn Any + Send>) -> Error {
    let words = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no message)");
    let error = Error::new(Status::Internal, format!("the plugin panicked: {words}"));
    std::mem::forget(payload); // its drop may panic too
    error
}

/// `UNISONO_OK`, for calls that answer nothing else.
pub const OK: unisono_abi::Status = status::OK;
