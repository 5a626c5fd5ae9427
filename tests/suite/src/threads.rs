//! Ranks as threads of one process.

use std::sync::Arc;

use unisono::bootstrap::{InterfaceFilter, RootSpec, UniqueId};
use unisono::{Communicator, InitOptions, PluginRequest};

/// Options for one rank of `size`, with the default plugins, as found by the loader's search.
#[must_use]
pub fn options(rank: u32, size: u32, root: RootSpec) -> InitOptions {
    let mut options = InitOptions::new(rank, size, root);
    options.plugins = vec![PluginRequest::named("host"), PluginRequest::named("tcp")];
    options
}

/// Runs `rank` on `size` threads, each with its communicator, and gives their answers by rank.
///
/// # Panics
/// If a rank does, or cannot join.
pub fn threads<T: Send + 'static>(
    size: u32,
    adjust: impl Fn(&mut InitOptions) + Send + Sync + 'static,
    body: impl Fn(Communicator) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let id = UniqueId::create(&InterfaceFilter::loopback(), 0).expect("a unique id");
    let (adjust, body) = (Arc::new(adjust), Arc::new(body));
    let ranks: Vec<_> = (0..size)
        .map(|rank| {
            let (id, adjust, body) = (id.clone(), adjust.clone(), body.clone());
            std::thread::spawn(move || {
                let mut options = options(rank, size, RootSpec::UniqueId(id));
                adjust(&mut options);
                let world = Communicator::init(options)
                    .unwrap_or_else(|error| panic!("rank {rank}: {error}"));
                body(world)
            })
        })
        .collect();
    ranks
        .into_iter()
        .map(|rank| rank.join().expect("no panic"))
        .collect()
}
