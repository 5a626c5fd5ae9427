//! How functions answer: a code, on the thread's current device.

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

/// The code of a body.
pub fn hip_answer(name: &str, body: impl FnOnce() -> Answer) -> u32 {
    translated(answer(name, body))
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
