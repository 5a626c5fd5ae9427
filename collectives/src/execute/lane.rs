//! A lane: the ordered queue of one communicator's calls, the stream that runs them and the links
//! that carry them.
//!
//! Whoever holds the state's lock drives the lane: lower, submit, poll, retire. Nobody blocks while
//! holding it; a short call may give its core up to other ranks for a moment (`progress/patience.rs`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use unisono_hal::{Cpu, Device, Stream};

use super::direct::LATER;
use super::holdings::Holdings;
use super::op::{Op, Planned};
use super::peer::{Own, Peer, Way};
use super::repeat::{Ended, Key};
use super::state::{GRACE, State};
use crate::error::{Error, Result};
use crate::progress::{Parker, Policy};
use crate::signature::{Call, CallKind};

/// A flush looks again at once for so long, then as often.
const BRISK: Duration = Duration::from_millis(1);

/// Told when a lane fails by itself.
pub(crate) trait OnFailure: Send + Sync {
    /// The lane has failed with this error.
    fn failed(&self, error: &Error);
    /// The lane stands still: the error may be another's consequence, and what comes over the
    /// control channel may say more. False if nobody is left to hear it.
    fn suspects(&self, error: &Error) -> bool;
}

/// An error that may not be the whole story.
struct Suspicion {
    error: Error,
    until: Instant,
}

pub(crate) struct Lane {
    state: Mutex<State>,
    enqueued: AtomicU64,
    completed: AtomicU64,
    failure: OnceLock<Error>,
    failed: AtomicBool,
    suspicion: Mutex<Option<Suspicion>>,
    suspected: AtomicBool,
    /// When the communicator went: nobody waits for what is left.
    orphaned: OnceLock<Instant>,
    /// Whether the process's progress has this lane on its list.
    pub(crate) active: AtomicBool,
    /// Threads asleep until something of this lane completes.
    sleepers: Mutex<Vec<Arc<Parker>>>,
    has_sleepers: AtomicBool,
    /// Whether a sleeper needs descriptors (links) or can use the stream's futex alone.
    pub(crate) posted: bool,
    /// What the calling thread may do by itself, if the device is its CPU.
    pub(crate) cpu: Option<Cpu>,
    /// Bytes of the shuttle of each two ranks.
    pub(crate) shuttle_bytes: u64,
    /// Whether the progress thread looks for answers that are held back.
    answers_watched: AtomicBool,
    on_failure: OnceLock<Box<dyn OnFailure>>,
}

impl Lane {
    pub(crate) fn new(
        own: Own,
        peers: Vec<Peer>,
        device: Device,
        stream: Stream,
        holdings: Holdings,
    ) -> Self {
        let posted = peers.iter().any(|p| matches!(p.way, Way::Posted(_)));
        Self {
            cpu: Cpu::of(&device),
            state: Mutex::new(State::new(own, peers, device, stream, holdings)),
            enqueued: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            failure: OnceLock::new(),
            failed: AtomicBool::new(false),
            suspicion: Mutex::new(None),
            suspected: AtomicBool::new(false),
            orphaned: OnceLock::new(),
            active: AtomicBool::new(false),
            sleepers: Mutex::new(Vec::new()),
            has_sleepers: AtomicBool::new(false),
            posted,
            shuttle_bytes: own.shuttle_bytes(),
            answers_watched: AtomicBool::new(false),
            on_failure: OnceLock::new(),
        }
    }

    pub(crate) fn set_on_failure(&self, hook: Box<dyn OnFailure>) {
        let _ = self.on_failure.set(hook);
    }

    /// Bytes of memory that this rank owns for the lane.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.lock().held_bytes()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// Appends an op; returns its number, from 1.
    pub(crate) fn enqueue(&self, state: &mut State, op: Op) -> u64 {
        state.push(op);
        self.enqueued.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Runs a call at once that is like one of the last, if nothing is before it: as long as one may wait by this `policy`,
    /// then as what `as_op` makes of it. Without a policy nobody waits.
    #[inline]
    pub(crate) fn run_at_once(
        &self,
        state: &mut State,
        key: Key,
        ends: [u64; 2],
        as_op: impl FnOnce(Arc<Planned>, Call) -> Op,
        policy: Option<&Policy>,
    ) -> Ended {
        if !self.is_sound() {
            return Ended::Not;
        }
        // Only who holds the state's lock counts.
        let number = self.enqueued.load(Ordering::Relaxed) + 1;
        let ended = state.run_at_once(number, key, ends, as_op, policy);
        if !matches!(ended, Ended::Not) {
            self.enqueued.store(number, Ordering::Relaxed);
        }
        if matches!(ended, Ended::Done) {
            // Nobody sleeps until then: nobody knows its number.
            self.completed.store(state.complete(), Ordering::Release);
        }
        ended
    }

    /// Whether it has not failed and nothing says that it will.
    fn is_sound(&self) -> bool {
        let wrong = [&self.failed, &self.suspected];
        !wrong.iter().any(|wrong| wrong.load(Ordering::Relaxed)) && self.orphaned.get().is_none()
    }

    /// Whether the communicator is gone with calls unfinished, or with words for its peers that no link
    /// takes. While they only need a moment, they go out: a peer may wait for the last of them, and a
    /// link that is aborted tells it of a failure where there is none.
    fn is_forsaken(&self, state: &State) -> bool {
        self.orphaned
            .get()
            .is_some_and(|gone| !state.is_free() || (gone.elapsed() > GRACE && !state.is_idle()))
    }

    /// When a lane whose communicator is gone must be driven again at the latest.
    pub(crate) fn grace_left(&self) -> Option<Duration> {
        let left = |gone: &Instant| GRACE.saturating_sub(gone.elapsed());
        self.orphaned.get().map(left)
    }

    /// Appends messages that run beside each other; returns the number of all together.
    pub(crate) fn enqueue_messages(&self, state: &mut State, ops: Vec<Op>) -> u64 {
        let before = self.enqueued.fetch_add(1, Ordering::Relaxed);
        state.push_messages(ops);
        before + 1
    }

    /// Ops appended so far.
    pub(crate) fn enqueued(&self) -> u64 {
        self.enqueued.load(Ordering::Acquire)
    }

    /// Ops complete so far.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    /// After a call, with the lock: whether the progress thread is to be told that something was left for later.
    #[inline]
    pub(crate) fn watch_answers(&self, state: &State) -> bool {
        state.leaves_something() && !self.answers_watched.swap(true, Ordering::Relaxed)
    }

    /// Of the progress thread: sends what was left for later and no call has sent. How soon to look again, if at all.
    pub(crate) fn look_at_answers(self: &Arc<Self>) -> Option<Duration> {
        if !self.answers_watched.load(Ordering::Relaxed) {
            return None;
        }
        let Some(mut state) = self.try_lock() else {
            // A call is under way.
            return Some(LATER);
        };
        let (goes_on, again) = state.look_at_answers();
        if goes_on {
            // A link has not taken all: it is to be driven on.
            crate::progress::progress().activate(self);
        }
        // Under the lock: a call that holds one back later sees it.
        self.answers_watched
            .store(again.is_some(), Ordering::Relaxed);
        again
    }

    /// Why the lane failed, if it did.
    pub(crate) fn failure(&self) -> Option<&Error> {
        if self.failed.load(Ordering::Acquire) {
            self.failure.get()
        } else {
            None
        }
    }

    /// Makes what progress is possible now; true if there was any. After a failure: drains.
    pub(crate) fn advance(&self, state: &mut State) -> bool {
        if self.failed.load(Ordering::Relaxed) {
            state.drain();
            return false;
        }
        if self.is_forsaken(state) {
            // No deadline is looked at any more, and no peer need come.
            self.fail_locked(state, Error::Finalized);
            return false;
        }
        if self.suspected.load(Ordering::Relaxed) {
            return false;
        }
        match state.advance() {
            Ok(moved) => match self.retire(state) {
                Ok(()) => moved,
                Err(error) => {
                    self.fail_locked(state, error.clone());
                    self.report(&error);
                    true
                }
            },
            Err(error) if may_be_explained(&error) => {
                // A peer that gave its link up knows why, and says so after its own moments of doubt:
                // whether the other end left in good order, and whether others know better.
                let patience = if is_abort(&error) { 3 * GRACE } else { GRACE };
                let until = Instant::now() + patience;
                *self.suspicion() = Some(Suspicion {
                    error: error.clone(),
                    until,
                });
                self.suspected.store(true, Ordering::Release);
                let heard = self
                    .on_failure
                    .get()
                    .is_some_and(|hook| hook.suspects(&error));
                if !heard {
                    self.fail_locked(state, error);
                }
                false
            }
            Err(error) => {
                self.fail_locked(state, error.clone());
                self.report(&error);
                true
            }
        }
    }

    /// Fails if a peer has called something else than the call that waits since then. True if it does.
    pub(crate) fn look_elsewhere(&self, state: &mut State, since: Instant, now: Instant) -> bool {
        let Some(error) = state.called_elsewhere(since, now) else {
            return false;
        };
        self.fail_locked(state, error.clone());
        self.report(&error);
        true
    }

    /// Fails with what is suspected, once nothing has explained it in time. True while it may be.
    pub(crate) fn look_at_suspicion(&self, now: Instant) -> bool {
        if !self.suspected.load(Ordering::Acquire) {
            return false;
        }
        let expired = self
            .suspicion()
            .take_if(|suspicion| suspicion.until <= now)
            .map(|suspicion| suspicion.error);
        if let Some(error) = expired {
            self.fail(error.clone());
            self.report(&error);
        }
        true
    }

    /// The communicator is gone. Whoever drives the lane next ends what is left of it.
    pub(crate) fn orphan(&self) {
        let _ = self.orphaned.set(Instant::now());
    }

    /// What is suspected, once: it then decides.
    pub(crate) fn take_suspicion(&self) -> Option<Error> {
        self.suspicion().take().map(|suspicion| suspicion.error)
    }

    fn suspicion(&self) -> MutexGuard<'_, Option<Suspicion>> {
        self.suspicion
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, error: &Error) {
        if let Some(hook) = self.on_failure.get() {
            hook.failed(error);
        }
    }

    fn retire(&self, state: &mut State) -> Result<()> {
        let completed = state.retire()?;
        if completed != self.completed.load(Ordering::Relaxed) {
            self.completed.store(completed, Ordering::Release);
            self.wake_sleepers();
        }
        Ok(())
    }

    /// Drives the lane until its queues are quiet and no link is to bring what is owed, at most for `limit`. Who ended a
    /// link that still brings something would reset it, and what it has sent might not arrive.
    pub(crate) fn flush(&self, limit: Duration) {
        let start = Instant::now();
        loop {
            let mut state = self.lock();
            state.send_answers();
            self.advance(&mut state);
            let is_done = state.is_even() && state.is_idle();
            let waited = start.elapsed();
            if is_done || self.failure().is_some() || waited > limit {
                return;
            }
            drop(state);
            match waited < BRISK {
                true => std::thread::yield_now(),
                false => std::thread::sleep(BRISK),
            }
        }
    }

    /// When the communicator goes: ends the links, if nothing is left to be done. Not only when the last who holds the lane
    /// lets go of it: that may be another thread, at which the process's end comes first, and then peers would find their
    /// ends cut off.
    pub(crate) fn end_links(&self) {
        let mut state = self.lock();
        if self.failure().is_none() {
            state.end_links();
        }
    }

    /// Breaks the lane: releases every wait, drops what has not started. False if it is broken already: the first error is
    /// kept.
    pub(crate) fn fail(&self, error: Error) -> bool {
        let mut state = self.lock();
        self.fail_locked(&mut state, error)
    }

    fn fail_locked(&self, state: &mut State, error: Error) -> bool {
        let is_first = self.failure.set(error).is_ok();
        if is_first {
            state.abort();
            self.failed.store(true, Ordering::Release);
            self.wake_sleepers();
        }
        is_first
    }

    fn wake_sleepers(&self) {
        // Pairs with the fence in `add_sleeper`: either that thread sees the new count, or this one
        // sees that thread.
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.has_sleepers.load(Ordering::Relaxed) {
            for parker in self.sleepers().iter() {
                parker.unpark();
            }
        }
    }

    /// From now on completions unpark it. The caller must look at the lane again before it sleeps.
    pub(crate) fn add_sleeper(&self, parker: &Arc<Parker>) {
        let mut sleepers = self.sleepers();
        sleepers.push(parker.clone());
        self.has_sleepers.store(true, Ordering::Relaxed);
        std::sync::atomic::fence(Ordering::SeqCst);
    }

    pub(crate) fn remove_sleeper(&self, parker: &Arc<Parker>) {
        let mut sleepers = self.sleepers();
        if let Some(at) = sleepers.iter().position(|p| Arc::ptr_eq(p, parker)) {
            sleepers.swap_remove(at);
        }
        self.has_sleepers
            .store(!sleepers.is_empty(), Ordering::Relaxed);
    }

    fn sleepers(&self) -> MutexGuard<'_, Vec<Arc<Parker>>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a link says that its peer aborted it: never a cause, always a consequence.
pub(crate) fn is_abort(error: &Error) -> bool {
    let Error::Plugin { source, .. } = error else {
        return false;
    };
    source.status == unisono_hal::Status::Aborted
}

/// Whether an error may be the consequence of something that the control channel tells of: a death,
/// an abort, a call that another rank made before.
fn may_be_explained(error: &Error) -> bool {
    use unisono_hal::Status::{Aborted, Link, Peer};
    match error {
        Error::Plugin { source, .. } => matches!(source.status, Aborted | Link | Peer),
        Error::Mismatch(m) => {
            m.ours.sequence != m.theirs.sequence
                && m.ours.kind != CallKind::SendRecv
                && m.theirs.kind != CallKind::SendRecv
        }
        _ => false,
    }
}
