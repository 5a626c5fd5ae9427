//! A lane: the ordered queue of one communicator's calls, the stream that runs them and the links
//! that carry them.
//!
//! Whoever holds the state's lock drives the lane: lower, submit, poll, retire. Nobody blocks while
//! holding it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use unisono_hal::{Batch, Device, Memory, MemoryKind, MemoryRequest, Queue, Stream};

use super::lower::{Cursor, Lowering, Waiting};
use super::op::Op;
use super::peer::{Ended, Own, Peer, Posted, Way};
use super::place::Run;
use crate::error::{Error, Mismatch, RankStatus, Result};
use crate::progress::Parker;
use crate::signature::{Call, CallKind};

/// Bytes that one poll moves before the lane looks at its links and its lock again.
const BUDGET: u64 = 1 << 20;

/// Collectives that a rank remembers, to tell others what it called when.
const HISTORY: usize = 64;

/// How long the news that explains a suspicious error may take to arrive.
const GRACE: Duration = Duration::from_secs(1);

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
    /// The communicator is gone: nobody waits for what is left.
    orphaned: AtomicBool,
    /// Whether the process's progress has this lane on its list.
    pub(crate) active: AtomicBool,
    /// Threads asleep until something of this lane completes.
    sleepers: Mutex<Vec<Arc<Parker>>>,
    has_sleepers: AtomicBool,
    /// Whether a sleeper needs descriptors (links) or can use the stream's futex alone.
    pub(crate) posted: bool,
    on_failure: OnceLock<Box<dyn OnFailure>>,
}

pub(crate) struct State {
    own: Own,
    peers: Vec<Peer>,
    device: Device,
    stream: Stream,
    /// Commands that the stream has finished, as of the last poll.
    finished: u64,
    posted: bool,
    batch: Batch,
    cursor: Cursor,
    waiting: VecDeque<Waiting>,
    runs: Vec<Run>,
    scratch: Option<Memory>,
    /// Scratch that was too small for a later op; ops in flight may still use it.
    outgrown: Vec<Memory>,
    /// Not yet fully handed to the stream; the first may be on its way.
    queue: VecDeque<Op>,
    lowered: bool,
    /// Handed over: the stream's command count at which each is complete.
    flight: VecDeque<(u64, Op)>,
    /// Commands given to the stream's batches so far.
    emitted: u64,
    /// Ops begun so far.
    number: u64,
    /// Collectives called so far.
    collectives: u32,
    /// The last collectives, by number modulo the length.
    history: [Option<Call>; HISTORY],
    /// The arena and what peers gave to map: freed after the stream and the links.
    _memories: Vec<Memory>,
}

impl Lane {
    pub(crate) fn new(
        own: Own,
        peers: Vec<Peer>,
        device: Device,
        stream: Stream,
        memories: Vec<Memory>,
    ) -> Self {
        let posted = peers.iter().any(|p| matches!(p.way, Way::Posted(_)));
        Self {
            state: Mutex::new(State {
                own,
                peers,
                device,
                stream,
                finished: 0,
                posted,
                batch: new_batch(),
                cursor: Cursor::default(),
                waiting: VecDeque::new(),
                runs: Vec::new(),
                scratch: None,
                outgrown: Vec::new(),
                queue: VecDeque::new(),
                lowered: false,
                flight: VecDeque::new(),
                emitted: 0,
                number: 0,
                collectives: 0,
                history: [None; HISTORY],
                _memories: memories,
            }),
            enqueued: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            failure: OnceLock::new(),
            failed: AtomicBool::new(false),
            suspicion: Mutex::new(None),
            suspected: AtomicBool::new(false),
            orphaned: AtomicBool::new(false),
            active: AtomicBool::new(false),
            sleepers: Mutex::new(Vec::new()),
            has_sleepers: AtomicBool::new(false),
            posted,
            on_failure: OnceLock::new(),
        }
    }

    pub(crate) fn set_on_failure(&self, hook: Box<dyn OnFailure>) {
        let _ = self.on_failure.set(hook);
    }

    /// Bytes of memory that this rank owns for the lane.
    pub(crate) fn held_bytes(&self) -> u64 {
        let state = self.lock();
        if state.peers.len() < 2 {
            return 0;
        }
        let arena = state.own.arena;
        let scratch = state.scratch.as_ref().map_or(0, Memory::len);
        arena.signal_bytes() + arena.slots_bytes() + scratch
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
        state.remember(op.call);
        state.queue.push_back(op);
        self.enqueued.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Ops complete so far.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
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
        if self.orphaned.load(Ordering::Relaxed) {
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
                let until = Instant::now() + GRACE;
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
        self.orphaned.store(true, Ordering::Relaxed);
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
        let Some((end, _)) = state.flight.front() else {
            return Ok(());
        };
        let completed = state.finished;
        if *end > completed {
            return Ok(());
        }
        let mut count = 0;
        while let Some((end, op)) = state.flight.front()
            && *end <= completed
        {
            op.check(state.own.rank)?;
            state.flight.pop_front();
            count += 1;
        }
        if state.flight.is_empty() {
            state.outgrown.clear();
        }
        self.completed.fetch_add(count, Ordering::Release);
        self.wake_sleepers();
        Ok(())
    }

    /// Drives the lane until its queues are quiet, at most for `limit`.
    pub(crate) fn flush(&self, limit: Duration) {
        let end = Instant::now() + limit;
        loop {
            let mut state = self.lock();
            self.advance(&mut state);
            if state.is_idle() || self.failure().is_some() || Instant::now() > end {
                return;
            }
            drop(state);
            std::thread::yield_now();
        }
    }

    /// Breaks the lane: releases every wait, drops what has not started.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.lock();
        self.fail_locked(&mut state, error);
    }

    fn fail_locked(&self, state: &mut State, error: Error) {
        if self.failure.set(error).is_ok() {
            state.abort();
            self.failed.store(true, Ordering::Release);
            self.wake_sleepers();
        }
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

impl State {
    /// The number of this rank's next collective.
    pub(crate) fn next_collective(&mut self) -> u32 {
        let number = self.collectives;
        self.collectives = number.wrapping_add(1);
        number
    }

    /// The number of the next message to or from a peer.
    pub(crate) fn next_message(&mut self, peer: u32, sent: bool) -> u32 {
        let peer = &mut self.peers[peer as usize];
        let count = if sent {
            &mut peer.messages_sent
        } else {
            &mut peer.messages_received
        };
        let number = *count;
        *count = number.wrapping_add(1);
        number
    }

    /// Nothing queued, nothing in flight, links quiet: nobody need drive it.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
            && self.flight.is_empty()
            && self.peers.iter().all(|peer| match &peer.way {
                Way::Posted(p) => p.ended.is_some() || (p.batch.is_empty() && is_quiet(&p.link)),
                Way::Own | Way::Mapped { .. } => true,
            })
    }

    /// The oldest op that is not complete.
    pub(crate) fn current(&mut self) -> Option<&mut Op> {
        match self.flight.front_mut() {
            Some((_, op)) => Some(op),
            None => self.queue.front_mut(),
        }
    }

    fn remember(&mut self, call: Call) {
        if call.kind != CallKind::SendRecv {
            self.history[call.sequence as usize % HISTORY] = Some(call);
        }
    }

    /// The collective of this number, if this rank has called it and remembers.
    pub(crate) fn called(&self, sequence: u32) -> Option<Call> {
        self.history[sequence as usize % HISTORY].filter(|call| call.sequence == sequence)
    }

    /// What this rank is doing, for an error.
    pub(crate) fn status(&self, finished: u64) -> RankStatus {
        let waits = self.waiting.iter().find(|w| w.command >= self.finished);
        let op = self.flight.front().map(|(_, op)| op);
        let call = op.or(self.queue.front()).map(|op| op.call);
        RankStatus {
            rank: self.own.rank,
            call,
            finished,
            waits_for: call.and(waits).map(|w| (w.peer, w.step)),
        }
    }

    pub(crate) fn queues(&mut self) -> impl Iterator<Item = &mut dyn Queue> {
        let links = self
            .peers
            .iter_mut()
            .filter_map(|peer| match &mut peer.way {
                Way::Posted(posted) => Some(&mut posted.link as &mut dyn Queue),
                Way::Own | Way::Mapped { .. } => None,
            });
        std::iter::once(&mut self.stream as &mut dyn Queue).chain(links)
    }

    fn advance(&mut self) -> Result<bool> {
        let mut moved = self.feed()?;
        let polled = self.stream.poll(BUDGET);
        match polled {
            Ok(polled) => {
                moved |= polled.moved;
                self.finished = polled.completed;
                self.forget_waits();
            }
            Err(error) => return Err(self.stream_error(error)),
        }
        if self.posted {
            moved |= self.drive_links(|posted| Ok(posted.link.poll(BUDGET)?.moved))?;
            self.check_ended()?;
        }
        Ok(moved)
    }

    fn forget_waits(&mut self) {
        let done = self.finished;
        while self.waiting.front().is_some_and(|w| w.command < done) {
            self.waiting.pop_front();
        }
    }

    /// Lowers and submits as much as the queues take.
    fn feed(&mut self) -> Result<bool> {
        let mut moved = false;
        loop {
            if self.batch.is_empty() && !self.lowered && !self.lower()? {
                return Ok(moved | self.submit_links()?);
            }
            let before = self.batch.len();
            if before > 0 {
                match self.stream.submit(&mut self.batch) {
                    Ok(accepted) => moved |= accepted > 0,
                    Err(error) => return Err(self.stream_error(error)),
                }
            }
            self.submit_links()?;
            if !self.batch.is_empty() {
                return Ok(moved);
            }
            if self.lowered {
                self.lowered = false;
                if let Some(op) = self.queue.pop_front() {
                    self.flight.push_back((self.emitted, op));
                }
            }
        }
    }

    /// Writes the next batch; false if there is nothing to lower.
    fn lower(&mut self) -> Result<bool> {
        let Some(op) = self.queue.front() else {
            return Ok(false);
        };
        // Commands that were taken still lie in the batch; forget them.
        self.batch.clear();
        if self.cursor.is_start() {
            self.number += 1;
            let scratch = op.planned.scratch_bytes();
            if scratch > self.scratch.as_ref().map_or(0, Memory::len) {
                let request = MemoryRequest::new(MemoryKind::Data, scratch);
                let larger = self.device.alloc(&request)?;
                self.outgrown.extend(self.scratch.replace(larger));
            }
        }
        let scratch = self.scratch.as_ref().map_or(0, Memory::base);
        let mut lowering = Lowering {
            own: self.own,
            peers: &mut self.peers,
            posted: self.posted,
            stream: &mut self.batch,
            emitted: self.emitted,
            waiting: &mut self.waiting,
            number: self.number,
            scratch,
            runs: &mut self.runs,
            step: 0,
        };
        self.lowered = lowering.run(op, &mut self.cursor);
        self.emitted += self.batch.len() as u64;
        if self.lowered {
            self.cursor = Cursor::default();
        }
        Ok(true)
    }

    fn submit_links(&mut self) -> Result<bool> {
        if !self.posted {
            return Ok(false);
        }
        self.drive_links(|posted| {
            if posted.batch.is_empty() {
                return Ok(false);
            }
            let accepted = posted.link.submit(&mut posted.batch)?;
            if posted.batch.is_empty() {
                posted.batch.clear();
            }
            Ok(accepted > 0)
        })
    }

    /// Does something with every posted link. One that its peer has ended after it got all is left
    /// alone from then on: what is still to be sent are slots given back.
    fn drive_links(
        &mut self,
        drive: impl Fn(&mut Posted) -> unisono_hal::Result<bool>,
    ) -> Result<bool> {
        let mut moved = false;
        for peer in &mut self.peers {
            let Way::Posted(posted) = &mut peer.way else {
                continue;
            };
            if posted.ended.is_some() {
                posted.batch.clear();
                continue;
            }
            match drive(posted) {
                Ok(more) => moved |= more,
                Err(error) => {
                    let in_order = error.status == unisono_hal::Status::Peer;
                    if !in_order || !peer.has_all(&self.own) {
                        return Err(link_error(error, peer.rank, self.flight.front()));
                    }
                    let ended = Ended {
                        error,
                        at: Instant::now(),
                    };
                    if let Way::Posted(posted) = &mut peer.way {
                        posted.ended = Some(ended);
                    }
                }
            }
        }
        Ok(moved)
    }

    /// A call that still waits for a peer that has ended its link will not complete.
    fn check_ended(&self) -> Result<()> {
        let Some(waits) = self.waiting.front() else {
            return Ok(());
        };
        match &self.peers[waits.peer as usize].way {
            Way::Posted(posted) => match &posted.ended {
                Some(ended) if ended.at.elapsed() > GRACE => Err(link_error(
                    ended.error.clone(),
                    waits.peer,
                    self.flight.front(),
                )),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn stream_error(&mut self, error: unisono_hal::Error) -> Error {
        // How far the stream came before it failed says which wait failed.
        if let Ok(state) = self.stream.state() {
            self.finished = state.completed;
            self.forget_waits();
        }
        let call = self.current_call();
        let waits = self.waiting.front();
        if error.status == unisono_hal::Status::Mismatch
            && let (Some(op), Some(theirs), Some(waits)) =
                (self.current_op(), Call::from_words(error.words), waits)
        {
            let ours = op.call_from(waits.peer);
            return Error::Mismatch(Mismatch {
                rank: self.own.rank,
                ours,
                peer: waits.peer,
                theirs,
            });
        }
        Error::Plugin {
            source: Arc::new(error),
            peer: waits.map(|w| w.peer),
            call,
        }
    }

    pub(crate) fn current_call(&self) -> Option<Call> {
        self.current_op().map(|op| op.call)
    }

    fn current_op(&self) -> Option<&Op> {
        let flight = self.flight.iter().find(|(end, _)| *end > self.finished);
        flight.map(|(_, op)| op).or(self.queue.front())
    }

    /// Releases every wait on this rank's flags and drops what has not started.
    fn abort(&mut self) {
        self.poison();
        self.stream.aborter().abort();
        for peer in &mut self.peers {
            if let Way::Posted(posted) = &mut peer.way {
                posted.link.aborter().abort();
                posted.batch.clear();
                posted.outstanding.clear();
            }
        }
        // An op that has begun keeps its buffers until the stream is drained.
        if (self.lowered || !self.cursor.is_start())
            && let Some(op) = self.queue.pop_front()
        {
            self.flight.push_back((u64::MAX, op));
        }
        self.queue.clear();
        self.batch.clear();
        self.waiting.clear();
    }

    /// A peer may be writing the same flags, so this is repeated until the stream is drained.
    fn poison(&self) {
        if self.own.signal_host == 0 {
            // One rank alone has no flags.
            return;
        }
        for offset in self.own.arena.flags() {
            crate::arena::poison(self.own.signal_host + offset);
        }
    }

    fn drain(&mut self) {
        if self.flight.is_empty() {
            return;
        }
        self.poison();
        let _ = self.stream.poll(BUDGET);
        if self.is_drained() {
            self.flight.clear();
            self.outgrown.clear();
        }
    }

    /// Whether no device or link can still touch a caller's buffer.
    pub(crate) fn is_drained(&self) -> bool {
        is_quiet(&self.stream)
            && self.peers.iter().all(|peer| match &peer.way {
                Way::Posted(posted) => is_quiet(&posted.link),
                Way::Own | Way::Mapped { .. } => true,
            })
    }
}

/// Whether a queue has nothing left to do; one that cannot say is not trusted to have.
fn is_quiet(queue: &dyn Queue) -> bool {
    use unisono_hal::State::{Failed, Idle};
    queue
        .state()
        .is_ok_and(|state| matches!(state.state, Idle | Failed))
}

#[allow(
    unsafe_code,
    reason = "commands hold plain addresses; this is where the lane answers for them"
)]
pub(super) fn new_batch() -> Batch {
    // SAFETY: a lane's batches are filled by `Lowering` alone. Its addresses are the lane's arena
    // and the arenas of its peers, all of which the lane keeps mapped until its queues are quiet,
    // and the buffers of ops, which their callers keep alive and untouched until the op is complete
    // (borrowed by the blocking form, owned by the stream form, promised by the raw form). That
    // commands do not race is what the plan verifier proves of every program.
    unsafe { Batch::new() }
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

fn link_error(error: unisono_hal::Error, peer: u32, op: Option<&(u64, Op)>) -> Error {
    Error::Plugin {
        source: Arc::new(error),
        peer: Some(peer),
        call: op.map(|(_, op)| op.call),
    }
}
