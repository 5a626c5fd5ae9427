//! Islands: ranks that are closer to each other than to the rest, on as many levels as there are.
//!
//! Two ranks are as close as the widest way between them that no other rank is on, and among ways
//! about as wide, as close as the number of its hops. Joining the closest first gives groups, then
//! groups of groups, until all are one: devices of one box, then of one leaf switch, then all. A
//! hierarchical plan does most of its work inside groups, where links are wide.
//!
//! Ranks may be interleaved, and groups of one level may differ in size.

mod closeness;

use crate::Network;

use closeness::Closeness;

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
        let of_rank = |level: &Level| {
            let mut of_rank = vec![0; ranks];
            for (group, members) in (0..).zip(&level.groups) {
                for &rank in members {
                    of_rank[rank as usize] = group;
                }
            }
            of_rank
        };
        let Some(here) = self.levels.get(level) else {
            return Vec::new();
        };
        let of_rank = of_rank(here);
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
    // What nothing joins stays together at the top: there must be one group.
    partitions.push(vec![0; ranks]);
    partitions.dedup();
    let mut kept: Vec<Vec<usize>> = Vec::new();
    for partition in partitions {
        // Groups that were there next to single ranks are no level of their own.
        kept.pop_if(|below| same_but_for_singles(below, &partition));
        kept.push(partition);
    }
    lay_out(&closeness, &kept)
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

/// Groups as lists, in the order of rails and of ranks.
fn lay_out(closeness: &Closeness, partitions: &[Vec<usize>]) -> Levels {
    let ranks = partitions.first().map_or(0, Vec::len);
    let lists = |partition: &[usize], order: &[u32]| {
        let mut groups: Vec<Vec<u32>> = vec![Vec::new(); ranks];
        for &rank in order {
            groups[partition[rank as usize]].push(rank);
        }
        groups.retain(|group| !group.is_empty());
        groups
    };
    let by_rank: Vec<u32> = (0..ranks as u32).collect();
    let mut lowest = lists(&partitions[0], &by_rank);
    closeness.align(&mut lowest);
    // From the top down, groups stand by their lowest rank, which is their name; so all levels
    // agree on one order.
    let mut order = lowest.clone();
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
                groups: lists(partition, &order),
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
