//! Ctrl-C: the round ends, and with the groups their ranks.

#![allow(unsafe_code, reason = "a signal's handler is set by a system call")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn ask(_signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// From now on an interrupt or a request to end is only noted. The ranks are in process groups of
/// their own and do not see the terminal's.
pub fn on_interrupt() -> Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler does nothing but store to an atomic.
        let before = unsafe { libc::signal(signal, ask as *const () as libc::sighandler_t) };
        if before == libc::SIG_ERR {
            return Err(io::Error::last_os_error()).context("handling interrupts");
        }
    }
    Ok(())
}

/// Whether the user wants an end.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
