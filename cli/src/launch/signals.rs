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
pub struct Signals {
    taken: libc::sigset_t,
    before: libc::sigset_t,
}

/// What a thread blocks.
#[derive(Clone, Copy)]
pub struct Mask(libc::sigset_t);

impl Mask {
    /// Makes it this thread's. Safe between fork and exec.
    pub fn apply(&self) {
        // SAFETY: a plain system call on a set that lives. It fails only for arguments that are
        // wrong, and these are not.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
        };
    }
}

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

/// Whether a signal was already ignored when this process started.
fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: a plain C struct, valid when zero, and a system call that writes to it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}

impl Signals {
    /// Blocks them in this thread, but those that whoever started this process wants ignored (as
    /// `nohup` does, and shells for what they run in the background). Threads and processes that
    /// it starts inherit that: see [`Signals::before`].
    pub fn block() -> std::io::Result<Self> {
        // SAFETY: a plain C struct, valid when zero.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        let mut before = set;
        // SAFETY: plain system calls on a set that lives. A parent that ignores SIGCHLD would have
        // handed that down, and children would then leave no exit code.
        let failed = unsafe {
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGCHLD);
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            for signal in FORWARDED.into_iter().filter(|signal| !is_ignored(*signal)) {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before)
        };
        match failed {
            0 => Ok(Self { taken: set, before }),
            error => Err(std::io::Error::from_raw_os_error(error)),
        }
    }

    /// What was blocked before: for children.
    pub fn before(&self) -> Mask {
        Mask(self.before)
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
            libc::sigtimedwait(
                &raw const self.taken,
                std::ptr::null_mut(),
                &raw const limit,
            )
        };
        if signal > 0 && signal != libc::SIGCHLD {
            Received::Forward(signal)
        } else {
            Received::ChildOrNothing
        }
    }
}
