//! Short calls that the program records into a graph of its own: ranks that are threads of one process.
#![allow(unsafe_code, reason = "hands addresses and a stream to collectives")]

use std::sync::Barrier;
use std::time::{Duration, Instant};

use unisono::plan::Op;
use unisono::{Communicator, DataType, RawCall, ReduceOp, Sizes};
use unisono_emulated_tests::{Driver, Handle, Values};
use unisono_tests::threads;

use crate::collectives::median;
use crate::{PLUGIN, Scale, first_device};

/// Calls in the graph of which one call's part is told.
const CALLS: u32 = 20;

/// What one all_reduce takes.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// Alone in its graph, from its launch until the host knows that it is done.
    pub alone: Duration,
    /// One of many in a graph.
    pub among: Duration,
}

/// A rank's stream and buffer.
struct Rank {
    world: Communicator,
    driver: Driver,
    native: Handle,
    data: Values<f32>,
    elements: usize,
}

impl Rank {
    fn new(world: Communicator, bytes: usize) -> Self {
        let driver = Driver::of(PLUGIN);
        driver.enter(0);
        let native = driver.stream();
        let elements = bytes / size_of::<f32>();
        let data = Values::new(world.device(), elements);
        data.write(&vec![0.0; elements]);
        Self {
            world,
            driver,
            native,
            data,
            elements,
        }
    }

    /// A graph of so many all_reduces in place.
    fn record(&self, calls: u32) -> Handle {
        // SAFETY: the stream lives as long as the process.
        let stream = unsafe { self.world.wrap_stream(self.native as u64) }.expect("a stream");
        self.driver.begin_beside_others(self.native);
        for _ in 0..calls {
            let call = RawCall {
                op: Op::AllReduce,
                input: self.data.address(),
                output: self.data.address(),
                sizes: Sizes::Equal(self.elements as u64),
                dtype: DataType::F32,
                reduction: Some(ReduceOp::Sum.into()),
            };
            // SAFETY: device memory that outlives the graph's last run.
            let started = unsafe { self.world.on(&stream).start_raw(call) };
            drop(started.expect("a call that is recorded"));
        }
        self.driver.end(self.native)
    }

    /// One run, in which each rank gives ones.
    ///
    /// # Panics
    /// If a sum is wrong.
    fn check(&self, graph: Handle, ready: &Barrier) {
        self.data.write(&vec![1.0; self.elements]);
        ready.wait();
        self.driver.launch(graph, self.native);
        self.driver.synchronise(self.native);
        let ranks = self.world.size() as f32;
        let sums = self.data.read();
        assert!(sums.iter().all(|sum| *sum == ranks), "{sums:?}");
        self.data.write(&vec![0.0; self.elements]);
    }

    /// How long each run took with all ranks at its start, after one that is not counted.
    fn times(&self, graph: Handle, ready: &Barrier, repeats: usize) -> Vec<Duration> {
        let timed = |_| {
            ready.wait();
            let since = Instant::now();
            self.driver.launch(graph, self.native);
            self.driver.synchronise(self.native);
            since.elapsed()
        };
        (0..=repeats).map(timed).skip(1).collect()
    }
}

/// The medians of an all_reduce of so many bytes, on the first rank.
pub fn short(ranks: u32, bytes: usize, scale: Scale) -> Short {
    let ready = Barrier::new(ranks as usize);
    let of_ranks = threads(ranks, first_device, move |world| {
        let rank = Rank::new(world, bytes);
        // What makes a graph may wait for all that the device has under way.
        ready.wait();
        let graphs = [1, CALLS].map(|calls| rank.record(calls));
        ready.wait();
        rank.check(graphs[0], &ready);
        ready.wait();
        let times = graphs.map(|graph| median(rank.times(graph, &ready, scale.short_repeats)));
        ready.wait();
        times
    });
    let [alone, among] = of_ranks.into_iter().next().unwrap_or_default();
    Short {
        alone,
        among: among / CALLS,
    }
}
