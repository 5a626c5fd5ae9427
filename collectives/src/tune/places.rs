//! Ranks that share cores, each time with others.
//!
//! Where there are more ranks than cores, a plan takes up to twice as long if the wrong ranks share a core, and the
//! system leaves ranks where they are for seconds. Rounds that find them in the same places would all tell the same
//! chance, and a program finds another. So each round has places of its own. Which they are all ranks know: from a seed,
//! an order of all but the first, which turns by one from round to round. So of four ranks on two cores each shares one
//! with each of the others equally often.

use std::thread;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Communicator;
use crate::error::{Error, Result};

/// The ranks that share this one's cores.
pub(super) struct Places {
    /// How many, where they are more than the cores.
    ranks: usize,
    own: usize,
    seed: u64,
}

impl Places {
    /// Those of a communicator's ranks; all name the same seed.
    pub(super) fn new(on: &Communicator, seed: u64) -> Self {
        let members = on.members();
        let ranks = on.sharing_cores();
        let own = members[on.rank() as usize];
        Self {
            own: ranks.iter().position(|rank| *rank == own).unwrap_or(0),
            ranks: ranks.len(),
            seed,
        }
    }

    /// Runs `body` on a thread of its own; where ranks share cores, on the core that is this rank's in that round.
    pub(super) fn run<T: Send>(
        &self,
        round: u32,
        body: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        thread::scope(|scope| {
            let placed = || {
                self.take(round);
                body()
            };
            let started = thread::Builder::new().spawn_scoped(scope, placed);
            let started = started.map_err(|e| Error::invalid("tune", format!("no thread: {e}")))?;
            started
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Binds this thread. A system that does not let it leaves it where it is.
    fn take(&self, round: u32) {
        let all = sched_getaffinity(None).unwrap_or_default();
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|c| all.is_set(*c)).collect();
        if self.ranks <= cores.len() || cores.is_empty() {
            return;
        }
        let place = order(self.ranks, self.seed, round)
            .iter()
            .position(|rank| *rank == self.own);
        let mut one = CpuSet::new();
        one.set(cores[place.unwrap_or(0) * cores.len() / self.ranks]);
        let _ = sched_setaffinity(None, &one);
    }
}

/// The ranks in the order of their places in a round.
fn order(ranks: usize, seed: u64, round: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ranks).collect();
    let others = order.get_mut(1..).unwrap_or_default();
    let mut state = seed;
    for at in (1..others.len()).rev() {
        // Knuth's generator; its upper bits are the good ones.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        others.swap(at, (state >> 33) as usize % (at + 1));
    }
    let turns = round as usize % others.len().max(1);
    others.rotate_left(turns);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_shares_its_core_with_each_of_the_others_equally_often() {
        for seed in 0..20 {
            // Two cores: the first half of the places is one of them.
            for ranks in [4, 6, 8] {
                let mut met = vec![0; ranks];
                for round in 0..ranks as u32 - 1 {
                    let order = order(ranks, seed, round);
                    assert_eq!(order[0], 0);
                    order[..ranks / 2].iter().for_each(|rank| met[*rank] += 1);
                }
                assert!(
                    met[1..].iter().all(|times| *times == ranks / 2 - 1),
                    "{met:?}"
                );
            }
        }
        assert!(order(0, 1, 1).is_empty());
        assert_eq!(order(1, 1, 1), [0]);
    }

    #[test]
    fn only_ranks_that_share_cores_are_bound_and_only_in_a_round() {
        let cores = || sched_getaffinity(None).unwrap().count();
        let all = cores();
        let in_round = |ranks| {
            let places = Places {
                ranks,
                own: 0,
                seed: 7,
            };
            places.run(0, || Ok(cores())).unwrap()
        };
        assert_eq!(in_round(all as usize), all);
        assert_eq!(in_round(all as usize + 1), 1);
        assert_eq!(cores(), all);
    }

    #[test]
    fn another_seed_is_another_order() {
        let orders: std::collections::BTreeSet<_> = (0..50).map(|s| order(8, s, 0)).collect();
        assert!(orders.len() > 25, "{}", orders.len());
    }
}
