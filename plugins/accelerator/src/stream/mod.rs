//! Streams: commands become calls of the runtime.
//!
//! Counters of flags are relative in the contract and absolute in the runtimes. The plugin advances a
//! counter's value when it hands a command over, as one counter belongs to one queue, and gives the
//! runtime the number. A counter that a recorded batch uses belongs to the recording from then on:
//! kernels advance it (`submit`).
//!
//! A stream for which the device has no queue left shares a native one, and hands a wait over when it is
//! over: until then it takes no more commands (`refuse`).
//!
//! Behind each wait, and at the end of each batch, the stream writes the number of commands done to its
//! line.

mod control;
mod failures;
mod graphs;
mod grave;
mod lower;
mod refuse;
mod replay;
mod spread;
mod step;
mod submit;
mod table;
mod together;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use unisono_plugin::{
    Batch, Error, Host, Kinds, QueuePhase, QueueState, Recording, Result, Sleep, SleepWays, Status,
    Stream, Waker,
};

pub(crate) use control::Shared;
pub use control::StreamControl;
pub(crate) use failures::Failures;
pub(crate) use graphs::Made;
pub(crate) use grave::Grave;
pub(crate) use spread::Branch;
pub use step::Step;
pub(crate) use table::{TABLE, TABLES};

use crate::event::AcceleratorEvent;
use crate::regions::Recent;
use crate::state::{State, Tenure};
use crate::{MemoryOperation, Runtime, fork, watcher};

/// Polls without news after which the runtime is asked whether the device still works.
const PROBE: u32 = 4096;

/// A stream of a device.
pub struct AcceleratorStream<R: Runtime> {
    device: Arc<State<R>>,
    native: R::Stream,
    tenure: Tenure,
    /// The caller has the native handle, and may record with it.
    may_record: AtomicBool,
    shared: Arc<Shared>,
    accepted: u64,
    completed: u64,
    /// The last command of a kernel that waits on the device, where waits are kept back.
    held_by: u64,
    /// Operations handed over, and where they stood at each mark: (command number, operations).
    operations: u64,
    marks: VecDeque<(u64, u64)>,
    /// Operations before the last mark that was reached.
    reached: u64,
    /// Events that commands on their way name.
    events: VecDeque<(u64, AcceleratorEvent<R>)>,
    /// Writes and waits to be handed over with what comes next.
    pending: Vec<MemoryOperation>,
    recent: Recent,
    /// Memory that the batch at hand names: where it begins, and its allocation id.
    named: Vec<(u64, u64)>,
    /// It waits for a flag that no other process can raise.
    waits_for_own: bool,
    /// What a batch comes down to is written down here and not handed over.
    script: Option<step::Script>,
    spread: spread::Spread<R>,
    /// Room for the next such list.
    spare: Vec<step::Step>,
    /// None if it may have none.
    graphs: Option<graphs::Graphs<R>>,
    host: Host,
    /// Counters that recordings advance.
    recorded: HashSet<u64>,
    failed: Option<Error>,
    quiet: u32,
    armed: bool,
}

impl<R: Runtime> AcceleratorStream<R> {
    pub(crate) fn create(device: &Arc<State<R>>, priority: i64, host: Host) -> Result<Self> {
        fork::check()?;
        let (native, tenure) = device.take_stream(priority)?;
        Self::new(device, native, tenure, host).inspect_err(|_| device.give_stream(tenure, native))
    }

    pub(crate) fn wrap(device: &Arc<State<R>>, native: u64, host: Host) -> Result<Self> {
        fork::check()?;
        let native = device.runtime.adopt_stream(native)?;
        Self::new(device, native, Tenure::Wrapped, host)
            .inspect_err(|_| device.runtime.release_stream(native))
    }

    fn new(device: &Arc<State<R>>, native: R::Stream, tenure: Tenure, host: Host) -> Result<Self> {
        let asked = Arc::clone(device);
        let ask = Box::new(move || asked.runtime.idle(native).ok());
        let shared = Arc::new(Shared::new(device.line()?, ask, device.clone()));
        device.freed.watch(Arc::downgrade(&shared));
        Ok(Self {
            device: Arc::clone(device),
            native,
            tenure,
            may_record: AtomicBool::new(tenure == Tenure::Wrapped),
            shared,
            accepted: 0,
            completed: 0,
            held_by: 0,
            operations: 0,
            marks: VecDeque::new(),
            reached: 0,
            events: VecDeque::new(),
            pending: Vec::new(),
            recent: Recent::default(),
            named: Vec::new(),
            waits_for_own: false,
            script: None,
            spread: spread::Spread::new(),
            spare: Vec::new(),
            graphs: Self::graphs_for(device, tenure),
            host,
            recorded: HashSet::new(),
            failed: None,
            quiet: 0,
            armed: false,
        })
    }

    /// Refuses to work in a forked child, after a failure, after an abort.
    fn check(&mut self) -> Result<()> {
        fork::check()?;
        if self.failed.is_none() && self.shared.is_aborted() {
            self.failed = Some(Error::new(Status::Aborted, "the stream was aborted"));
        }
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// It failed, by the device's fault or by a command's.
    fn fail(&mut self, error: Error) -> Error {
        let broken = error.status() == Status::Device;
        self.shared.fail(broken);
        self.failed = Some(error.clone());
        error
    }

    /// Takes note of what the device has done.
    fn advance(&mut self) -> bool {
        let completed = self.shared.completed();
        if completed == self.completed {
            return false;
        }
        self.completed = completed;
        self.shared.retire(completed);
        while let Some((_, operations)) = self.marks.front().filter(|(n, _)| *n <= completed) {
            self.reached = *operations;
            self.marks.pop_front();
        }
        while self.events.front().is_some_and(|(n, _)| *n <= completed) {
            self.events.pop_front();
        }
        true
    }

    fn state(&self, moved: bool) -> QueueState {
        let idle = self.completed >= self.accepted;
        QueueState {
            phase: if idle {
                QueuePhase::Idle
            } else {
                QueuePhase::Waiting
            },
            accepted: self.accepted,
            completed: self.completed,
            moved,
        }
    }
}

impl<R: Runtime> Stream for AcceleratorStream<R> {
    type Event = AcceleratorEvent<R>;
    type Control = StreamControl;
    /// Where the runtime has no kernel for it, SCALE is refused as `supports` says.
    const KINDS: Kinds = Kinds::STREAM.with_scale();

    fn control(&self) -> StreamControl {
        StreamControl(Arc::clone(&self.shared))
    }

    fn submit(&mut self, batch: &Batch<'_, AcceleratorEvent<R>>) -> Result<u32> {
        self.check()?;
        if self.shared.line.found().is_some() {
            return Ok(0);
        }
        self.verify(batch)?;
        let device = Arc::clone(&self.device);
        if self.records()? {
            let _frees_nothing = device.freed.give();
            return self.record(batch);
        }
        let taken = self.replay(batch)?;
        if taken > 0 {
            return Ok(taken);
        }
        let _frees_nothing = device.freed.give();
        self.take(batch)
    }

    fn poll(&mut self, _: u64) -> Result<QueueState> {
        self.check()?;
        self.device.runtime.progress();
        let moved = self.advance();
        if moved && self.completed >= self.accepted {
            self.give_branches_back();
            self.device.freed.sweep(&self.device);
        }
        if let Some((_, words)) = self.shared.line.found() {
            // What stands behind the wait runs on: its own waits are released, and the failure is told
            // once nothing of it runs any more.
            self.shared.fail(false);
            if self.shared.is_quiet() {
                return Err(self.fail(Error::mismatch(words)));
            }
            return Ok(self.state(moved));
        }
        self.quiet = if moved { 0 } else { self.quiet + 1 };
        if self.quiet >= PROBE && self.completed < self.accepted {
            self.quiet = 0;
            if !self.records()?
                && let Err(error) = self.device.runtime.idle(self.native)
            {
                return Err(self.fail(error));
            }
        }
        Ok(self.state(moved))
    }

    fn arm(&mut self, allowed: SleepWays, waker: Option<Waker>) -> Result<Sleep> {
        self.disarm();
        if self.check().is_err() || self.shared.has_news(self.completed) {
            return Ok(Sleep::Ready);
        }
        let Some(waker) = waker.filter(|_| allowed.waker()) else {
            return Err(Error::unsupported(
                "streams of this device wake sleepers by a waker alone: allow one",
            ));
        };
        watcher::arm(&self.shared, self.completed, waker)?;
        self.armed = true;
        Ok(Sleep::Waker)
    }

    fn disarm(&mut self) {
        if std::mem::take(&mut self.armed) && !fork::is_child() {
            watcher::disarm(&self.shared);
        }
    }

    fn native(&self) -> u64 {
        if self.tenure == Tenure::Common {
            // It has none of its own.
            return 0;
        }
        self.may_record.store(true, Ordering::Relaxed);
        R::stream_handle(self.native)
    }

    fn capturing(&self) -> Option<Recording> {
        self.device.runtime.capturing(self.native).unwrap_or(None)
    }
}

impl<R: Runtime> Drop for AcceleratorStream<R> {
    fn drop(&mut self) {
        self.disarm();
        if fork::is_child() {
            return;
        }
        if let Some(graphs) = self.graphs.take() {
            replay::give_up(&self.device, graphs.into_all());
        }
        self.shared.refuse(None);
        // Whoever recorded promises that no graph with it runs again.
        self.shared.is_recorded.store(false, Ordering::Release);
        let idle = self.completed >= self.accepted;
        let spread = std::mem::replace(&mut self.spread, spread::Spread::new());
        if !idle {
            self.shared.abort_now();
        }
        let grave = Grave {
            native: self.native,
            tenure: self.tenure,
            shared: Arc::clone(&self.shared),
            branches: spread.into_branches(),
            _events: std::mem::take(&mut self.events),
        };
        if idle {
            grave.give_back(&self.device);
        } else {
            self.device.bury(grave);
        }
    }
}

impl<R: Runtime> std::fmt::Debug for AcceleratorStream<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AcceleratorStream")
            .field("native", &self.native)
            .field("accepted", &self.accepted)
            .field("completed", &self.completed)
            .finish_non_exhaustive()
    }
}

impl<R: Runtime> AcceleratorStream<R> {
    /// Whether it is recording now.
    fn records(&self) -> Result<bool> {
        let may = self.may_record.load(Ordering::Relaxed);
        Ok(may && self.device.runtime.capturing(self.native)?.is_some())
    }

    /// Publishes how much was accepted, and up to where numbers will be written.
    fn publish(&mut self, marked: bool) {
        // The mark first: who sees a command accepted must not take it for one that no number
        // follows, which would be complete at once.
        if marked {
            self.shared.marked.store(self.accepted, Ordering::Release);
        }
        self.shared.accepted.store(self.accepted, Ordering::Release);
    }
}
