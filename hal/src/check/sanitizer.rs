//! A library that was built with a sanitizer needs its runtime in the process.

use unisono_abi::sanitizer as kind;

use super::refusal::Refusal;

/// A symbol of each sanitizer's runtime.
const RUNTIMES: &[(u32, &std::ffi::CStr)] = &[
    (kind::ADDRESS, c"__asan_init"),
    (kind::THREAD, c"__tsan_init"),
    (kind::MEMORY, c"__msan_init"),
];

pub(super) fn check(plugin: u32) -> Result<(), Refusal> {
    if plugin == kind::NONE || plugin == running() {
        return Ok(());
    }
    Err(Refusal::Sanitizer {
        plugin: name(plugin).map_or_else(|| format!("unknown ({plugin})"), str::to_owned),
        host: name(running()).unwrap_or("none"),
    })
}

/// The sanitizer that runs in this process.
fn running() -> u32 {
    if cfg!(tsan) {
        return kind::THREAD;
    }
    let mut present = RUNTIMES.iter().filter(|(_, symbol)| {
        // SAFETY: a NUL-terminated name; the answer is only compared with NULL.
        unsafe { !libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()).is_null() }
    });
    present.next().map_or(kind::NONE, |(kind, _)| *kind)
}

const fn name(sanitizer: u32) -> Option<&'static str> {
    match sanitizer {
        kind::NONE => Some("none"),
        kind::ADDRESS => Some("address"),
        kind::THREAD => Some("thread"),
        kind::MEMORY => Some("memory"),
        _ => None,
    }
}
