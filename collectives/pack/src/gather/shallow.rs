//! One shallow tree for each root, without a search.
//!
//! Trees that fit exactly may be deep, and finding them takes time that grows fast with the
//! network. On regular networks simple trees fill the links as well:
//!
//! - over islands: the root sends to one rank of each other island, on its own rail, and each of those
//!   to its island; on several levels, from the top down;
//! - along shortest ways, where ranks are joined directly: each rank takes from one of its neighbours
//!   that are closer to the root, over the link that has least to do.

use std::collections::BTreeMap;

use unisono_network::{EdgeId, Network, VertexId};

use crate::paths::{Relays, beside};
use crate::tree::Tree;
use unisono_network::levels::{Levels, levels};

/// Passes over all trees of shortest ways, to even out loads.
const PASSES: usize = 3;

/// Trees of weight 1 for each rank over islands; none if that would lead through other ranks.
pub(super) fn over_islands(network: &Network) -> Option<Vec<Tree>> {
    let levels = levels(network);
    let place = Places::new(&levels);
    let ranks = network.ranks();
    let mut parents = vec![vec![0; ranks as usize]; ranks as usize];
    for root in 0..ranks {
        let parents = &mut parents[root as usize];
        parents[root as usize] = root;
        place.spread(levels.levels().len() - 1, root, parents);
    }
    laid(network, (0..).zip(parents).collect())
}

/// Trees of weight 1 from roots and parents, on paths by switches alone that are as little used as can
/// be, the same for all trees that take a step; none if some step has no such path.
pub(super) fn laid(network: &Network, parents: Vec<(u32, Vec<u32>)>) -> Option<Vec<Tree>> {
    // How many trees take each step.
    let mut steps: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for (_, parents) in &parents {
        for (rank, &parent) in (0..).zip(parents).filter(|(rank, parent)| rank != *parent) {
            *steps.entry((parent, rank)).or_default() += 1;
        }
    }
    let all: Vec<(u32, u32, u64)> = steps
        .iter()
        .map(|(&(from, to), &times)| (from, to, times))
        .collect();
    let paths = beside(network, &all, Relays::Never).ok()?;
    let paths: BTreeMap<(u32, u32), Vec<EdgeId>> = steps.into_keys().zip(paths).collect();
    let tree = |(root, parents): (u32, Vec<u32>)| Tree {
        root,
        weight: 1,
        paths: (0..)
            .zip(&parents)
            .map(|(rank, &parent)| paths.get(&(parent, rank)).cloned().unwrap_or_default())
            .collect(),
        parents,
    };
    Some(parents.into_iter().map(tree).collect())
}

/// Where each rank stands on each level.
struct Places {
    /// For each level and rank, the number of its group.
    group: Vec<Vec<usize>>,
    /// For each level and rank, the place in its group of the rank (on the lowest level) or of the
    /// group below that it is in.
    place: Vec<Vec<usize>>,
    /// For each level and group, the groups below, by number; ranks on the lowest level.
    members: Vec<Vec<Vec<usize>>>,
}

impl Places {
    fn new(levels: &Levels) -> Self {
        let ranks = levels.order().len();
        let mut places = Self {
            group: Vec::new(),
            place: Vec::new(),
            members: Vec::new(),
        };
        for level in levels.levels() {
            let mut group = vec![0; ranks];
            let mut place = vec![0; ranks];
            let mut members = vec![Vec::new(); level.groups.len()];
            for (number, ranks) in level.groups.iter().enumerate() {
                let members = &mut members[number];
                for &rank in ranks {
                    let below = match places.group.last() {
                        Some(below) => below[rank as usize],
                        None => rank as usize,
                    };
                    if members.last() != Some(&below) {
                        members.push(below);
                    }
                    group[rank as usize] = number;
                    place[rank as usize] = members.len() - 1;
                }
            }
            places.group.push(group);
            places.place.push(place);
            places.members.push(members);
        }
        places
    }

    /// From a rank to all of its group of a level.
    fn spread(&self, level: usize, from: u32, parents: &mut [u32]) {
        let group = self.group[level][from as usize];
        for &member in &self.members[level][group] {
            let entry = match level.checked_sub(1) {
                None => member as u32,
                Some(below) if member == self.group[below][from as usize] => from,
                Some(below) => self.twin(below, member, from),
            };
            if entry != from {
                parents[entry as usize] = from;
            }
            if let Some(below) = level.checked_sub(1) {
                self.spread(below, entry, parents);
            }
        }
    }

    /// The rank of a group that stands where the given one stands in its own.
    fn twin(&self, level: usize, group: usize, rank: u32) -> u32 {
        let members = &self.members[level][group];
        let member = members[self.place[level][rank as usize] % members.len()];
        match level.checked_sub(1) {
            None => member as u32,
            Some(below) => self.twin(below, member, rank),
        }
    }
}

/// Whether [`along_shortest`] takes little time.
pub(super) fn is_quick(network: &Network, each: usize) -> bool {
    /// Looks at an edge, about a second.
    const MOST: usize = 100_000_000;
    network.ranks() as usize * network.edges().len() * each * PASSES <= MOST
}

/// Trees of weight 1, so many for each rank, along shortest ways; none if there are switches, or
/// some rank cannot be reached.
pub(super) fn along_shortest(network: &Network, each: usize) -> Option<Vec<Tree>> {
    let ranks = network.ranks();
    if network.vertices().len() > ranks as usize {
        return None;
    }
    let mut loads = vec![0u64; network.edges().len()];
    let mut arrivals: Vec<Vec<EdgeId>> = Vec::with_capacity(ranks as usize * each);
    let mut search = Shortest::new(network);
    for pass in 0..PASSES {
        for copy in 0..each {
            for root in 0..ranks {
                let place = copy * ranks as usize + root as usize;
                if pass == 0 {
                    arrivals.push(Vec::new());
                }
                for &edge in arrivals[place].iter().filter(|edge| **edge != EdgeId::MAX) {
                    loads[edge as usize] -= 1;
                }
                arrivals[place] = search.tree(root, &mut loads)?;
            }
        }
    }
    let roots = (0..each).flat_map(|_| 0..ranks);
    let tree = |(root, arrivals): (u32, Vec<EdgeId>)| Tree {
        root,
        weight: 1,
        parents: (0..)
            .zip(&arrivals)
            .map(|(rank, &edge)| {
                if rank == root {
                    root
                } else {
                    network.edge(edge).from
                }
            })
            .collect(),
        paths: (0..)
            .zip(&arrivals)
            .map(|(rank, &edge)| if rank == root { vec![] } else { vec![edge] })
            .collect(),
    };
    Some(roots.zip(arrivals).map(tree).collect())
}

struct Shortest<'a> {
    network: &'a Network,
    hops: Vec<u32>,
    queue: Vec<VertexId>,
}

impl<'a> Shortest<'a> {
    fn new(network: &'a Network) -> Self {
        Self {
            network,
            hops: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// For each rank the edge by which it is reached; adds to loads.
    fn tree(&mut self, root: VertexId, loads: &mut [u64]) -> Option<Vec<EdgeId>> {
        let ranks = self.network.ranks() as usize;
        self.hops.clear();
        self.hops.resize(ranks, u32::MAX);
        self.hops[root as usize] = 0;
        self.queue.clear();
        self.queue.push(root);
        let mut arrivals = vec![EdgeId::MAX; ranks];
        let mut head = 0;
        while let Some(&at) = self.queue.get(head) {
            head += 1;
            for &edge in self.network.out_edges(at) {
                let to = self.network.edge(edge).to;
                if self.hops[to as usize] == u32::MAX {
                    self.hops[to as usize] = self.hops[at as usize] + 1;
                    self.queue.push(to);
                }
            }
        }
        if self.queue.len() < ranks {
            return None;
        }
        for &to in &self.queue[1..] {
            let closer = |edge: &&EdgeId| {
                let from = self.network.edge(**edge).from;
                self.hops[from as usize] < self.hops[to as usize]
            };
            let entries = self.network.in_edges(to).iter().filter(closer);
            let &best = entries.min_by(|one, other| {
                let busy = |edge: EdgeId| {
                    (loads[edge as usize] + 1) as f64
                        / self.network.edge(edge).bytes_per_second as f64
                };
                busy(**one).total_cmp(&busy(**other))
            })?;
            arrivals[to as usize] = best;
            loads[best as usize] += 1;
        }
        Some(arrivals)
    }
}
