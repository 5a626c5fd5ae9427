//! The functions of the C library.

mod completion;
mod device;
mod memory;
mod pair;
mod post;

use std::ffi::{c_char, c_int};

use unisono_plugin_roce::sys::abi::{CompChannel, Context, Cq, Device, Pd};

use crate::device::Folder;
use crate::engine::Engine;
use crate::queue::Bell;

/// Pieces of work that a queue pair takes at most.
const DEPTH_MAX: u32 = 8192;

#[repr(C)]
struct OwnDevice {
    raw: Device,
    folder: Folder,
}

#[repr(C)]
struct OwnContext {
    raw: Context,
    folder: Folder,
    engine: Option<Engine>,
    news: Bell,
    uses: u32,
}

#[repr(C)]
struct OwnPd {
    raw: Pd,
    uses: u32,
}

#[repr(C)]
struct OwnChannel {
    raw: CompChannel,
    bell: Bell,
    queue: *mut Cq,
}

fn fail(code: c_int) {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = code };
}

#[unsafe(no_mangle)]
extern "C" fn ibv_fork_init() -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn ibv_wc_status_str(status: c_int) -> *const c_char {
    let text = match status {
        0 => c"success",
        4 => c"local protection error",
        5 => c"Work Request Flushed Error",
        9 => c"remote invalid request error",
        10 => c"remote access error",
        12 => c"transport retry counter exceeded",
        13 => c"RNR retry counter exceeded",
        _ => c"unknown",
    };
    text.as_ptr()
}
