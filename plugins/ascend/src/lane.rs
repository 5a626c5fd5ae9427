//! What the host has to do for one stream, in the stream's order.
#![allow(
    unsafe_code,
    reason = "flags are words at addresses; calls the runtime"
)]

use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use unisono_plugin::Result;
use unisono_plugin_accelerator::MemoryOperation;

use crate::api::{Api, Handle};
use crate::error::check;
use crate::work::Work;

/// `ACL_EVENT_CAPTURE_STREAM_PROGRESS`: as many as anybody likes, but nothing waits for them.
const PROGRESS: u32 = 2;
/// Of this process alone.
const NOTIFY: u64 = 0;
/// Waits for ever: who waits is released by the host.
const FOR_EVER: u32 = 0;

/// A handle as a number, to be sent between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw(pub(crate) usize);

impl Raw {
    pub(crate) fn of(handle: Handle) -> Self {
        Self(handle as usize)
    }

    pub(crate) fn handle(self) -> Handle {
        self.0 as Handle
    }
}

/// One stream's.
///
/// Where the stream waits, it waits for the lane's only notify, which resets itself. So the notify may
/// be opened again only when the stream is past the wait before: behind each wait stands an event, and
/// tasks are done in order.
#[derive(Debug)]
pub(crate) struct Lane {
    stream: Raw,
    notify: Raw,
    tasks: Mutex<Tasks>,
}

#[derive(Debug, Default)]
struct Tasks {
    queue: VecDeque<Task>,
    /// The last task opens the notify, and no event stands behind it yet.
    opens: bool,
    /// Events that nobody uses.
    events: Vec<Raw>,
}

#[derive(Debug)]
enum Task {
    /// Once the event is reached: numbers to be stored, in order.
    Store { event: Raw, writes: Vec<(u64, u64)> },
    /// Once a number is there: open the notify.
    Open { address: u64, value: u64 },
    /// Once the event is reached: something that takes its time; then open the notify.
    Work { event: Raw, work: Work },
    /// Such work runs.
    Working,
}

/// What a look at a lane found.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Something was done.
    pub(crate) moved: bool,
    /// Something is left.
    pub(crate) left: bool,
    /// Work that is due: whoever takes it ends it by [`Lane::done`].
    pub(crate) due: Option<Work>,
}

/// A word of host memory.
///
/// # Safety
/// Mapped and aligned as long as it is used.
unsafe fn word<'a>(address: u64) -> &'a AtomicU64 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU64::from_ptr(address as usize as *mut u64) }
}

impl Lane {
    /// A lane for a stream; the context is current, as for all functions here.
    pub(crate) fn new(api: &Api, stream: Handle) -> Result<Self> {
        let mut notify: Handle = ptr::null_mut();
        // SAFETY: writes a handle.
        check("aclrtCreateNotify", unsafe {
            (api.notify_create)(&raw mut notify, NOTIFY)
        })?;
        Ok(Self {
            stream: Raw::of(stream),
            notify: Raw::of(notify),
            tasks: Mutex::default(),
        })
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing is left to do.
    pub(crate) fn is_idle(&self) -> bool {
        self.tasks().queue.is_empty()
    }

    /// Takes writes and waits, in order.
    pub(crate) fn operate(&self, api: &Api, operations: &[MemoryOperation]) -> Result<()> {
        let mut tasks = self.tasks();
        let mut writes = Vec::new();
        for operation in operations {
            match *operation {
                MemoryOperation::Word { address, value }
                | MemoryOperation::Write { address, value } => writes.push((address, value)),
                MemoryOperation::Wait { address, value } => {
                    if !writes.is_empty() || tasks.opens {
                        self.store(api, &mut tasks, std::mem::take(&mut writes))?;
                    }
                    self.wait(api)?;
                    tasks.queue.push_back(Task::Open { address, value });
                    tasks.opens = true;
                }
            }
        }
        if !writes.is_empty() {
            self.store(api, &mut tasks, writes)?;
        }
        Ok(())
    }

    /// Takes work, which the stream waits for.
    pub(crate) fn work(&self, api: &Api, work: Work) -> Result<()> {
        let mut tasks = self.tasks();
        // The event of the work stands behind a wait before it, too.
        let event = self.record(api, &mut tasks)?;
        self.wait(api)?;
        tasks.queue.push_back(Task::Work { event, work });
        tasks.opens = true;
        Ok(())
    }

    fn store(&self, api: &Api, tasks: &mut Tasks, writes: Vec<(u64, u64)>) -> Result<()> {
        let event = self.record(api, tasks)?;
        tasks.queue.push_back(Task::Store { event, writes });
        tasks.opens = false;
        Ok(())
    }

    fn record(&self, api: &Api, tasks: &mut Tasks) -> Result<Raw> {
        let event = match tasks.events.pop() {
            Some(event) => event,
            None => {
                let mut event: Handle = ptr::null_mut();
                // SAFETY: writes a handle.
                check("aclrtCreateEventExWithFlag", unsafe {
                    (api.event_create)(&raw mut event, PROGRESS)
                })?;
                Raw::of(event)
            }
        };
        // SAFETY: living handles.
        check("aclrtRecordEvent", unsafe {
            (api.event_record)(event.handle(), self.stream.handle())
        })?;
        Ok(event)
    }

    fn wait(&self, api: &Api) -> Result<()> {
        // SAFETY: living handles.
        check("aclrtWaitAndResetNotify", unsafe {
            (api.notify_wait)(self.notify.handle(), self.stream.handle(), FOR_EVER)
        })
    }

    fn open(&self, api: &Api, opener: Handle) -> Result<()> {
        // SAFETY: living handles.
        check("aclrtRecordNotify", unsafe {
            (api.notify_record)(self.notify.handle(), opener)
        })
    }

    /// Does what can be done now; nothing if somebody else does it.
    pub(crate) fn look(&self, api: &Api, opener: Handle, take_work: bool) -> Result<Look> {
        let mut look = Look::default();
        let mut tasks = match self.tasks.try_lock() {
            Ok(tasks) => tasks,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => {
                look.left = true;
                return Ok(look);
            }
        };
        while let Some(task) = tasks.queue.front() {
            let done = match task {
                Task::Store { event, writes } => {
                    let reached = is_reached(api, *event)?;
                    if reached {
                        for (address, value) in writes {
                            // SAFETY: who handed the write over keeps the word until it is done.
                            unsafe { word(*address) }.store(*value, Ordering::SeqCst);
                        }
                    }
                    reached
                }
                &Task::Open { address, value } => {
                    // SAFETY: as above.
                    let found = unsafe { word(address) }.load(Ordering::Acquire);
                    let there = found.wrapping_sub(value).cast_signed() >= 0;
                    if there {
                        self.open(api, opener)?;
                    }
                    there
                }
                Task::Work { event, .. } => take_work && is_reached(api, *event)?,
                Task::Working => false,
            };
            if !done {
                break;
            }
            look.moved = true;
            match tasks.queue.pop_front() {
                Some(Task::Store { event, .. }) => tasks.events.push(event),
                Some(Task::Work { event, work }) => {
                    tasks.events.push(event);
                    tasks.queue.push_front(Task::Working);
                    look.due = Some(work);
                    break;
                }
                _ => {}
            }
        }
        look.left = !tasks.queue.is_empty();
        Ok(look)
    }

    /// Work that was due is done.
    pub(crate) fn done(&self, api: &Api, opener: Handle) -> Result<()> {
        let mut tasks = self.tasks();
        self.open(api, opener)?;
        tasks.queue.pop_front();
        Ok(())
    }

    /// Gives back what it has; its stream does nothing any more.
    pub(crate) fn close(&self, api: &Api) {
        let mut tasks = self.tasks();
        let left = std::mem::take(&mut tasks.queue);
        let of = |task| match task {
            Task::Store { event, .. } | Task::Work { event, .. } => Some(event),
            Task::Open { .. } | Task::Working => None,
        };
        let events = std::mem::take(&mut tasks.events);
        // SAFETY: made by this, and used by nobody any more.
        unsafe {
            for event in events.into_iter().chain(left.into_iter().filter_map(of)) {
                let _ = (api.event_destroy)(event.handle());
            }
            let _ = (api.notify_destroy)(self.notify.handle());
        }
    }
}

/// Whether a stream has come to an event.
fn is_reached(api: &Api, event: Raw) -> Result<bool> {
    let mut status = 0;
    // SAFETY: a living handle; writes a number, 1 if it is reached.
    check("aclrtQueryEventStatus", unsafe {
        (api.event_query)(event.handle(), &raw mut status)
    })?;
    Ok(status == 1)
}
