//! Ranks that are threads of one process, all on one device.
#![allow(unsafe_code, reason = "hands addresses to collectives")]

use std::sync::Barrier;
use std::time::{Duration, Instant};

use unisono::plan::Op;
use unisono::{Communicator, DataType, RawCall, ReduceOp, Reduction, Sizes, Window};
use unisono_emulated_tests::Values;
use unisono_tests::threads;

use crate::{Scale, first_device};

/// What is measured.
pub const OPS: [(&str, Op); 3] = [
    ("all_reduce", Op::AllReduce),
    ("all_gather", Op::AllGather),
    ("reduce_scatter", Op::ReduceScatter),
];

/// The least that must be read and written for a message of one byte among so many ranks.
pub const fn least_traffic(op: Op, ranks: u32) -> u64 {
    match op {
        Op::AllReduce => 2 * ranks as u64,
        _ => 1 + ranks as u64,
    }
}

/// Memory for calls of one size.
///
/// Registering memory blocks behind all work of the device: ranks that share one, and a process, prepare
/// before any of them waits for another.
pub struct Prepared {
    part: Buffer,
    whole: Buffer,
    elements: usize,
}

/// Where messages lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In memory of the rank's own, as a program has it.
    Own,
    /// In memory of the communicator's, which all ranks reach.
    Windows,
}

enum Buffer {
    Own(Values<f32>),
    Window(Window<f32>),
}

impl Buffer {
    fn new(world: &Communicator, home: Home, len: usize) -> Self {
        match home {
            Home::Own => Self::Own(Values::new(world.device(), len)),
            Home::Windows => Self::Window(world.alloc(len).expect("a window")),
        }
    }

    fn address(&self) -> u64 {
        match self {
            Self::Own(values) => values.address(),
            Self::Window(window) => window.address(),
        }
    }
}

impl Prepared {
    /// For messages of so many bytes.
    pub fn new(world: &Communicator, home: Home, bytes: usize) -> Self {
        let ranks = world.size() as usize;
        let part = bytes / size_of::<f32>() / ranks;
        Self {
            part: Buffer::new(world, home, part),
            whole: Buffer::new(world, home, part * ranks),
            elements: part * ranks,
        }
    }

    /// One call, from input to output, as each operation has them.
    pub fn call(&self, world: &Communicator, op: Op) {
        let [part, whole] = [&self.part, &self.whole].map(Buffer::address);
        let sum = Some(Reduction::from(ReduceOp::Sum));
        let (input, output, reduction) = match op {
            Op::AllReduce => (whole, whole, sum),
            Op::ReduceScatter => (whole, part, sum),
            _ => (part, whole, None),
        };
        let call = RawCall {
            op,
            input,
            output,
            sizes: Sizes::Equal(self.elements as u64),
            dtype: DataType::F32,
            reduction,
        };
        // SAFETY: device memory of this struct's, which nobody else uses, and the call is over when it returns.
        let done = unsafe { world.call_raw(call) };
        done.unwrap_or_else(|error| panic!("{op:?}: {error}"));
    }

    /// How long each repeat took on one rank, with all ranks at its start, after one that is not counted.
    pub fn times(&self, world: &Communicator, op: Op, repeats: usize) -> Vec<Duration> {
        self.call(world, op);
        let timed = |_| {
            world.barrier().expect("a barrier");
            let since = Instant::now();
            self.call(world, op);
            since.elapsed()
        };
        (0..repeats).map(timed).collect()
    }
}

/// The times of ranks that are threads.
fn of_threads(
    (ranks, home): (u32, Home),
    op: Op,
    bytes: usize,
    repeats: usize,
) -> Vec<Vec<Duration>> {
    let (ready, done) = (Barrier::new(ranks as usize), Barrier::new(ranks as usize));
    threads(ranks, first_device, move |world| {
        let prepared = Prepared::new(&world, home, bytes);
        ready.wait();
        let times = prepared.times(&world, op, repeats);
        done.wait();
        times
    })
}

/// The best repeat of a long message: the time of the rank that took longest in it.
pub fn long(ranks: u32, home: Home, op: Op, scale: Scale) -> Duration {
    let of_ranks = of_threads((ranks, home), op, scale.long, scale.long_repeats);
    let slowest = |repeat: usize| of_ranks.iter().filter_map(|times| times.get(repeat)).max();
    let best = (0..scale.long_repeats).filter_map(slowest).min();
    best.copied().unwrap_or_default()
}

/// The median of a short all_reduce, on the first rank.
pub fn short(ranks: u32, bytes: usize, scale: Scale) -> Duration {
    let of_ranks = of_threads(
        (ranks, Home::Own),
        Op::AllReduce,
        bytes,
        scale.short_repeats,
    );
    median(of_ranks.into_iter().next().unwrap_or_default())
}

/// The middle of some times.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
