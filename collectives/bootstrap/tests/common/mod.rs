//! What the tests share: jobs whose ranks are threads.

#![allow(
    dead_code,
    unused_imports,
    reason = "each test binary uses its own share"
)]

#[path = "../../../../tests/suite/src/port.rs"]
mod port;

pub use port::free_address;

use std::time::Duration;

use unisono_bootstrap::{
    Bootstrap, Heartbeat, InterfaceFilter, Joined, NodeId, Options, Result, RootSpec, UniqueId,
    Wait,
};

/// Generous: the tests share two cores with each other.
pub const LIMIT: Duration = Duration::from_secs(30);

pub fn unique_id() -> UniqueId {
    UniqueId::create(&InterfaceFilter::loopback(), 0).expect("a root on loopback")
}

/// Options of a rank of a job that meets by `id`, on nodes of `per_node` ranks.
pub fn options(id: &UniqueId, rank: u32, size: u32, per_node: u32) -> Options {
    let mut options = Options::new(rank, size, RootSpec::UniqueId(id.clone()));
    let node = rank / per_node;
    options.node_id = Some(NodeId::from_text(&format!("test node {node}")));
    options.local_size = Some(per_node.min(size - node * per_node));
    options.wait = Wait::at_most(LIMIT);
    options.payload = payload(rank);
    options
}

pub fn payload(rank: u32) -> Vec<u8> {
    format!("payload of rank {rank} ")
        .repeat(1 + rank as usize % 20)
        .into_bytes()
}

/// Joins all of these on threads of their own; results by their order.
pub fn join_all(options: Vec<Options>) -> Vec<Result<Joined>> {
    let threads: Vec<_> = options
        .into_iter()
        .map(|options| std::thread::spawn(move || Bootstrap::join(options)))
        .collect();
    threads
        .into_iter()
        .map(|thread| thread.join().expect("no rank panics"))
        .collect()
}

/// A whole job.
pub fn job(size: u32, per_node: u32) -> Vec<Joined> {
    job_with(size, per_node, Heartbeat::default())
}

pub fn job_with(size: u32, per_node: u32, heartbeat: Heartbeat) -> Vec<Joined> {
    let id = unique_id();
    let all = (0..size)
        .map(|rank| Options {
            heartbeat,
            ..options(&id, rank, size, per_node)
        })
        .collect();
    join_all(all)
        .into_iter()
        .map(|joined| joined.expect("the job comes together"))
        .collect()
}

/// Runs `work` for each rank on a thread of its own; results by rank.
pub fn on_each<T: Send>(ranks: &[Joined], work: impl Fn(&Joined) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = ranks
            .iter()
            .map(|joined| scope.spawn(|| work(joined)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no rank panics"))
            .collect()
    })
}
