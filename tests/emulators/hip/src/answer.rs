//! How functions answer: a code, on the thread's current device; the thread remembers the last that was
//! an error.

use std::cell::Cell;

use unisono_emulator_cuda::answer::{Answer, answer};
use unisono_emulator_cuda::code;

/// What HIP says where the other interface has a code that HIP has not.
const fn translated(code: u32) -> u32 {
    match code {
        // A lost device, a link's error: the launch has failed.
        code::DEVICE_UNAVAILABLE | code::NVLINK_UNCORRECTABLE => code::LAUNCH_FAILED,
        code => code,
    }
}

thread_local! {
    static LAST: Cell<u32> = const { Cell::new(code::SUCCESS) };
}

/// The code of a body.
pub fn hip_answer(name: &str, body: impl FnOnce() -> Answer) -> u32 {
    let code = translated(answer(name, body));
    // That something is not ready yet is no error.
    if code != code::SUCCESS && code != code::NOT_READY {
        LAST.set(code);
    }
    code
}

/// As HIP's manual says.
#[unsafe(no_mangle)]
pub extern "C" fn hipPeekAtLastError() -> u32 {
    LAST.get()
}

#[unsafe(no_mangle)]
#[allow(missing_docs, reason = "HIP's manual")]
pub extern "C" fn hipGetLastError() -> u32 {
    LAST.replace(code::SUCCESS)
}

/// The answer that a function of the other interface gave.
pub const fn from(code: u32) -> Answer {
    match code {
        code::SUCCESS => Ok(()),
        code => Err(code),
    }
}

/// Defines exported functions with bodies that give an [`Answer`]. Those of `current` run with the
/// thread's device current, as the other interface wants it.
macro_rules! hip {
    ($($(#[$meta:meta])* $kind:ident fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)+) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
                $crate::answer::hip_answer(stringify!($name), move || {
                    $crate::answer::hip!(@$kind);
                    $body
                })
            }
        )+
    };
    (@current) => { $crate::device::enter()? };
    (@plain) => {};
}
pub(crate) use hip;
