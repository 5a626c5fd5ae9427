//! One device of this process: its queues, its pending work, and whether it still works.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::copies::Copies;
use crate::queue::HardwareQueue;
use crate::{Machine, Stream};

/// What broke a device; it stays broken for this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Broken {
    /// Something touched memory that is not there, or not for it.
    IllegalAddress = 1,
    /// A kernel failed.
    Launch,
    /// A link to another device failed.
    Link,
    /// The device is lost.
    Lost,
}

/// A device.
#[derive(Debug)]
pub struct Device {
    /// Its number.
    pub index: u32,
    /// Devices that may access memory made for it in the plain way: bits.
    pub peers: AtomicU64,
    used: AtomicU64,
    broken: AtomicU32,
    pending: Mutex<u64>,
    settled: Condvar,
    queues: Mutex<Vec<Arc<HardwareQueue>>>,
    /// What its engines copy.
    pub(crate) copies: Copies,
    /// Streams made so far.
    made: AtomicU32,
    /// Of them, those that share a queue.
    sharing: AtomicU64,
    /// Operations so far, for faults.
    pub(crate) ops: AtomicU64,
}

/// How long a call may block behind pending work. The real one blocks for ever; a test should say.
const PATIENCE: Duration = Duration::from_secs(60);

impl Device {
    pub(crate) fn new(index: u32) -> Self {
        Self {
            index,
            peers: AtomicU64::new(1 << index),
            used: AtomicU64::new(0),
            broken: AtomicU32::new(0),
            pending: Mutex::new(0),
            settled: Condvar::new(),
            queues: Mutex::default(),
            copies: Copies::default(),
            made: AtomicU32::new(0),
            sharing: AtomicU64::new(0),
            ops: AtomicU64::new(0),
        }
    }

    /// A new stream, on one of the hardware queues.
    ///
    /// # Errors
    /// What the system says to new threads.
    pub fn stream(self: &Arc<Self>, machine: &'static Machine) -> std::io::Result<Arc<Stream>> {
        let queue = self.queue(machine)?;
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Stream::new(
            Arc::clone(self),
            machine.next_id(),
            number,
            queue,
        )))
    }

    /// A queue for a new stream: one that has none, as long as there are such. Queues start when they
    /// are first needed, as some devices have thousands.
    fn queue(&self, machine: &'static Machine) -> std::io::Result<Arc<HardwareQueue>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        // Beside this list its own thread holds a queue, and each of its streams.
        if let Some(free) = queues.iter().find(|queue| Arc::strong_count(queue) == 2) {
            return Ok(Arc::clone(free));
        }
        let started = queues.len() as u32;
        if started < machine.facts.queues {
            queues.push(HardwareQueue::start(machine, self.index, started)?);
            return Ok(Arc::clone(&queues[started as usize]));
        }
        let number = self.sharing.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::clone(&queues[number as usize % queues.len()]))
    }

    /// What broke it, if something did.
    #[must_use]
    pub fn broken(&self) -> Option<Broken> {
        Some(match self.broken.load(Ordering::Acquire) {
            0 => return None,
            1 => Broken::IllegalAddress,
            2 => Broken::Launch,
            3 => Broken::Link,
            _ => Broken::Lost,
        })
    }

    /// Breaks it; the first cause counts.
    pub fn break_down(&self, how: Broken) {
        let _ = self
            .broken
            .compare_exchange(0, how as u32, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Takes memory from what it has; false if there is not so much.
    #[must_use]
    pub fn reserve(&self, bytes: u64, of: u64) -> bool {
        let take = |used: u64| used.checked_add(bytes).filter(|total| *total <= of);
        self.used
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, take)
            .is_ok()
    }

    /// Gives memory back.
    pub fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Memory in use by this process.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    pub(crate) fn begin(&self) {
        *self.pending.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    pub(crate) fn end(&self) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        *pending -= 1;
        if *pending == 0 {
            self.settled.notify_all();
        }
    }

    /// Blocks until all work of all its streams is done, as calls do that free, register or load.
    ///
    /// # Errors
    /// What broke it; or a timeout, said on standard error, if the work cannot end: the caller has
    /// made a deadlock.
    pub fn synchronise(&self, call: &str) -> Result<(), Option<Broken>> {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let (pending, _) = self
            .settled
            .wait_timeout_while(pending, PATIENCE, |pending| *pending > 0)
            .unwrap_or_else(PoisonError::into_inner);
        if *pending > 0 {
            eprintln!(
                "emulator: {call} has blocked {PATIENCE:?} behind {pending} pending operations of \
                 device {}: on the real runtime it would hang",
                self.index
            );
            return Err(self.broken());
        }
        drop(pending);
        self.broken().map_or(Ok(()), |broken| Err(Some(broken)))
    }
}
