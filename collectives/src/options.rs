//! What a process says in order to take part in a job.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use unisono_bootstrap::{Heartbeat, InterfaceFilter, NodeId, RootSpec, SecretSource};
use unisono_graph::Overlay;
use unisono_hal::{Loader, Plugin};
use unisono_plan::select::Overrides;

use crate::tune::Calibration;

/// A plugin to use.
#[derive(Clone, Debug)]
pub struct PluginRequest {
    /// Its name.
    pub name: String,
    /// Where it is: a file, or by the loader's search.
    pub path: Option<PathBuf>,
    /// A plugin that is linked into the program; no file is looked for.
    pub linked: Option<Plugin>,
    /// Its parameters, as they would stand in the cluster file.
    pub params: Vec<(String, String)>,
}

impl PluginRequest {
    /// A plugin to be found by the loader's search, with its default parameters.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            path: None,
            linked: None,
            params: Vec::new(),
        }
    }
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Meeting the other ranks, and forming a communicator.
    pub init: Duration,
    /// One call, from its first step on.
    pub op: Duration,
    /// After a failure: until streams and links have let go of the callers' buffers.
    pub abort_drain: Duration,
    /// Leaving a communicator in good order.
    pub finalize: Duration,
}

impl Default for Timeouts {
    /// A minute to meet and for a call, 5 s to drain, 10 s to leave.
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self {
            init: minute,
            op: minute,
            abort_drain: Duration::from_secs(5),
            finalize: Duration::from_secs(10),
        }
    }
}

/// What is forced in a communicator, by its name and number of ranks.
#[derive(Clone)]
pub struct Rules(Arc<Find>);

type Find = dyn Fn(&str, u32) -> Overrides + Send + Sync;

impl Rules {
    /// Rules as a function, which must answer alike on all ranks.
    #[must_use]
    pub fn new(find: impl Fn(&str, u32) -> Overrides + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    /// The rules for one communicator.
    #[must_use]
    pub fn find(&self, communicator: &str, ranks: u32) -> Overrides {
        (self.0)(communicator, ranks)
    }
}

impl Default for Rules {
    /// Nothing is forced.
    fn default() -> Self {
        Self::new(|_, _| Overrides::NONE)
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rules")
    }
}

/// How much memory a communicator may hold for its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Bytes of slots in which a rank receives, over all peers. Slots shrink to fit. As much again may be used to send from,
    /// where links do, as much for places of short puts, as much for what an all_to_all in place puts aside, and where
    /// slots are no longer than 1 MiB at most 8 MiB for rings of what takes half a slot or less between CPUs.
    pub budget: u64,
    /// Bytes of a slot: the largest piece of a message that travels at once. Without it
    /// [`SLOT`](Self::SLOT) where all ranks are on CPUs and some share memory; else from there to
    /// [`APART_SLOT`](Self::APART_SLOT) or [`ACCELERATOR_SLOT`](Self::ACCELERATOR_SLOT), as large as
    /// [`APART_SLOTS`](Self::APART_SLOTS) and [`accelerator_slots`](Self::accelerator_slots) allow.
    pub slot: Option<u64>,
    /// Slots from each rank to each other. Of eight and more, long messages between CPUs that share memory use half, unless
    /// there are two ranks whose cores' caches hold all.
    pub slots: u32,
    /// Whether ranks on CPUs may read each other's memory, where the system lets them: long messages then need no slots.
    pub single_copy: bool,
    /// Whether slots change hands: whether two ranks on CPUs that put each other data, or answer each other's messages, fill
    /// what they have read before. `None`: where all ranks' processors give a line to the core that reads it
    /// ([`unisono_copy::hands_lines_on`]). One rank that does not is enough. The cost model goes by it, too.
    pub swap_slots: Option<bool>,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            budget: 256 << 20,
            slot: None,
            slots: 8,
            single_copy: true,
            swap_slots: None,
        }
    }
}

/// Of which slots are multiples that are as large as their number allows.
const STEP: u64 = 64 << 10;

impl MemoryOptions {
    /// The smallest slot that a budget can shrink slots to.
    pub const SMALLEST_SLOT: u64 = 4 << 10;

    /// The bytes of a slot between CPUs: what a core's cache holds some of.
    pub const SLOT: u64 = 128 << 10;

    /// The most bytes of a slot where all ranks are on CPUs and no two share memory: three quarters of the cache of a core
    /// of an EPYC 7003. Each piece costs calls of the operating system at both ends: on an EPYC 7003 over TCP on loopback
    /// pieces of 128 KiB took 1.05 to 1.3 times as long with two ranks, 1.0 to 1.5 times with four. Pieces of 512 KiB were
    /// no better, and now and then took twice as long to be added up (`unisono bench broadcast,reduce,all_gather --ranks 2
    /// -b 1M -e 64M --without-links shm --dirty`, beside the same with `--set memory.slot=128KiB`).
    pub const APART_SLOT: u64 = 384 << 10;

    /// The most bytes of all slots to receive there, where nobody says how large a slot is.
    pub const APART_SLOTS: u64 = 16 << 20;

    /// The most bytes of a slot where a rank's device is an accelerator. Its streams spend 5 to 6 us at each end of a piece
    /// besides the bytes (vendor-docs/results/gpu.md), in which a link of 450 GB/s carries 2.5 MB.
    pub const ACCELERATOR_SLOT: u64 = 8 << 20;

    /// The most bytes of all slots to receive, where a rank's device is an accelerator and nobody says how large a slot is:
    /// 128 MiB, or what is 1/512 of the smallest device's memory, 0 if nobody knows that. It is taken at once.
    #[must_use]
    pub fn accelerator_slots(memory: u64) -> u64 {
        const MOST: u64 = 128 << 20;
        match memory {
            0 => MOST,
            bytes => MOST.min(bytes / 512),
        }
    }

    /// The bytes of a slot in a communicator of `ranks` ranks. `None` if the budget is too small, or if there are fewer than
    /// two slots.
    pub(crate) fn slot_for(&self, ranks: u32, between: Between) -> Option<u64> {
        if self.slots < unisono_plan::ir::MIN_SLOTS {
            return None;
        }
        let peers = match between {
            Between::Accelerators { .. } => ranks.saturating_sub(1),
            // And what a rank shows to all.
            Between::Cpus | Between::CpusApart => ranks,
        };
        let peers = u64::from(peers.max(1));
        let total = |slot: u64| (peers * u64::from(self.slots)).saturating_mul(slot);
        let by_device = || match between {
            Between::Cpus => Self::SLOT,
            Between::CpusApart => {
                let each = Self::APART_SLOTS / total(1) / STEP * STEP;
                each.clamp(Self::SLOT, Self::APART_SLOT)
            }
            Between::Accelerators { memory } => {
                let most = Self::accelerator_slots(memory);
                let sizes =
                    std::iter::successors(Some(Self::ACCELERATOR_SLOT), |slot| Some(slot / 2));
                let mut sizes = sizes.take_while(|slot| *slot > Self::SLOT);
                let fits = sizes.find(|slot| total(*slot) <= most);
                fits.unwrap_or(Self::SLOT)
            }
        };
        let slot = self.slot.unwrap_or_else(by_device);
        let mut slot = slot.min(1 << 40).next_multiple_of(64);
        slot = slot.max(Self::SMALLEST_SLOT);
        while total(slot) > self.budget {
            slot /= 2;
            if slot < Self::SMALLEST_SLOT {
                return None;
            }
        }
        Some(slot)
    }
}

/// Between which devices the slots of a communicator lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Between {
    /// CPUs, of which some share memory.
    Cpus,
    /// CPUs of which no two share memory.
    CpusApart,
    /// Accelerators among them.
    Accelerators {
        /// Bytes of the smallest one's memory, 0 if nobody knows it.
        memory: u64,
    },
}

/// All that a rank says to join a job.
#[derive(Clone, Debug)]
pub struct InitOptions {
    /// This rank, and how many there are.
    pub rank: u32,
    /// Ranks in the job.
    pub size: u32,
    /// The name of the communicator of all ranks, by which rules select it; the same on all ranks.
    pub name: String,
    /// Ranks of the job on this node, if known.
    pub local_size: Option<u32>,
    /// This rank among those of its node, if known: it chooses the device where `device` names none.
    pub local_rank: Option<u32>,
    /// Where the ranks meet.
    pub root: RootSpec,
    /// How they recognise each other.
    pub secret: SecretSource,
    /// Overrides the node's identity.
    pub node_id: Option<NodeId>,
    /// The launcher's name for the job.
    pub job: String,
    /// Which interfaces are offered to the others.
    pub interfaces: InterfaceFilter,
    /// Signs of life between nodes.
    pub heartbeat: Heartbeat,
    /// Where plugins are looked for.
    pub loader: Loader,
    /// Plugins in order of preference. The first with a device gives this rank its device, unless
    /// `device` says otherwise: the one of its number on the node, from the first again where there
    /// are more ranks than devices. One whose driver is not on this machine is left out with a warning;
    /// it is an error if this rank's device is one of its, or would be the CPU in its stead.
    pub plugins: Vec<PluginRequest>,
    /// The plugin and the number of the device that this rank uses.
    pub device: Option<(String, u32)>,
    /// Kinds of links that must not be used, such as "shm".
    pub without_links: Vec<String>,
    /// Changes to the link graph, in order; the same on all ranks. What they say about nodes and
    /// ranks that are not in this job is passed over.
    pub overlays: Vec<Overlay>,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// Memory.
    pub memory: MemoryOptions,
    /// Algorithms forced by op, size and communicator.
    pub rules: Rules,
    /// What was measured on this cluster (`Communicator::tune`). Rank 0's counts, for all ranks.
    pub calibration: Option<Calibration>,
    /// The same bits for the same inputs, whatever the links (see `Communicator`).
    pub deterministic: bool,
    /// How long a waiting rank polls without giving up its core. Not at all where there are more
    /// ranks than cores for them.
    pub spin: Duration,
    /// How long it yields after that, before it sleeps.
    pub before_sleep: Duration,
    /// Whether the calling thread runs small calls between CPUs by itself, in place of the device's
    /// stream. The same bits either way; ranks may differ.
    pub direct: bool,
}

impl InitOptions {
    /// Options with everything else at its default.
    #[must_use]
    pub fn new(rank: u32, size: u32, root: RootSpec) -> Self {
        Self {
            rank,
            size,
            name: "world".to_owned(),
            local_size: None,
            local_rank: None,
            root,
            secret: SecretSource::PeerCredentials,
            node_id: None,
            job: String::new(),
            interfaces: InterfaceFilter::default(),
            heartbeat: Heartbeat::default(),
            loader: Loader::default(),
            plugins: Vec::new(),
            device: None,
            without_links: Vec::new(),
            overlays: Vec::new(),
            timeouts: Timeouts::default(),
            memory: MemoryOptions::default(),
            rules: Rules::default(),
            calibration: None,
            deterministic: false,
            spin: Duration::from_micros(100),
            before_sleep: Duration::from_micros(200),
            direct: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_shrink_to_the_budget() {
        let memory = MemoryOptions::default();
        assert_eq!(memory.slot_for(2, Between::Cpus), Some(128 << 10));
        assert_eq!(memory.slot_for(1000, Between::Cpus), Some(32 << 10));
        let tiny = MemoryOptions {
            budget: 1024,
            ..memory
        };
        assert_eq!(tiny.slot_for(2, Between::Cpus), None);
        let single = MemoryOptions { slots: 1, ..memory };
        assert_eq!(single.slot_for(2, Between::Cpus), None);
        let huge = MemoryOptions {
            slot: Some(u64::MAX),
            ..memory
        };
        assert!(
            huge.slot_for(2, Between::Cpus)
                .is_some_and(|slot| slot <= 32 << 20)
        );
    }

    #[test]
    fn cpus_that_share_no_memory_have_larger_slots() {
        let memory = MemoryOptions::default();
        let of = |ranks| memory.slot_for(ranks, Between::CpusApart);
        for (ranks, slot) in [(2, 384), (5, 384), (6, 320), (8, 256)] {
            assert_eq!(of(ranks), Some(slot << 10), "{ranks} ranks");
        }
        for ranks in [16, 64, 1000] {
            assert_eq!(of(ranks), memory.slot_for(ranks, Between::Cpus));
        }
    }

    #[test]
    fn accelerators_have_large_slots_within_bounds() {
        let memory = MemoryOptions::default();
        let gib = |gib: u64| Between::Accelerators { memory: gib << 30 };
        let of = |ranks, memory_gib| memory.slot_for(ranks, gib(memory_gib));
        for (ranks, slot) in [(2, 8 << 20), (4, 4 << 20), (8, 2 << 20), (64, 256 << 10)] {
            assert_eq!(of(ranks, 80), Some(slot), "{ranks} ranks");
            assert_eq!(of(ranks, 0), Some(slot), "{ranks} ranks");
        }
        assert_eq!(of(8, 16), Some(512 << 10), "a small device");
        let most = |ranks| of(ranks, 80).unwrap_or(0) * 8 * u64::from(ranks - 1);
        assert!((2..=128).all(|ranks| most(ranks) <= 128 << 20));
        assert_eq!(of(1000, 80), memory.slot_for(1000, Between::Cpus));
        let given = MemoryOptions {
            slot: Some(4096),
            ..memory
        };
        assert_eq!(given.slot_for(2, gib(80)), Some(4096));
    }
}
