//! Hardware queues: a few of each device, each in order, each with a thread.
//!
//! Streams are dealt out over the queues. One that waits holds up every other of its queue, as on
//! silicon: who has more streams than queues, and lets one wait for another, can hang.
#![allow(unsafe_code, reason = "blocks all signals of its threads")]

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::accesses::operation;
use crate::copies::Place;
use crate::op::Running;
use crate::{Broken, Delays, Machine, Op, Random, Stream, graph};

/// One hardware queue.
#[derive(Debug)]
pub struct HardwareQueue {
    depth: usize,
    copies_queue_up: bool,
    entries: Mutex<VecDeque<Entry>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Entry {
    stream: Arc<Stream>,
    /// Of the stream's operations.
    number: u64,
    op: Op,
    /// Of a copy by an engine.
    place: Option<Place>,
}

impl HardwareQueue {
    /// A queue of a device, and its thread.
    pub(crate) fn start(
        machine: &'static Machine,
        device: u32,
        number: u32,
    ) -> std::io::Result<Arc<Self>> {
        let queue = Arc::new(Self {
            depth: machine.facts.depth,
            copies_queue_up: machine.facts.copies_queue_up,
            entries: Mutex::default(),
            changed: Condvar::new(),
        });
        let delays = machine.facts.delays;
        let own = Arc::clone(&queue);
        std::thread::Builder::new()
            .name(format!("device{device}.{number}"))
            .spawn(move || {
                block_signals();
                own.work(Worker { machine, delays });
            })?;
        Ok(queue)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an operation; blocks while the queue is full.
    pub(crate) fn push(&self, stream: Arc<Stream>, number: u64, op: Op) {
        let mut entries = self.lock();
        while entries.len() >= self.depth {
            entries = self
                .changed
                .wait(entries)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let by_engine = self.copies_queue_up && matches!(op, Op::Copy { .. });
        let place = by_engine.then(|| stream.device.copies.hand_over());
        entries.push_back(Entry {
            stream,
            number,
            op,
            place,
        });
        drop(entries);
        self.changed.notify_all();
    }

    fn work(&self, worker: Worker<'_>) {
        loop {
            let (stream, number, op, place) = {
                let mut entries = self.lock();
                while entries.is_empty() {
                    entries = self
                        .changed
                        .wait(entries)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                // It stays in the queue, and takes its room, until it is done.
                let Entry {
                    stream,
                    number,
                    op,
                    place,
                } = &entries[0];
                (Arc::clone(stream), *number, op.clone(), *place)
            };
            if let Some(place) = place {
                let device = &stream.device;
                device.copies.begin(place, || device.broken().is_none());
            }
            if let Op::Branches(nodes) = &op {
                graph::run(worker, &stream, number, nodes);
            } else {
                worker.run(&stream, number, &op);
            }
            let (ended, numbers) = (stream.ended(), op.numbers());
            let device = Arc::clone(&stream.device);
            let done = self.lock().pop_front();
            drop((stream, op, done));
            ended.fetch_add(numbers, Ordering::AcqRel);
            device.end();
            self.changed.notify_all();
        }
    }
}

/// What runs operations of streams.
#[derive(Clone, Copy)]
pub(crate) struct Worker<'a> {
    machine: &'a Machine,
    delays: Delays,
}

impl Worker<'_> {
    /// The random numbers of an operation.
    pub(crate) fn random(self, stream: &Stream, number: u64) -> Random {
        Random::new(self.machine.seed, stream.user(number))
    }

    /// Runs an operation, some time.
    pub(crate) fn run(self, stream: &Stream, number: u64, op: &Op) {
        let Self { machine, delays } = self;
        let mut random = self.random(stream, number);
        if delays.one_in > 0 && random.below(delays.one_in.into()) == 0 {
            let time = random.below(delays.longest_us + 1);
            std::thread::sleep(Duration::from_micros(time));
        }
        let device = &stream.device;
        machine.count_op(device);
        if device.broken().is_none() {
            let mut on = Running {
                machine,
                device,
                random: &mut random,
                operation: operation(machine.next_id()),
            };
            match op.run(&mut on) {
                Ok(()) => {}
                // What waits when something else breaks the device did not break it.
                Err(_) if op.waits() && device.broken().is_some() => {}
                Err(broken) => {
                    report(machine, stream, op, broken);
                    device.break_down(broken);
                }
            }
        }
        stream.note_drawn(random);
    }
}

/// An emulator is for finding faults: it says where.
fn report(machine: &Machine, stream: &Stream, op: &Op, broken: Broken) {
    eprintln!(
        "emulator: device {} is broken ({broken:?}) by stream {}: {op:x?} ({}={})",
        stream.device.index,
        stream.id,
        crate::SEED,
        machine.seed
    );
}

/// A driver's threads take no signals of the program.
fn block_signals() {
    // SAFETY: a set of this frame, filled before it is used.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}
