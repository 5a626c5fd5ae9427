//! One rank: does what is measured, one thing after the other, and says what each cost.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use unisono::{Communicator, Init, ReduceOp};
use unisono_tests::{Footprint, Held, cpu_time};

/// Elements of the two messages: 1 KiB and 1 MiB.
const SMALL: usize = (1 << 10) / size_of::<f32>();
const LARGE: usize = (1 << 20) / size_of::<f32>();

/// What other ranks still do with the memory of a rank is over after this.
const SETTLE: Duration = Duration::from_millis(100);

/// What a rank found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// From `Init` until the communicator of all ranks is there.
    pub join: Spent,
    /// The first call, which takes the memory that calls need.
    pub barrier: Spent,
    /// The first all_reduce of 1 KiB, which is planned.
    pub small_first: Spent,
    pub small_second: Spent,
    /// The first all_reduce of 1 MiB.
    pub large_first: Spent,
    pub large_second: Spent,
    /// A further communicator of all ranks.
    pub split: Spent,
    /// Its first barrier and first all_reduce of both sizes together.
    pub split_calls: Spent,
    /// Memory before anything else.
    pub before: Footprint,
    /// What `join` added.
    pub joined: Footprint,
    /// What join and the first calls added: the first communicator as it is used.
    pub used: Footprint,
    /// The staging and the flags of the first communicator, touched or not.
    pub held: u64,
    /// What a further communicator of all ranks and its first calls added.
    pub further: Footprint,
    /// What a communicator of this rank alone and its first calls added.
    pub alone: Footprint,
    /// Threads and open descriptors with one communicator, in use.
    pub threads: usize,
    pub descriptors: usize,
}

/// Time of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// By the clock, in seconds.
    pub wall: f64,
    /// On a processor, all threads of this rank, in seconds.
    pub processor: f64,
}

/// Measures in this process, as one rank of a job; rank 0 writes the job's link graph to a file.
pub fn measure(graph: &Path) -> Result<Figures> {
    let mut data = Data::touched();
    let before = Footprint::now().context("the memory of this process")?;

    let (world, join) = spent(|| Ok(Init::from_env().join()?))?;
    let joined = settled()?;

    let ((), barrier) = spent(|| Ok(world.barrier()?))?;
    let ((), small_first) = data.all_reduce(&world, SMALL)?;
    let ((), small_second) = data.all_reduce(&world, SMALL)?;
    let ((), large_first) = data.all_reduce(&world, LARGE)?;
    let ((), large_second) = data.all_reduce(&world, LARGE)?;
    world.barrier()?;
    let used = settled()?;
    let held = Held::now();
    let staging = world.held_bytes();

    world.barrier()?;
    let (further, split) = spent(|| part(&world, 0))?;
    let ((), split_calls) = spent(|| data.every_call(&further))?;
    let with_further = settled()?;

    world.barrier()?;
    let alone = part(&world, world.rank())?;
    ensure!(alone.size() == 1, "a color of its own is a rank alone");
    data.every_call(&alone)?;
    let with_alone = settled()?;

    if world.rank() == 0 {
        std::fs::write(graph, world.graph().to_json())
            .with_context(|| format!("writing the graph to {}", graph.display()))?;
    }
    // Nobody leaves while another still looks at what is shared.
    world.barrier()?;
    drop((further, alone));
    world.finalize()?;
    Ok(Figures {
        join,
        barrier,
        small_first,
        small_second,
        large_first,
        large_second,
        split,
        split_calls,
        before,
        joined: joined.beyond(&before),
        used: used.beyond(&before),
        held: staging,
        further: with_further.beyond(&used),
        alone: with_alone.beyond(&with_further),
        threads: held.threads,
        descriptors: held.fds,
    })
}

/// The ranks of this color, as a communicator.
fn part(world: &Communicator, color: u32) -> Result<Communicator> {
    let part = world.split(Some(color), i64::from(world.rank()))?;
    part.context("a rank with a color gets a communicator")
}

/// The memory of this process, when others have come as far as this rank.
fn settled() -> Result<Footprint> {
    std::thread::sleep(SETTLE);
    Footprint::now().context("the memory of this process")
}

/// Does it, and says how long that took.
fn spent<T>(it: impl FnOnce() -> Result<T>) -> Result<(T, Spent)> {
    let (clock, processor) = (Instant::now(), cpu_time());
    let done = it()?;
    let spent = Spent {
        wall: clock.elapsed().as_secs_f64(),
        processor: cpu_time().saturating_sub(processor).as_secs_f64(),
    };
    Ok((done, spent))
}

/// What the calls are made with: memory of the program's, which is there before anything is measured.
struct Data {
    send: Vec<f32>,
    recv: Vec<f32>,
}

impl Data {
    fn touched() -> Self {
        Self {
            send: vec![1.0; LARGE],
            recv: vec![-1.0; LARGE],
        }
    }

    /// One all_reduce of this many elements, begun by all ranks together, checked.
    fn all_reduce(&mut self, on: &Communicator, elements: usize) -> Result<((), Spent)> {
        on.barrier()?;
        let (send, recv) = (&self.send[..elements], &mut self.recv[..elements]);
        recv.fill(-1.0);
        let done = spent(|| Ok(on.all_reduce(send, recv, ReduceOp::Sum)?))?;
        let sum = on.size() as f32;
        ensure!(
            recv.iter().all(|value| *value == sum),
            "the sum of {elements} ones of {} ranks is wrong on rank {}",
            on.size(),
            on.rank()
        );
        Ok(done)
    }

    fn every_call(&mut self, on: &Communicator) -> Result<()> {
        self.all_reduce(on, SMALL)?;
        self.all_reduce(on, LARGE)?;
        on.barrier()?;
        Ok(())
    }
}
