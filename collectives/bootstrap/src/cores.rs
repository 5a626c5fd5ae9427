//! The cores that a rank may run on: ranks that have the same share them, on whatever nodes they take themselves to be.

use rustix::thread::{CpuSet, sched_getaffinity};
use sha2::{Digest, Sha256};

use crate::{Directory, identity};

/// The cores that a rank's thread may run on, as it joined. Ranks in containers of one machine are on nodes of their
/// own and share its cores nevertheless; ranks that are bound to different cores share a node and no cores. Sets that
/// overlap and are not equal count as different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cores {
    /// Which: equal for ranks of the same machine with the same set of cores.
    pub id: [u8; 16],
    /// How many, 0 if the system does not say.
    pub count: u32,
}

impl Cores {
    /// Those of this thread.
    pub(crate) fn of_this_thread() -> Self {
        let set = sched_getaffinity(None).unwrap_or_default();
        let among = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core));
        let mut hash = Sha256::new()
            .chain_update(b"unisono cores\0")
            .chain_update(identity::machine());
        for core in among {
            hash.update((core as u64).to_le_bytes());
        }
        Self {
            id: identity::truncate(hash),
            count: set.count(),
        }
    }
}

impl Directory {
    /// Whether more ranks than cores are where this rank is, so that one that waits without a pause keeps others from
    /// theirs; not for a rank that is none. `share` is how many cores' time the system gives this rank's node, which may
    /// be less than all. Any thread.
    pub fn is_crowded(&self, rank: u32, share: usize) -> bool {
        let Some(own) = self.get(rank) else {
            return false;
        };
        let cores = own.cores.count as usize;
        let by_share = share != cores && self.node_ranks(own.node).len() > share;
        by_share || (cores != 0 && self.sharing_cores(rank).count() > cores)
    }

    /// The ranks that may run on the same cores as this one, itself too, ascending; none for a rank that is none.
    pub fn sharing_cores(&self, rank: u32) -> impl Iterator<Item = u32> {
        let own = self.get(rank).map(|entry| entry.cores.id);
        (self.entries().iter())
            .filter(move |entry| Some(entry.cores.id) == own)
            .map(|entry| entry.rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::NodeId;
    use crate::rendezvous::message::tests::entry;

    /// Ranks on these nodes that may run on these cores: which, and how many.
    fn directory(ranks: &[(u8, u8, u32)]) -> Directory {
        let entries = (0..).zip(ranks).map(|(rank, (node, id, count))| {
            let mut entry = entry(rank);
            entry.node = NodeId([*node; 16]);
            (entry.cores.id, entry.cores.count) = ([*id; 16], *count);
            entry
        });
        Directory::new(entries.collect())
    }

    #[test]
    fn containers_of_one_machine_share_its_cores() {
        let pods = directory(&[(1, 0, 2), (2, 0, 2), (3, 0, 2)]);
        assert!(pods.is_crowded(0, 2));
        assert_eq!(pods.sharing_cores(1).collect::<Vec<_>>(), [0, 1, 2]);
        let machines = directory(&[(1, 0, 2), (2, 1, 2), (3, 2, 2)]);
        assert!(!machines.is_crowded(0, 2));
    }

    #[test]
    fn ranks_that_are_bound_to_cores_of_their_own_share_none() {
        let bound = directory(&[(1, 0, 1), (1, 1, 1), (1, 2, 1)]);
        assert!(!bound.is_crowded(1, 1));
        let two_on_one = directory(&[(1, 0, 1), (1, 1, 1), (1, 1, 1)]);
        assert!(!two_on_one.is_crowded(0, 1));
        assert!(two_on_one.is_crowded(1, 1));
        assert_eq!(two_on_one.sharing_cores(1).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(two_on_one.sharing_cores(3).count(), 0);
    }

    #[test]
    fn a_node_that_gets_less_than_its_cores_is_crowded_sooner() {
        let limited = directory(&[(1, 0, 64), (1, 0, 64), (1, 0, 64), (2, 0, 64)]);
        assert!(limited.is_crowded(0, 2));
        assert!(!limited.is_crowded(3, 2));
        let unknown = directory(&[(1, 0, 0), (1, 0, 0), (1, 0, 0)]);
        assert!(unknown.is_crowded(0, 2));
        assert!(!unknown.is_crowded(0, 3));
    }

    #[test]
    fn threads_with_the_same_cores_are_told_from_others() {
        let before = Cores::of_this_thread();
        assert_eq!(before, Cores::of_this_thread());
        let other = std::thread::spawn(|| {
            let mut all = sched_getaffinity(None).unwrap();
            let first = (0..CpuSet::MAX_CPU).find(|core| all.is_set(*core)).unwrap();
            all.clear();
            all.set(first);
            rustix::thread::sched_setaffinity(None, &all).unwrap();
            Cores::of_this_thread()
        });
        let other = other.join().unwrap();
        assert_eq!(other.count, 1);
        assert_eq!(other.id == before.id, before.count == 1);
    }
}
