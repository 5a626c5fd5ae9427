//! Streams: ordered, on one of the device's hardware queues; and what is recorded from them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::queue::HardwareQueue;
use crate::space::Range;
use crate::{Broken, Device, Machine, Op};

/// A stream.
#[derive(Debug)]
pub struct Stream {
    /// The device it is of.
    pub device: Arc<Device>,
    /// A number that no other stream of this process has.
    pub id: u64,
    queue: Arc<HardwareQueue>,
    submitted: AtomicU64,
    completed: Arc<AtomicU64>,
    capture: Mutex<Capture>,
}

/// What a stream records.
#[derive(Debug, Default)]
pub enum Capture {
    /// Nothing: operations run.
    #[default]
    Off,
    /// Operations, in order.
    Recording(Vec<Op>),
    /// It was recording, and something was called that cannot be recorded.
    Invalid,
}

/// Operations that can be run again and again.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// In order.
    ops: Vec<Op>,
    /// What its copies and fills were recorded for.
    memory: Vec<(u64, Weak<Range>)>,
}

impl Graph {
    /// What was recorded.
    #[must_use]
    pub fn new(machine: &Machine, ops: Vec<Op>) -> Self {
        let named = ops.iter().flat_map(|op| match op {
            Op::Copy { dst, src, .. } => vec![*dst, *src],
            Op::Fill { dst, .. } => vec![*dst],
            _ => Vec::new(),
        });
        let found = named.filter_map(|at| Some((at, Arc::downgrade(&machine.space.find(at)?))));
        Self {
            memory: found.collect(),
            ops,
        }
    }

    /// The first address that now lies in other memory. A runtime looks up once what a copy is between,
    /// when it is recorded: what came in its place later may be another device's.
    fn stale(&self, machine: &Machine) -> Option<u64> {
        let mut all = self.memory.iter();
        let stale = all.find(|(at, memory)| {
            let now = machine.space.find(*at);
            now.is_none_or(|now| !Weak::ptr_eq(&Arc::downgrade(&now), memory))
        });
        stale.map(|(at, _)| *at)
    }
}

impl Stream {
    pub(crate) fn new(device: Arc<Device>, id: u64, queue: Arc<HardwareQueue>) -> Self {
        Self {
            device,
            id,
            queue,
            submitted: AtomicU64::new(0),
            completed: Arc::default(),
            capture: Mutex::default(),
        }
    }

    /// Hands an operation over, or records it. Blocks while the hardware queue is full.
    ///
    /// # Errors
    /// If the device is broken.
    pub fn submit(self: &Arc<Self>, op: Op) -> Result<(), Broken> {
        if let Capture::Recording(ops) = &mut *self.capture() {
            ops.push(op);
            return Ok(());
        }
        self.run(op)
    }

    /// As [`Stream::submit`], without recording.
    fn run(self: &Arc<Self>, op: Op) -> Result<(), Broken> {
        if let Some(broken) = self.device.broken() {
            return Err(broken);
        }
        self.submitted.fetch_add(1, Ordering::AcqRel);
        self.device.begin();
        self.queue.push(Arc::clone(self), op);
        Ok(())
    }

    /// Runs a graph.
    ///
    /// # Errors
    /// If the device is broken.
    pub fn launch(self: &Arc<Self>, machine: &Machine, graph: &Graph) -> Result<(), Broken> {
        if let Some(at) = graph.stale(machine) {
            eprintln!(
                "emulator: a graph copies at {at:#x}, where other memory was when it was made"
            );
            self.device.break_down(Broken::IllegalAddress);
        }
        for op in &graph.ops {
            let op = match op {
                // Each run is a recording of its own.
                Op::Record(event, _) => Op::Record(Arc::clone(event), event.record()),
                op => op.clone(),
            };
            self.run(op)?;
        }
        Ok(())
    }

    /// Whether nothing is left to do.
    ///
    /// # Errors
    /// If the device is broken.
    pub fn is_done(&self) -> Result<bool, Broken> {
        match self.device.broken() {
            Some(broken) => Err(broken),
            None => Ok(
                self.submitted.load(Ordering::Acquire) == self.completed.load(Ordering::Acquire)
            ),
        }
    }

    /// Its count of operations that have ended, which outlives it: a queue is free for another stream
    /// when nobody holds this one, and who waits for its end may make that other stream at once.
    pub(crate) fn ended(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.completed)
    }

    /// What it records.
    pub fn capture(&self) -> MutexGuard<'_, Capture> {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
