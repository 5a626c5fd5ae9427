//! The table with which every rank ends the rendezvous: who and where all ranks are.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::cores::Cores;
use crate::identity::{self, NodeId};

/// One rank, as it described itself under the job's secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankEntry {
    /// Its rank.
    pub rank: u32,
    /// The node that it runs on.
    pub node: NodeId,
    /// Its process, in its own process-id namespace.
    pub pid: u32,
    /// When that process started, in clock ticks after boot: with `pid` it names one process for good.
    pub start_time: u64,
    /// Where its process id has a meaning: equal for ranks that can find each other by `pid`.
    pub process_scope: [u8; 16],
    /// The cores that it may run on.
    pub cores: Cores,
    /// Where its control channel listens, best first.
    pub addresses: Vec<SocketAddr>,
    /// The public key that it proves itself by.
    pub public_key: [u8; 32],
    /// What it runs: library version and ABI.
    pub version: String,
    /// What its caller contributed.
    pub payload: Vec<u8>,
}

/// All ranks of a job, the same on each of them. Clones share it.
#[derive(Clone, Debug)]
pub struct Directory {
    entries: Arc<[RankEntry]>,
}

impl Directory {
    /// A table of entries that stand at the index of their rank.
    pub(crate) fn new(entries: Vec<RankEntry>) -> Directory {
        debug_assert!(
            entries
                .iter()
                .enumerate()
                .all(|(index, entry)| entry.rank as usize == index)
        );
        Directory {
            entries: entries.into(),
        }
    }

    /// How many ranks there are.
    pub fn size(&self) -> u32 {
        self.entries.len() as u32
    }

    /// One rank's entry.
    pub fn get(&self, rank: u32) -> Option<&RankEntry> {
        self.entries.get(rank as usize)
    }

    /// All of them, by rank.
    pub fn entries(&self) -> &[RankEntry] {
        &self.entries
    }

    /// The ranks of one node, ascending.
    pub fn node_ranks(&self, node: NodeId) -> Vec<u32> {
        self.entries
            .iter()
            .filter(|entry| entry.node == node)
            .map(|entry| entry.rank)
            .collect()
    }

    /// The nodes, in the order of their lowest ranks.
    pub fn nodes(&self) -> Vec<NodeId> {
        let mut seen = std::collections::HashSet::new();
        self.entries
            .iter()
            .map(|entry| entry.node)
            .filter(|node| seen.insert(*node))
            .collect()
    }

    /// Whether `signature` is that rank's own [`Prover::prove`](crate::Prover::prove) of `transcript`.
    pub fn verify(&self, rank: u32, transcript: &[u8], signature: &[u8]) -> bool {
        self.get(rank).is_some_and(|entry| {
            identity::verify(&entry.public_key, "channel", transcript, signature)
        })
    }
}
