//! What users hold: a set of ranks that can call collectives together.

mod asked;
mod bottleneck;
mod buffer;
mod channel;
mod fabric;
mod failure;
mod fetched;
mod force;
mod form;
mod fronts;
mod grid;
mod group;
mod home;
mod let_go;
mod linked;
mod links;
mod offer;
mod on_stream;
mod ops;
mod packed;
mod paths;
mod plans;
mod reads;
mod recording;
mod refused;
mod shared;
mod split;
mod staged;
mod start;
mod stopped;
mod stream;
mod support;
mod templates;
mod told_once;
mod ways;
mod window;
mod wire;
mod work;

use std::sync::Arc;
use std::time::Instant;

pub use bottleneck::{Bottleneck, Busiest, LinkUse};
pub use buffer::Buffer;
pub use failure::AbortHandle;
pub(crate) use force::{Forced, Place};
pub use grid::{Grid, ParseGridError};
pub use group::{Group, OnCommunicator, group};
pub use linked::LinkEnd;
pub use links::PeerLink;
pub use on_stream::OnStream;
pub use ops::RawCall;
pub use paths::{MemoryPath, MemoryPaths};
pub use plans::Explanation;
pub(crate) use reads::own as own_process;
pub(crate) use shared::Shared;
pub use window::{Registration, Window};
pub(crate) use wire::{Reader, put_bytes};
pub use work::{Pending, Work};

use unisono_bootstrap::{InterfaceFilter, RootSpec, UniqueId, Wait};

use crate::error::Result;
use crate::options::InitOptions;
use crate::world::World;

/// A set of ranks that call collectives together.
///
/// A communicator may be moved between threads; its calls are made one at a time, by the caller's
/// care or the type system's (`&self` calls from two threads are safe, and ordered by whoever comes
/// first, which the other ranks then have to match). Different communicators may be used from
/// different threads at once. Every rank must make the same calls in the same order.
///
/// After an error that is not [harmless](crate::Error::is_harmless) every later call fails with it.
pub struct Communicator {
    shared: Arc<Shared>,
}

impl Communicator {
    /// Joins the job: finds and loads the plugins, meets the other ranks, freezes the link graph
    /// and forms the communicator of all ranks. Blocks, at most until `timeouts.init`.
    ///
    /// # Errors
    /// If a plugin that was asked for cannot be used, if ranks are missing (named), if no link
    /// joins two ranks.
    pub fn init(options: InitOptions) -> Result<Self> {
        let since = Instant::now();
        let size = options.size;
        let world = World::join(options)?;
        let id = shared::first_id(&world.table);
        let name = world.options.name.clone();
        let shared = form::form(&world, id, name, (0..size).collect())?;
        form::log_formed(&shared, since);
        Ok(Self::new(shared))
    }

    /// Forms a job of `size` ranks that are threads of this process, and gives their communicators
    /// by rank; hand each to a thread of its own. `options` is asked for the options of each rank;
    /// where the ranks meet, and which is which on the node, is set here. Blocks, at most until `timeouts.init`.
    ///
    /// # Errors
    /// The error of the lowest rank that has one, as [`Communicator::init`].
    pub fn init_all(size: u32, options: impl Fn(u32) -> InitOptions + Sync) -> Result<Vec<Self>> {
        let id = UniqueId::create(&InterfaceFilter::loopback(), 0)?;
        std::thread::scope(|scope| {
            let join = |rank| {
                let mut options = options(rank);
                (options.rank, options.size) = (rank, size);
                // All are on one node.
                options.local_rank.get_or_insert(rank);
                options.root = RootSpec::UniqueId(id.clone());
                Self::init(options)
            };
            let ranks: Vec<_> = (0..size)
                .map(|rank| scope.spawn(move || join(rank)))
                .collect();
            let joined: Vec<_> = ranks.into_iter().map(|rank| rank.join()).collect();
            joined
                .into_iter()
                .map(|rank| rank.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    fn new(shared: Arc<Shared>) -> Self {
        shared.world.enter();
        Self { shared }
    }

    /// This rank, in this communicator.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.shared.rank
    }

    /// Ranks in this communicator.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.shared.size()
    }

    /// The name: "world", or as its maker named it. Overrides select by it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// This rank in the whole job.
    #[must_use]
    pub fn world_rank(&self) -> u32 {
        self.shared.world.rank
    }

    /// The job's frozen link graph, the same on all ranks.
    #[must_use]
    pub fn graph(&self) -> &unisono_graph::LinkGraph {
        &self.shared.world.graph
    }

    /// How the ranks met: what was tried, skipped and refused, and why.
    #[must_use]
    pub fn bootstrap_report(&self) -> &unisono_bootstrap::Report {
        &self.shared.world.bootstrap
    }

    /// Connections that were refused at this rank's control port until now, by reason: strangers,
    /// port scans, wrong secrets.
    #[must_use]
    pub fn strays(&self) -> unisono_bootstrap::Strays {
        self.shared.world.control.strays()
    }

    /// The device that this rank uses.
    #[must_use]
    pub fn device(&self) -> &unisono_hal::Device {
        &self.shared.world.device
    }

    /// Bytes of staging and flags that this rank holds for this communicator, and of the room where an all_to_all in place
    /// put its input aside. Pages that were never touched count, but cost nothing.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.shared.lane.held_bytes() + self.shared.asides.held_bytes()
    }

    /// Leaves together with all ranks: waits for what is pending, then for everybody, at most for
    /// `timeouts.finalize`.
    ///
    /// # Errors
    /// What broke the communicator, if it is broken; a timeout, if not everybody leaves.
    pub fn finalize(self) -> Result<()> {
        let limit = self.shared.world.options.timeouts.finalize;
        self.barrier_within(limit)?;
        let wait = Wait::at_most(limit);
        self.shared.flush(limit);
        // Nobody closes a link that another still sends on.
        self.shared.exchange_within(b"bye", &wait).map(|_| ())
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        if self.shared.close() {
            self.shared.world.leave();
        }
    }
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Communicator")
            .field("name", &self.shared.name)
            .field("rank", &self.rank())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}
