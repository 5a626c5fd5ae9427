//! Streams: ordered, on one of the device's hardware queues, or recording.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::capture::Part;
use crate::queue::HardwareQueue;
use crate::{Broken, Device, Graph, Machine, Op, Random, User};

/// A stream.
#[derive(Debug)]
pub struct Stream {
    /// The device it is of.
    pub device: Arc<Device>,
    /// A number that no other stream of this process has.
    pub id: u64,
    /// The device's how manieth it is.
    number: u32,
    queue: Arc<HardwareQueue>,
    submitted: AtomicU64,
    completed: Arc<AtomicU64>,
    drawn: AtomicU64,
    /// Its part in a recording.
    part: Mutex<Option<Part>>,
}

impl Stream {
    pub(crate) fn new(
        device: Arc<Device>,
        id: u64,
        number: u32,
        queue: Arc<HardwareQueue>,
    ) -> Self {
        Self {
            device,
            id,
            number,
            queue,
            submitted: AtomicU64::new(0),
            completed: Arc::default(),
            drawn: AtomicU64::new(0),
            part: Mutex::default(),
        }
    }

    /// Hands an operation over, or records it. Blocks while the hardware queue is full.
    ///
    /// # Errors
    /// If the device is broken.
    pub fn submit(self: &Arc<Self>, op: Op) -> Result<(), Broken> {
        if let Some(part) = &mut *self.part() {
            part.add(op);
            return Ok(());
        }
        self.run(op)
    }

    /// As [`Stream::submit`], without recording.
    pub(crate) fn run(self: &Arc<Self>, op: Op) -> Result<(), Broken> {
        if let Some(broken) = self.device.broken() {
            return Err(broken);
        }
        let number = self.submitted.fetch_add(op.numbers(), Ordering::AcqRel);
        self.device.begin();
        self.queue.push(Arc::clone(self), number, op);
        Ok(())
    }

    /// Runs a graph.
    ///
    /// # Errors
    /// If the device is broken.
    pub fn launch(self: &Arc<Self>, machine: &Machine, graph: &Graph) -> Result<(), Broken> {
        let mut ops = graph.ops(machine, &self.device).into_iter();
        ops.try_for_each(|op| self.run(op))
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

    /// Whose random numbers those of an operation are.
    pub(crate) fn user(&self, operation: u64) -> User {
        User {
            device: self.device.index,
            stream: self.number,
            operation,
        }
    }

    /// An operation has drawn so much.
    pub(crate) fn note_drawn(&self, random: Random) {
        self.drawn.fetch_add(random.drawn(), Ordering::Relaxed);
    }

    /// Stands for all that was drawn for its operations: two runs of the same operations under one seed give
    /// the same.
    #[must_use]
    pub fn drawn(&self) -> u64 {
        self.drawn.load(Ordering::Relaxed)
    }

    /// Its count of operations that have ended, which outlives it: a queue is free for another stream
    /// when nobody holds this one, and who waits for its end may make that other stream at once.
    pub(crate) fn ended(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.completed)
    }

    /// Its part in a recording that has not ended.
    pub(crate) fn part(&self) -> MutexGuard<'_, Option<Part>> {
        let mut part = self.part.lock().unwrap_or_else(PoisonError::into_inner);
        // It ends on one stream for all that take part.
        if part.as_ref().is_some_and(Part::is_over) {
            *part = None;
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Kind;
    use crate::{Backing, BoxFile};
    use std::time::Duration;

    /// What is drawn for two streams that share a queue, to which two threads hand copies over, in any order.
    fn drawn(seed: u64, pause: [u64; 2]) -> [u64; 2] {
        const BYTES: u64 = 4096;
        let text = include_str!("../boxes/h100x8.yaml").to_owned();
        let text = text + "queues: 1\ndelays: {one_in: 4, longest_us: 50}\n";
        let facts = BoxFile::parse(&text).unwrap();
        let machine: &'static Machine =
            Box::leak(Box::new(Machine::new(facts, seed, None, None).unwrap()));
        let device = machine.device(0).unwrap();
        let at = machine.space.take(4 * BYTES, 4096).unwrap();
        let backing = Arc::new(Backing::new(0, 4 * BYTES).unwrap());
        machine.space.put(at, 4 * BYTES, Kind::Own(backing), 1);
        let streams = [(); 2].map(|()| device.stream(machine).unwrap());
        std::thread::scope(|scope| {
            for (at, (stream, pause)) in [at, at + 2 * BYTES]
                .into_iter()
                .zip(streams.iter().zip(pause))
            {
                scope.spawn(move || {
                    for _ in 0..200 {
                        let copy = Op::Copy {
                            dst: at,
                            src: at + BYTES,
                            bytes: BYTES,
                            rows: 1,
                            dst_pitch: 0,
                            src_pitch: 0,
                        };
                        stream.submit(copy).unwrap();
                        std::thread::sleep(Duration::from_micros(pause));
                    }
                });
            }
        });
        device.synchronise("test").unwrap();
        streams.map(|stream| stream.drawn())
    }

    #[test]
    fn a_seed_repeats_what_is_drawn_however_threads_run() {
        let first = drawn(7, [0, 100]);
        assert_ne!(first[0], first[1]);
        for pause in [[0, 0], [100, 0], [30, 90]] {
            assert_eq!(drawn(7, pause), first);
        }
        let other = drawn(8, [0, 100]);
        assert!(other[0] != first[0] && other[1] != first[1]);
    }
}
