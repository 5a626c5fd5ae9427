//! How functions answer: a code, never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use unisono_emulator::Broken;
use unisono_emulator_cuda::code as other;

/// A code of this runtime's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub i32);

pub const PARAM_INVALID: Code = Code(107_000);
pub const INVALID_DEVICE: Code = Code(107_001);
pub const CONTEXT_NULL: Code = Code(107_002);
pub const STREAM_CONTEXT: Code = Code(107_003);
pub const FEATURE_NOT_SUPPORT: Code = Code(207_000);
pub const MEMORY_ALLOCATION: Code = Code(207_001);
pub const NO_STREAM_RESOURCE: Code = Code(207_008);
pub const NO_NOTIFY_RESOURCE: Code = Code(207_009);
pub const INTERNAL: Code = Code(507_000);
pub const DRV_INTERNAL: Code = Code(507_899);

/// What a function's body gives.
pub type Answer<T = ()> = Result<T, Code>;

/// What another vendor's driver would answer, in this runtime's codes.
impl From<u32> for Code {
    fn from(code: u32) -> Self {
        match code {
            other::INVALID_VALUE | other::INVALID_HANDLE | other::HOST_MEMORY_NOT_REGISTERED => {
                PARAM_INVALID
            }
            other::OUT_OF_MEMORY => MEMORY_ALLOCATION,
            other::INVALID_DEVICE | other::NO_DEVICE => INVALID_DEVICE,
            other::INVALID_CONTEXT | other::NOT_INITIALIZED => CONTEXT_NULL,
            other::NOT_SUPPORTED => FEATURE_NOT_SUPPORT,
            // The links' own, and a device that answers nothing.
            other::NVLINK_UNCORRECTABLE => Self(507_056),
            other::DEVICE_UNAVAILABLE => Self(507_018),
            other::ILLEGAL_ADDRESS => Self(507_015),
            _ => INTERNAL,
        }
    }
}

impl From<Broken> for Code {
    fn from(broken: Broken) -> Self {
        Self::from(other::of(broken))
    }
}

/// The code of an answer; a panic is an internal error.
pub fn answer(name: &str, body: impl FnOnce() -> Answer) -> i32 {
    unisono_emulator::refuse_child(name);
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(Code(code))) => code,
        Err(_) => {
            eprintln!("emulator: {name} panicked");
            INTERNAL.0
        }
    }
}

/// Success of another emulator's function, or its code.
pub fn done(code: u32) -> Answer {
    if code == 0 { Ok(()) } else { Err(code.into()) }
}

/// Writes a function's result where its caller wants it.
///
/// # Safety
/// `to` is NULL or good for a `T`.
pub unsafe fn give<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(PARAM_INVALID);
    }
    // SAFETY: the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}

/// Defines exported functions with bodies that give an [`Answer`].
macro_rules! runtime {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
                $crate::answer::answer(stringify!($name), move || $body)
            }
        )+
    };
}
pub(crate) use runtime;
