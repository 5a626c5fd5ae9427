//! One opened device of this process: its runtime, and what is kept for reuse.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use unisono_plugin::{DeviceInfo, Error, Result, Status};

use crate::fork::Unforked;
use crate::freed::FreedMemory;
use crate::lines::{Piece, Pieces};
use crate::stream::{Branch, Failures, Grave, TABLE, TABLES};
use crate::{Line, MemoryOperation, Process, Runtime, fork};

/// How long a call that may block waits for the device.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long freeing memory waits for streams that were dropped while they ran.
const SETTLE: Duration = Duration::from_secs(2);

/// Queues that branches leave to streams.
const LEFT: u32 = 2;

/// Bytes of a small signal: a few flags, as for one stream of the program's.
pub(crate) const SIGNAL: u64 = 256;

/// An opened device. All who open it share one.
pub(crate) struct State<R: Runtime> {
    pub(crate) runtime: Unforked<R>,
    pub(crate) info: DeviceInfo,
    lines: Pieces,
    /// For small signals.
    signals: Pieces,
    /// For the numbers of graphs: all that there will be.
    pub(crate) tables: Pieces,
    /// Graphs that could not be made.
    pub(crate) failed_graphs: Failures,
    /// A peer has shown that it uses the device too: another process, or another rank of this one.
    pub(crate) is_shared: AtomicBool,
    /// One of them was another process: the device is theirs in turns.
    pub(crate) takes_turns: AtomicBool,
    /// One of them was another rank of this process, whose streams use the same engines and queues.
    pub(crate) has_ranks: AtomicBool,
    /// Operations that a stream may have in the device's queues.
    pub(crate) limit: u64,
    natives: Mutex<Natives<R>>,
    /// Memory that waits to be freed.
    pub(crate) freed: FreedMemory<R>,
    /// Streams that were dropped with work on its way.
    graves: Mutex<Vec<Grave<R>>>,
    helper: Mutex<Option<Helper<R>>>,
}

/// Native streams. They are never more than the device has independent queues: a stream that waits holds
/// up every other of its queue, and that may be the one that it waits for.
struct Natives<R: Runtime> {
    /// Those that nobody uses, by priority.
    idle: HashMap<i64, Vec<R::Stream>>,
    /// How many more one stream may have for itself.
    left: u32,
    /// That of all who found none left.
    common: Option<R::Stream>,
    /// Those on which graphs are recorded, by priority.
    recorders: HashMap<i64, R::Stream>,
    /// Branches that no stream uses.
    branches: Vec<Branch<R>>,
}

/// Whose a native stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tenure {
    /// The caller's.
    Wrapped,
    /// One stream's, of this priority, until it is given back.
    Own(i64),
    /// Every stream's that found no queue left. What would wait is not handed over before the wait is
    /// over, so that it holds up nobody.
    Common,
}

/// The stream for the plugin's own work.
struct Helper<R: Runtime> {
    stream: R::Stream,
    line: Line,
    runs: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R: Runtime> State<R> {
    pub(crate) fn new(runtime: R, info: DeviceInfo, limit: u64) -> Result<Self> {
        let lines = Pieces::new(&runtime, Line::BYTES)?;
        let signals = Pieces::new(&runtime, SIGNAL)?;
        let graphs = runtime.graphs() && runtime.has_flag_kernels();
        let tables = Pieces::ready(&runtime, TABLE, if graphs { TABLES } else { 0 })?;
        // 0: nobody knows of a limit.
        let left = match info.queues {
            0 => u32::MAX,
            queues => queues - 1,
        };
        let natives = Natives {
            idle: HashMap::new(),
            left,
            common: None,
            recorders: HashMap::new(),
            branches: Vec::new(),
        };
        let this = Self {
            runtime: Unforked::new(runtime),
            info,
            lines,
            signals,
            tables,
            failed_graphs: Failures::default(),
            is_shared: AtomicBool::new(false),
            takes_turns: AtomicBool::new(false),
            has_ranks: AtomicBool::new(false),
            limit,
            natives: Mutex::new(natives),
            freed: FreedMemory::new(),
            graves: Mutex::default(),
            helper: Mutex::new(None),
        };
        // First of all, so that it has a hardware queue of its own.
        let line = this.line()?;
        let stream = this.runtime.create_stream(0)?;
        *lock(&this.helper) = Some(Helper {
            stream,
            line,
            runs: 0,
        });
        Ok(this)
    }

    pub(crate) fn process(&self) -> &'static Process<R> {
        R::process()
    }

    pub(crate) fn line(&self) -> Result<Line> {
        self.lines.take(&*self.runtime).map(Line::new)
    }

    /// Zeroed signal memory of [`SIGNAL`] bytes.
    pub(crate) fn signal(&self) -> Result<Piece> {
        self.signals.take(&*self.runtime)
    }

    /// A native stream: one that was used before, if there is one; the common one, if no queue is left.
    pub(crate) fn take_stream(&self, priority: i64) -> Result<(R::Stream, Tenure)> {
        self.sweep();
        let mut natives = lock(&self.natives);
        if let Some(stream) = natives.idle.get_mut(&priority).and_then(Vec::pop) {
            return Ok((stream, Tenure::Own(priority)));
        }
        if natives.left > 0 {
            let stream = self.runtime.create_stream(priority)?;
            natives.left -= 1;
            return Ok((stream, Tenure::Own(priority)));
        }
        let common = match natives.common {
            Some(common) => common,
            None => self.runtime.create_stream(0)?,
        };
        natives.common = Some(common);
        Ok((common, Tenure::Common))
    }

    /// The stream of this priority on which graphs are recorded: made once, and counted, as runtimes deal out
    /// queues by the streams that there are. Where no queue is left every stream has its own already, so one
    /// more takes none away; it runs nothing while another is at work. Only [`Process::alone`] uses it.
    pub(crate) fn recorder(&self, priority: i64) -> Result<R::Stream> {
        let mut natives = lock(&self.natives);
        if let Some(stream) = natives.recorders.get(&priority) {
            return Ok(*stream);
        }
        let idle = natives.idle.get_mut(&priority).and_then(Vec::pop);
        let stream = match idle {
            Some(stream) => stream,
            None => {
                let stream = self.runtime.create_stream(priority)?;
                natives.left = natives.left.saturating_sub(1);
                stream
            }
        };
        natives.recorders.insert(priority, stream);
        Ok(stream)
    }

    /// Gives an idle native stream back, or the caller's up.
    pub(crate) fn give_stream(&self, tenure: Tenure, stream: R::Stream) {
        match tenure {
            Tenure::Own(priority) => {
                let mut natives = lock(&self.natives);
                natives.idle.entry(priority).or_default().push(stream);
            }
            Tenure::Wrapped => self.runtime.release_stream(stream),
            Tenure::Common => {}
        }
    }

    /// Native streams for copies beside a stream's own, so many or fewer: some queues stay for streams.
    pub(crate) fn take_branches(&self, most: usize) -> Result<Vec<Branch<R>>> {
        let mut natives = lock(&self.natives);
        let at = natives.branches.len().saturating_sub(most);
        let mut taken = natives.branches.split_off(at);
        while taken.len() < most && natives.left > LEFT {
            // One that is left half made is a device's that fails anyway.
            taken.push(Branch {
                native: self.runtime.create_stream(0)?,
                fork: self.runtime.create_event()?,
                join: self.runtime.create_event()?,
            });
            natives.left -= 1;
        }
        Ok(taken)
    }

    /// Takes branches back that are done.
    pub(crate) fn give_branches(&self, branches: Vec<Branch<R>>) {
        lock(&self.natives).branches.extend(branches);
    }

    /// A stream was dropped while it ran.
    pub(crate) fn bury(&self, grave: Grave<R>) {
        lock(&self.graves).push(grave);
    }

    /// Takes back the streams that have ended since they were dropped; true if all have.
    pub(crate) fn sweep(&self) -> bool {
        let mut graves = lock(&self.graves);
        let mut index = 0;
        while index < graves.len() {
            if graves[index].is_quiet() {
                let grave = graves.swap_remove(index);
                grave.give_back(self);
            } else {
                index += 1;
            }
        }
        graves.is_empty()
    }

    /// Waits, not for long, until dropped streams touch no memory any more.
    pub(crate) fn settle(&self) {
        let end = Instant::now() + SETTLE;
        while !self.sweep() && Instant::now() < end {
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Does something on the plugin's own stream and waits for it.
    pub(crate) fn run(
        &self,
        what: &str,
        enqueue: impl FnOnce(&R, R::Stream) -> Result<()>,
    ) -> Result<()> {
        let mut helper = lock(&self.helper);
        let helper = helper
            .as_mut()
            .ok_or_else(|| Error::invalid("the device is closed"))?;
        enqueue(&self.runtime, helper.stream)?;
        helper.runs += 1;
        self.mark(helper.stream, &helper.line, helper.runs)?;
        let start = Instant::now();
        let mut looks = 0_u32;
        while helper.line.done() != helper.runs {
            looks += 1;
            if looks < 100 {
                std::hint::spin_loop();
                continue;
            }
            if looks.is_multiple_of(64) {
                self.runtime.idle(helper.stream)?;
            }
            if start.elapsed() > PATIENCE {
                let what =
                    format!("{what} did not end within {PATIENCE:?}: the device is busy or lost");
                return Err(Error::new(Status::Timeout, what));
            }
            std::thread::sleep(Duration::from_micros(u64::from(looks.min(100))));
        }
        Ok(())
    }

    #[allow(unsafe_code, reason = "writes to a line of its own")]
    fn mark(&self, stream: R::Stream, line: &Line, number: u64) -> Result<()> {
        let write = MemoryOperation::Write {
            address: line.address(),
            value: number,
        };
        // SAFETY: the line lives as long as the helper, which waits for the write.
        unsafe { self.runtime.operate(stream, &[write]) }
    }
}

impl<R: Runtime> Drop for State<R> {
    fn drop(&mut self) {
        if fork::is_child() {
            return;
        }
        self.settle();
        self.freed.free_all(self);
        let helper = lock(&self.helper).take().map(|helper| helper.stream);
        let mut natives = lock(&self.natives);
        let idle = std::mem::take(&mut natives.idle);
        let common = natives.common.take();
        let recorders = std::mem::take(&mut natives.recorders);
        for branch in std::mem::take(&mut natives.branches) {
            self.runtime.destroy_stream(branch.native);
            self.runtime.destroy_event(branch.fork);
            self.runtime.destroy_event(branch.join);
        }
        let kept = recorders.into_values().chain(common).chain(helper);
        for stream in idle.into_values().flatten().chain(kept) {
            self.runtime.destroy_stream(stream);
        }
        self.lines.close(&*self.runtime);
        self.signals.close(&*self.runtime);
        self.tables.close(&*self.runtime);
    }
}

/// What keeps lines and memory mapped, for those who do not care of what device.
pub(crate) type Keep = Arc<dyn std::any::Any + Send + Sync>;
