//! What other threads may see of a stream and do to it.
#![allow(unsafe_code, reason = "flags and counters are words at addresses")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use unisono_plugin::abi::ABORT_STEP;
use unisono_plugin::{QueueControl, QueuePhase, QueueState};

use super::refuse::Refused;
use crate::state::Keep;
use crate::{Line, watcher};

/// The control of one stream.
#[derive(Clone, Debug)]
pub struct StreamControl(pub(super) Arc<Shared>);

/// What a stream shares with its control, the watcher, and its grave.
pub(crate) struct Shared {
    pub(super) line: Line,
    /// Commands accepted.
    pub(super) accepted: AtomicU64,
    /// The last command behind which the device writes a number: what comes later was recorded, not run.
    pub(super) marked: AtomicU64,
    /// Whether graphs of the program's hold what was recorded here, which may run at any time.
    pub(super) is_recorded: AtomicBool,
    aborted: AtomicBool,
    failed: AtomicBool,
    /// The device does nothing any more.
    broken: AtomicBool,
    waits: Mutex<VecDeque<Waiting>>,
    /// What the stream does not take yet.
    refused: Mutex<Option<Refused>>,
    /// Asks the runtime: whether the stream is idle; none if it is broken.
    ask: Box<dyn Fn() -> Option<bool> + Send + Sync>,
    _keep: Keep,
}

/// A wait on its way.
pub(super) struct Waiting {
    /// The number of its command, from 1.
    pub(super) number: u64,
    pub(super) on: On,
}

/// What a wait waits for.
pub(super) enum On {
    /// A flag of a process's signal memory: where the CPU sees it and the counter.
    Flag { flag: u64, counter: u64, value: u64 },
    /// The host, which opens this line.
    Gate(Arc<Line>),
}

/// A word of host memory.
///
/// # Safety
/// Mapped and aligned as long as it is used.
unsafe fn word<'a>(address: u64) -> &'a AtomicU64 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU64::from_ptr(address as usize as *mut u64) }
}

impl On {
    /// Ends the wait, unless what it waits for has come.
    fn release(&self) {
        match self {
            &Self::Flag { flag, value, .. } => {
                // SAFETY: whoever submitted the command keeps its flag until the command is complete,
                // and this is asked only of commands that are not.
                let flag = unsafe { word(flag) };
                let found = flag.load(Ordering::Acquire);
                if found.wrapping_sub(value).cast_signed() < 0 {
                    flag.fetch_add(ABORT_STEP, Ordering::SeqCst);
                }
            }
            Self::Gate(line) => line.open(),
        }
    }

    /// The wait is over: its counter remembers what was seen.
    fn retire(&self) {
        if let &Self::Flag { flag, counter, .. } = self {
            // SAFETY: as above; the caller is the poll that completes it.
            unsafe {
                let seen = word(flag).load(Ordering::Acquire);
                word(counter + 8).store(seen, Ordering::Relaxed);
            }
        }
    }
}

impl Shared {
    pub(super) fn new(
        line: Line,
        ask: Box<dyn Fn() -> Option<bool> + Send + Sync>,
        keep: Keep,
    ) -> Self {
        Self {
            line,
            accepted: AtomicU64::new(0),
            marked: AtomicU64::new(0),
            is_recorded: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            waits: Mutex::default(),
            refused: Mutex::default(),
            ask,
            _keep: keep,
        }
    }

    fn waits(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commands complete: up to the one that found other words.
    pub(super) fn completed(&self) -> u64 {
        // What was accepted is read before the mark, which is published before it.
        let accepted = self.accepted.load(Ordering::Acquire);
        let done = self.line.done();
        let done = if done >= self.marked.load(Ordering::Acquire) {
            accepted.max(done)
        } else {
            done
        };
        self.line
            .found()
            .map_or(done, |(number, _)| done.min(number - 1))
    }

    /// A wait that is not taken yet, if there is one.
    pub(super) fn refuse(&self, refused: Option<Refused>) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
    }

    /// Whether what was not taken can be taken now.
    fn is_due(&self) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.as_ref().is_some_and(|is_over| is_over())
    }

    /// A wait that is about to be handed over; false if the stream was aborted meanwhile.
    pub(super) fn begin(&self, waiting: Waiting) -> bool {
        let mut waits = self.waits();
        if self.is_aborted() {
            return false;
        }
        waits.push_back(waiting);
        true
    }

    /// Whether nobody has aborted it: an abort that comes later finds all waits that were noted before, and
    /// the commands that were published.
    pub(super) fn may_go_on(&self) -> bool {
        let _waits = self.waits();
        !self.is_aborted()
    }

    /// Forgets the waits that are over.
    pub(super) fn retire(&self, completed: u64) {
        let mut waits = self.waits();
        while let Some(wait) = waits.front().filter(|wait| wait.number <= completed) {
            wait.on.retire();
            waits.pop_front();
        }
    }

    /// Ends all waits. A peer may store over it: this is repeated until the stream is quiet.
    fn release(&self) {
        let waits = self.waits();
        let done = self.line.done();
        for wait in waits.iter().filter(|wait| wait.number > done) {
            wait.on.release();
        }
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::SeqCst)
    }

    /// It failed: its waits end, and nothing more is accepted.
    pub(super) fn fail(&self, broken: bool) {
        self.failed.store(true, Ordering::SeqCst);
        if broken {
            self.broken.store(true, Ordering::SeqCst);
        }
        self.release();
        watcher::look();
    }

    /// Ends what waits, from any thread.
    pub(super) fn abort_now(&self) {
        self.aborted.store(true, Ordering::SeqCst);
        self.release();
        watcher::look();
    }

    /// Whether the device has done all that it was given, or does nothing any more. Releases waits that
    /// are left, if the stream was aborted or failed.
    pub(crate) fn is_quiet(&self) -> bool {
        if self.line.done() >= self.marked.load(Ordering::Acquire)
            || self.broken.load(Ordering::Acquire)
        {
            return true;
        }
        if self.is_aborted() || self.failed.load(Ordering::Acquire) {
            self.release();
        }
        self.probe() == Some(true)
    }

    /// Whether the device has not done all that it was given, and may still. What was recorded may be
    /// replayed at any time, and nobody says when.
    pub(crate) fn is_under_way(&self) -> bool {
        if self.is_recorded.load(Ordering::Acquire) {
            return !self.broken.load(Ordering::Acquire);
        }
        if self.is_aborted() || self.failed.load(Ordering::Acquire) {
            // What was not handed over any more is never marked.
            return !self.is_quiet();
        }
        let behind = self.line.done() < self.marked.load(Ordering::Acquire);
        behind && !self.broken.load(Ordering::Acquire)
    }

    /// Asks the runtime whether the stream is idle.
    pub(crate) fn probe(&self) -> Option<bool> {
        let answer = (self.ask)();
        if answer.is_none() {
            self.broken.store(true, Ordering::Release);
        }
        answer
    }

    /// Whether a sleeper should look again.
    pub(crate) fn has_news(&self, seen: u64) -> bool {
        self.completed() != seen
            || self.is_aborted()
            || self.failed.load(Ordering::Relaxed)
            || self.broken.load(Ordering::Relaxed)
            || self.line.found().is_some()
            || self.is_due()
    }
}

impl QueueControl for StreamControl {
    fn query(&self) -> QueueState {
        let shared = &self.0;
        let (completed, accepted) = (shared.completed(), shared.accepted.load(Ordering::Acquire));
        let ended = shared.is_aborted() || shared.failed.load(Ordering::Acquire);
        let phase = if ended {
            if shared.is_quiet() {
                QueuePhase::Failed
            } else {
                QueuePhase::Waiting
            }
        } else if completed >= accepted {
            QueuePhase::Idle
        } else {
            QueuePhase::Waiting
        };
        QueueState {
            phase,
            accepted: accepted.max(completed),
            completed,
            moved: false,
        }
    }

    fn abort(&self) {
        self.0.abort_now();
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("accepted", &self.accepted)
            .field("done", &self.line.done())
            .finish_non_exhaustive()
    }
}
