//! How functions answer: a code, never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::code;

/// What a function's body gives.
pub type Answer<T = ()> = Result<T, u32>;

/// The code of an answer; a panic is an unknown error.
pub fn answer(name: &str, body: impl FnOnce() -> Answer) -> u32 {
    unisono_emulator::refuse_child(name);
    crate::calls::count(name);
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => code::SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => {
            eprintln!("emulator: {name} panicked");
            code::UNKNOWN
        }
    }
}

/// Writes a function's result where its caller wants it.
///
/// # Safety
/// `to` is NULL or good for a `T`.
pub unsafe fn give<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}

/// Defines exported functions with bodies that give an [`Answer`].
macro_rules! driver {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
                $crate::answer::answer(stringify!($name), move || $body)
            }
        )+
    };
}
pub(crate) use driver;
