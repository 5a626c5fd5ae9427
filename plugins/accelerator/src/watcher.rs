//! One thread that wakes whoever sleeps for a device's stream.
//!
//! A device cannot ring a bell. Runtimes can call a function when a stream comes to it, but that holds
//! the stream up, and must be placed before anybody knows that he will sleep. So a thread looks at the
//! numbers that streams write, often at first and then less so: whoever is woken has waited a sixteenth
//! longer than he had to, and at most four milliseconds. It sleeps while nobody does.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use unisono_plugin::{Result, Waker, spawn_quiet};

use crate::stream::Shared;

/// Between looks: at first, and at most.
const FIRST: Duration = Duration::from_micros(20);
const LONGEST: Duration = Duration::from_millis(4);
/// How often a stream that does nothing is asked whether its device still works.
const PROBE: Duration = Duration::from_millis(20);

struct Armed {
    stream: Arc<Shared>,
    /// Commands done when it was armed.
    seen: u64,
    waker: Waker,
    since: Instant,
    probed: Instant,
    woken: bool,
}

struct Watch {
    armed: Mutex<Vec<Armed>>,
    changed: Condvar,
    /// The process that the thread runs in.
    started: Mutex<Option<u32>>,
}

static WATCH: Watch = Watch {
    armed: Mutex::new(Vec::new()),
    changed: Condvar::new(),
    started: Mutex::new(None),
};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `waker` once the stream has done more than `seen` commands, or failed.
pub(crate) fn arm(stream: &Arc<Shared>, seen: u64, waker: Waker) -> Result<()> {
    start()?;
    let now = Instant::now();
    lock(&WATCH.armed).push(Armed {
        stream: Arc::clone(stream),
        seen,
        waker,
        since: now,
        probed: now,
        woken: false,
    });
    WATCH.changed.notify_one();
    Ok(())
}

/// When it returns, the waker of a stream is not called any more.
pub(crate) fn disarm(stream: &Arc<Shared>) {
    // Wakers are called under this lock.
    lock(&WATCH.armed).retain(|armed| !Arc::ptr_eq(&armed.stream, stream));
}

/// A stream was aborted: whoever sleeps for it is woken now.
pub(crate) fn look() {
    WATCH.changed.notify_one();
}

fn start() -> Result<()> {
    let mut started = lock(&WATCH.started);
    if *started == Some(std::process::id()) {
        return Ok(());
    }
    spawn_quiet("unisono-watch", watch)?;
    *started = Some(std::process::id());
    Ok(())
}

fn watch() {
    let mut armed = lock(&WATCH.armed);
    loop {
        let now = Instant::now();
        let mut pause = None;
        for sleeper in armed.iter_mut().filter(|sleeper| !sleeper.woken) {
            if now.duration_since(sleeper.probed) >= PROBE {
                sleeper.probed = now;
                sleeper.stream.probe();
            }
            if sleeper.stream.has_news(sleeper.seen) {
                sleeper.woken = true;
                sleeper.waker.wake();
                continue;
            }
            // A sixteenth of the time that it has waited so far.
            let own = (now.duration_since(sleeper.since) / 16).clamp(FIRST, LONGEST);
            pause = Some(pause.map_or(own, |other: Duration| other.min(own)));
        }
        armed = match pause {
            Some(pause) => {
                let waited = WATCH.changed.wait_timeout(armed, pause);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => WATCH
                .changed
                .wait(armed)
                .unwrap_or_else(PoisonError::into_inner),
        };
    }
}
