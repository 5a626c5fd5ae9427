//! Signals, taken by waiting for them.

#![allow(unsafe_code, reason = "signal masks")]

use std::time::Duration;

/// Signals that are passed on to the ranks.
const FORWARDED: [libc::c_int; 6] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// The longest wait: what a signal does not tell of is looked at as often.
const LOOK: Duration = Duration::from_millis(100);

/// The signals that this process waits for. They stay blocked until it ends.
pub struct Signals(libc::sigset_t);

/// What a wait gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// A signal for the ranks.
    Forward(libc::c_int),
    /// A child may have ended, or the wait was over.
    ChildOrNothing,
}

/// Whether a signal means the end of whoever gets it.
pub fn ends(signal: libc::c_int) -> bool {
    !matches!(signal, libc::SIGUSR1 | libc::SIGUSR2)
}

impl Signals {
    /// Blocks them in this thread and in those that it starts. Children start with nothing blocked.
    pub fn block() -> std::io::Result<Self> {
        // SAFETY: a plain C struct, valid when zero.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: plain system calls on a set that lives. A parent that ignores SIGCHLD would have
        // handed that down, and children would then leave no exit code.
        let failed = unsafe {
            libc::sigemptyset(&raw mut set);
            for signal in FORWARDED.iter().chain(&[libc::SIGCHLD]) {
                libc::sigaddset(&raw mut set, *signal);
            }
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut())
        };
        match failed {
            0 => Ok(Self(set)),
            error => Err(std::io::Error::from_raw_os_error(error)),
        }
    }

    /// Waits for a signal, at most for `limit` and never for long.
    pub fn wait(&self, limit: Option<Duration>) -> Received {
        let limit = limit.unwrap_or(LOOK).min(LOOK);
        let limit = libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(limit.subsec_nanos()),
        };
        // SAFETY: a plain system call on values that live; no details are asked for.
        let signal = unsafe {
            libc::sigtimedwait(&raw const self.0, std::ptr::null_mut(), &raw const limit)
        };
        if signal > 0 && signal != libc::SIGCHLD {
            Received::Forward(signal)
        } else {
            Received::ChildOrNothing
        }
    }
}
