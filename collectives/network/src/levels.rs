//! Islands: ranks that are closer to each other than to the rest, on as many levels as there are.
//!
//! Two ranks are as close as the widest way between them that no other rank is on, and among ways
//! about as wide, as close as the number of its hops. Joining the closest first gives groups, then
//! groups of groups, until all are one: devices of one box, then of one leaf switch, then all. A
//! hierarchical plan does most of its work inside groups, where links are wide.
//!
//! Ranks may be interleaved, and groups of one level may differ in size.

mod closeness;
mod shares;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::Network;

use closeness::Closeness;
pub use shares::{Shared, Way};

/// A network's groups of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    levels: Vec<Level>,
}

/// One partition of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The groups, by their lowest rank. In a group of the lowest level, ranks with the same place
    /// are each other's closest across groups, where there is a difference: they are on one *rail*.
    /// A group of a higher level is the groups below, one after the other.
    pub groups: Vec<Vec<u32>>,
}

impl Levels {
    /// The partitions, the finest first. The last one is a single group; it is the only one if
    /// nobody is closer to somebody than the rest.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// All ranks, groups one after the other on every level.
    pub fn order(&self) -> &[u32] {
        self.levels.last().map_or(&[], |level| &level.groups[0])
    }

    /// For each unit of a level the number of its group: the units of the lowest level are ranks,
    /// those of others the groups of the level below.
    pub fn group_of(&self, level: usize) -> Vec<u32> {
        let ranks = self.order().len();
        let Some(here) = self.levels.get(level) else {
            return Vec::new();
        };
        let of_rank = here.of_rank(ranks);
        match level.checked_sub(1) {
            None => of_rank,
            Some(below) => {
                let below = self.levels[below].groups.iter();
                below.map(|group| of_rank[group[0] as usize]).collect()
            }
        }
    }
}

/// Finds the groups.
pub fn levels(network: &Network) -> Levels {
    let ranks = network.ranks() as usize;
    let closeness = Closeness::new(network);
    let mut sets = Sets::new(ranks);
    let mut partitions: Vec<Vec<usize>> = Vec::new();
    for width in closeness.widths() {
        let mut near = closeness.near(width);
        near.sort_unstable_by_key(|near| near.hops);
        for same in near.chunk_by(|one, other| one.hops == other.hops) {
            let joined = same
                .iter()
                .filter(|near| sets.join(near.one, near.other))
                .count();
            if joined > 0 {
                partitions.push(sets.all());
            }
        }
    }
    let kept = kept(partitions, ranks);
    let mut lowest = groups(&kept[0], 0..ranks as u32);
    closeness.align(&mut lowest);
    lay_out(lowest, &kept)
}

/// Finds the groups of ranks of which every two are joined by a link of their own, as wide as `width`
/// says: the same as [`levels`] of such a network, without making one. Takes time with the square of
/// the ranks, and next to no memory.
pub fn levels_of_pairs(ranks: u32, width: impl Fn(u32, u32) -> u64) -> Levels {
    let count = ranks as usize;
    let mut all = BTreeSet::new();
    // The widest links that join all, each rank's to those that came before it: of links at least as
    // wide as some, the others join nothing that these don't.
    let mut joints: Vec<(u64, usize, usize)> = Vec::new();
    let mut best: Vec<(u64, usize)> = vec![(0, 0); count];
    let mut left: Vec<u32> = (1..ranks).collect();
    let mut newest = 0;
    while !left.is_empty() {
        for &rank in &left {
            let (out, back) = (width(newest, rank), width(rank, newest));
            all.extend([out, back]);
            if out.max(back) > best[rank as usize].0 {
                best[rank as usize] = (out.max(back), newest as usize);
            }
        }
        let widest = |at: &usize| (best[left[*at] as usize].0, Reverse(left[*at]));
        let Some(at) = (0..left.len()).max_by_key(widest) else {
            break;
        };
        newest = left.swap_remove(at);
        let (width, other) = best[newest as usize];
        joints.push((width, newest as usize, other));
    }
    let mut sets = Sets::new(count);
    let mut partitions = Vec::new();
    for width in closeness::clearly_different(all.into_iter().rev()) {
        let wide = joints.iter().filter(|(joint, ..)| *joint >= width);
        let joined = wide
            .filter(|&&(_, one, other)| sets.join(one, other))
            .count();
        if joined > 0 {
            partitions.push(sets.all());
        }
    }
    let kept = kept(partitions, count);
    lay_out(groups(&kept[0], 0..ranks), &kept)
}

/// Those of ever coarser partitions that are levels; the last one is a single group.
fn kept(mut partitions: Vec<Vec<usize>>, ranks: usize) -> Vec<Vec<usize>> {
    // What nothing joins stays together at the top: there must be one group.
    partitions.push(vec![0; ranks]);
    partitions.dedup();
    let mut kept: Vec<Vec<usize>> = Vec::new();
    for partition in partitions {
        // Groups that were there next to single ranks are no level of their own.
        kept.pop_if(|below| same_but_for_singles(below, &partition));
        kept.push(partition);
    }
    kept
}

/// Whether groups of the upper partition are groups of the lower one or were single ranks.
fn same_but_for_singles(lower: &[usize], upper: &[usize]) -> bool {
    let sizes = |partition: &[usize]| {
        let mut sizes = vec![0usize; partition.len()];
        for &group in partition {
            sizes[group] += 1;
        }
        sizes
    };
    let (low, high) = (sizes(lower), sizes(upper));
    let grew = |rank: usize| low[lower[rank]] < high[upper[rank]];
    let changes = (0..lower.len()).filter(|&rank| grew(rank));
    let mut singles = changes.map(|rank| low[lower[rank]] == 1);
    singles.all(|single| single)
}

/// The groups of a partition, their members in an order.
fn groups(partition: &[usize], order: impl Iterator<Item = u32>) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = vec![Vec::new(); partition.len()];
    for rank in order {
        groups[partition[rank as usize]].push(rank);
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// Partitions with the groups of the lowest in the order of rails and of ranks.
fn lay_out(lowest: Vec<Vec<u32>>, partitions: &[Vec<usize>]) -> Levels {
    // From the top down, groups stand by their lowest rank, which is their name; so all levels
    // agree on one order.
    let mut order = lowest;
    order.sort_by_cached_key(|group| {
        let levels = partitions.iter().rev();
        let lowest: Vec<usize> = levels
            .map(|partition| partition[group[0] as usize])
            .collect();
        lowest
    });
    let order = order.concat();
    Levels {
        levels: partitions
            .iter()
            .map(|partition| Level {
                groups: groups(partition, order.iter().copied()),
            })
            .collect(),
    }
}

/// Disjoint sets; each is called by its lowest member.
struct Sets {
    parent: Vec<usize>,
}

impl Sets {
    fn new(n: usize) -> Self {
        Self {
            parent: (0..n).collect(),
        }
    }

    fn find(&mut self, mut at: usize) -> usize {
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    /// Whether they were apart.
    fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.find(one), self.find(other));
        self.parent[one.max(other)] = one.min(other);
        one != other
    }

    /// Each member's set; paths become short.
    fn all(&mut self) -> Vec<usize> {
        self.parent = (0..self.parent.len()).map(|at| self.find(at)).collect();
        self.parent.clone()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Builder;

    /// Two boxes of four with links of 15 in each, and from each device one slot of 12 for all others.
    #[test]
    fn what_edges_share_is_as_wide_as_the_share() {
        let mut builder = Builder::new(8);
        for from in 0..8 {
            let mut slot = Vec::new();
            for to in (0..8).filter(|&to| to != from) {
                if from / 4 == to / 4 {
                    builder.edge(from, to, 15, 0);
                } else {
                    slot.push(builder.edge(from, to, 12, 0));
                }
            }
            builder.group(12, &slot);
        }
        let found = levels(&builder.build().unwrap());
        let groups: Vec<_> = found.levels().iter().map(|level| &level.groups).collect();
        assert_eq!(groups.len(), 2, "{groups:?}");
        assert_eq!(*groups[0], [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
    }

    proptest! {
        #[test]
        fn pairs_have_the_levels_of_their_network(
            ranks in 1u32..12,
            widths in prop::collection::vec(prop::sample::select(vec![1u64, 9, 10, 50, 100]), 144),
        ) {
            let width = |from: u32, to: u32| widths[(from * 12 + to) as usize];
            let mut builder = Builder::new(ranks);
            for from in 0..ranks {
                for to in (0..ranks).filter(|&to| to != from) {
                    builder.edge(from, to, width(from, to), 0);
                }
            }
            let network = builder.build().unwrap();
            prop_assert_eq!(levels_of_pairs(ranks, width), levels(&network));
        }
    }
}
