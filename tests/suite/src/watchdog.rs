//! Nothing may hang the test run: a test that takes too long ends its process with a message.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Ends the process when its time is up; dropped in time, it does nothing.
#[derive(Debug)]
#[must_use = "dropped at once, it watches nothing"]
pub struct Watchdog {
    _alive: Sender<()>,
}

/// Aborts this process, naming `what`, unless the answer is dropped within `limit`.
pub fn watchdog(what: &str, limit: Duration) -> Watchdog {
    let (alive, ended) = channel();
    let what = what.to_owned();
    std::thread::spawn(move || {
        if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            eprintln!(
                "watchdog: {what} was not done within {limit:?}; ending process {}",
                std::process::id()
            );
            std::process::abort();
        }
    });
    Watchdog { _alive: alive }
}
