//! Collectives that a program records into graphs of its own: each replay is a call, with no work of the
//! host's.
#![allow(
    unsafe_code,
    reason = "calls the driver, and hands addresses to collectives"
)]

mod ends;
mod forked;
mod ranks;
mod refused;
mod replays;

use std::time::Duration;

use unisono::plan::Op;
use unisono::{
    Communicator, DataType, InitOptions, PluginRequest, RawCall, ReduceOp, Result, Sizes, Stream,
};
use unisono_emulated_tests::{Driver, Handle, Values};

/// Vendors' plugins, and a machine of the devices of each.
const VENDORS: [(&str, &str); 2] = [("cuda", "h100x8"), ("rocm", "mi300x8")];
/// Schedules that find what is not ordered.
const ADVERSE: &str = "delays: {one_in: 16, longest_us: 100}\n";

/// What a test tells its ranks' processes.
fn told(name: &str) -> String {
    std::env::var(name).expect(name)
}

/// A device of its own for each rank.
fn own(plugin: &str) -> impl Fn(&mut InitOptions) + Send + Sync + use<> {
    let plugin = plugin.to_owned();
    move |options| {
        options.plugins = vec![PluginRequest::named(&plugin)];
        options.device = Some((plugin.clone(), options.rank));
        options.timeouts.op = Duration::from_secs(20);
    }
}

/// What a rank gives in a round.
fn given(rank: u32, round: u64, at: usize) -> i32 {
    (u64::from(rank) * 1009 + round * 7919 + at as u64 * 31) as i32
}

/// What a rank gives, all of it.
fn all_given(rank: u32, round: u64, len: usize) -> Vec<i32> {
    (0..len).map(|at| given(rank, round, at)).collect()
}

/// The sums of what the ranks give.
fn sums(ranks: u32, round: u64, len: usize) -> Vec<i32> {
    let sum = |at| (0..ranks).map(|rank| given(rank, round, at)).sum();
    (0..len).map(sum).collect()
}

/// A rank's program, of rank n of the job on device n: its communicator, and a stream of its own of the vendor's.
struct Program {
    world: Communicator,
    driver: Driver,
    native: Handle,
    stream: Stream,
    /// Other threads of the process are ranks, too.
    beside_others: bool,
}

impl Program {
    /// Of a rank that is a thread.
    fn beside_others(world: Communicator, plugin: &str) -> Self {
        Self {
            beside_others: true,
            ..Self::new(world, plugin)
        }
    }

    fn new(world: Communicator, plugin: &str) -> Self {
        let driver = Driver::of(plugin);
        driver.enter(world.world_rank() as i32);
        let native = driver.stream();
        // SAFETY: the stream lives as long as the process.
        let stream = unsafe { world.wrap_stream(native as u64) }.expect("a stream");
        Self {
            world,
            driver,
            native,
            stream,
            beside_others: false,
        }
    }

    /// What a call is.
    fn call(op: Op, ends: [u64; 2], len: usize) -> RawCall<'static> {
        let reduces = matches!(op, Op::AllReduce | Op::ReduceScatter | Op::Reduce { .. });
        RawCall {
            op,
            input: ends[0],
            output: ends[1],
            sizes: Sizes::Equal(len as u64),
            dtype: DataType::I32,
            reduction: reduces.then(|| ReduceOp::Sum.into()),
        }
    }

    /// Calls on the stream.
    fn on_stream(&self, op: Op, ends: [u64; 2], len: usize) -> Result<()> {
        self.on(&self.stream, op, ends, len)
    }

    /// Calls on a stream.
    fn on(&self, stream: &Stream, op: Op, ends: [u64; 2], len: usize) -> Result<()> {
        // SAFETY: device memory that lives until the stream, and each graph, has been waited for.
        let started = unsafe { self.world.on(stream).start_raw(Self::call(op, ends, len)) };
        started.map(drop)
    }

    /// An all_reduce in place, on the stream.
    fn all_reduce(&self, data: &Values<i32>, len: usize) -> Result<()> {
        self.on_stream(Op::AllReduce, [data.address(); 2], len)
    }

    /// What `calls` put on the stream, as a graph.
    fn record(&self, calls: impl FnOnce()) -> Handle {
        self.record_from(self.native, calls)
    }

    /// Where a recording begins on another stream.
    fn record_from(&self, native: Handle, calls: impl FnOnce()) -> Handle {
        match self.beside_others {
            true => self.driver.begin_beside_others(native),
            false => self.driver.begin(native),
        }
        calls();
        self.driver.end(native)
    }

    fn launch(&self, graph: Handle) {
        self.driver.launch(graph, self.native);
    }

    fn synchronise(&self) {
        self.driver.synchronise(self.native);
    }

    /// Copies to a device in the stream's order.
    fn copy_in(&self, to: &Values<i32>, from: &[i32]) {
        // SAFETY: the caller waits for the stream before either goes.
        unsafe {
            let bytes = size_of_val(from);
            (self.driver).copy_in(self.native, to.address(), from.as_ptr().cast(), bytes);
        }
    }

    /// Copies from a device in the stream's order.
    fn copy_out(&self, to: &mut [i32], from: &Values<i32>) {
        // SAFETY: the caller waits for the stream before either goes.
        unsafe {
            let bytes = size_of_val(to);
            (self.driver).copy_out(self.native, to.as_mut_ptr().cast(), from.address(), bytes);
        }
    }
}
