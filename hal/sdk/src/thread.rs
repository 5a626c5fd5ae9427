//! Threads of a plugin's own.

use std::thread::JoinHandle;

use crate::{Error, Result, Status};

/// Starts a thread that takes none of the program's signals: it has the mask from its first instruction
/// on, as it inherits it.
///
/// # Errors
/// The system gives no thread.
pub fn spawn_quiet<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let thread = without_signals(|| std::thread::Builder::new().name(name.to_owned()).spawn(run));
    thread.map_err(|error| {
        let what = format!("cannot start the thread {name}");
        Error::system(Status::OutOfMemory, &what, &error)
    })
}

/// Runs this with all signals blocked on the calling thread, and restores its mask. Threads that are started meanwhile,
/// as vendors' drivers start some, take none of the program's signals: they inherit the mask.
pub fn without_signals<T>(run: impl FnOnce() -> T) -> T {
    /// Also if `run` panics.
    struct Restore(libc::sigset_t);
    impl Drop for Restore {
        fn drop(&mut self) {
            restore_signals(self.0);
        }
    }
    let _restore = Restore(block_signals());
    run()
}

#[allow(unsafe_code, reason = "signal sets are filled by the system's library")]
fn block_signals() -> libc::sigset_t {
    // SAFETY: sets of this frame; the first is filled before it is read, the second by the call.
    unsafe {
        let (mut all, mut old) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
        old
    }
}

#[allow(unsafe_code, reason = "as above")]
fn restore_signals(old: libc::sigset_t) {
    // SAFETY: a set that the system gave.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_thread_takes_no_signals() {
        let blocked = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
            u64::from_str_radix(mask.unwrap().trim(), 16).unwrap()
        };
        let before = blocked();
        let there = spawn_quiet("quiet", blocked).unwrap().join().unwrap();
        // The two that the system's library keeps for itself, 32 and 33, KILL and STOP are nobody's.
        let theirs = 0b11 << 31 | 1 << 8 | 1 << 18;
        assert_eq!(there | theirs, u64::MAX);
        assert_eq!(blocked(), before, "the starter's are as they were");
    }
}
