//! How close ranks are.

use std::collections::BTreeMap;

use crate::{Edge, Network};

/// Links of which the narrower has at least this part of the wider are about as wide.
const ALIKE: f64 = 0.8;

/// Two ranks and the fewest hops between them by switches alone.
pub(super) struct Near {
    pub(super) hops: u32,
    pub(super) one: usize,
    pub(super) other: usize,
}

/// Of widths, the widest first, the narrowest of each run that is about alike.
pub(super) fn clearly_different(all: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut widths = Vec::new();
    let mut top = f64::INFINITY;
    for width in all {
        if (width as f64) < top * ALIKE {
            widths.push(width);
            top = width as f64;
        } else if let Some(last) = widths.last_mut() {
            *last = width;
        }
    }
    widths
}

/// How wide an edge is while all edges are used.
fn own_part(network: &Network, edge: &Edge) -> u64 {
    let share = edge.group.map_or(u64::MAX, |group| {
        let group = &network.groups()[group as usize];
        (group.bytes_per_second / group.edges.len() as u64).max(1)
    });
    edge.bytes_per_second.min(share)
}

/// The network with parallel edges made one, and what edges share divided among them.
pub(super) struct Closeness {
    ranks: usize,
    /// For each vertex, where its edges lead and how wide they are.
    out: Vec<Vec<(usize, u64)>>,
}

impl Closeness {
    pub(super) fn new(network: &Network) -> Self {
        let out = (0..network.vertices().len() as u32).map(|vertex| {
            let mut to: BTreeMap<usize, u64> = BTreeMap::new();
            for &edge in network.out_edges(vertex) {
                let edge = network.edge(edge);
                *to.entry(edge.to as usize).or_default() += own_part(network, edge);
            }
            to.into_iter().collect()
        });
        Self {
            ranks: network.ranks() as usize,
            out: out.collect(),
        }
    }

    /// Widths that differ clearly, the widest first: each the narrowest of links about alike.
    pub(super) fn widths(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.out.iter().flatten().map(|(_, width)| *width).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        all.dedup();
        clearly_different(all.into_iter())
    }

    /// Pairs of ranks that links of at least a width join, by switches alone: not all, but enough
    /// that joining the nearest first gives the same groups. Every switch belongs to its nearest
    /// rank, and only where two ranks' switches meet is there a pair (Mehlhorn, "A faster
    /// approximation algorithm for the Steiner problem in graphs", 1988).
    pub(super) fn near(&self, width: u64) -> Vec<Near> {
        let mut owner: Vec<usize> = vec![usize::MAX; self.out.len()];
        let mut hops = vec![0; self.out.len()];
        let mut queue: Vec<usize> = (0..self.ranks).collect();
        for (rank, owner) in owner[..self.ranks].iter_mut().enumerate() {
            *owner = rank;
        }
        let mut head = 0;
        while let Some(&at) = queue.get(head) {
            head += 1;
            for &(to, wide) in &self.out[at] {
                if wide >= width && owner[to] == usize::MAX {
                    owner[to] = owner[at];
                    hops[to] = hops[at] + 1;
                    queue.push(to);
                }
            }
        }
        let mut near = Vec::new();
        for (at, out) in self.out.iter().enumerate() {
            let wide = out.iter().filter(|(_, wide)| *wide >= width);
            for &(to, _) in wide {
                let (one, other) = (owner[at], owner[to]);
                if one != usize::MAX && other != usize::MAX && one != other {
                    let hops = hops[at] + 1 + hops[to];
                    near.push(Near { hops, one, other });
                }
            }
        }
        near
    }

    /// The fewest hops from a rank to all others by switches alone.
    fn search(&self, from: usize, hops: &mut [u32]) {
        hops.fill(u32::MAX);
        hops[from] = 0;
        let mut queue = vec![from];
        let mut head = 0;
        while let Some(&at) = queue.get(head) {
            head += 1;
            for &(to, _) in &self.out[at] {
                if hops[to] == u32::MAX {
                    hops[to] = hops[at] + 1;
                    if to >= self.ranks {
                        queue.push(to);
                    }
                }
            }
        }
    }

    /// Orders each group so that its ranks stand beside the closest of the largest group.
    pub(super) fn align(&self, groups: &mut [Vec<u32>]) {
        let largest = groups
            .iter()
            .min_by_key(|group| std::cmp::Reverse(group.len()))
            .cloned();
        let mut hops = vec![u32::MAX; self.out.len()];
        let mut left: Vec<Vec<u32>> = groups.iter_mut().map(std::mem::take).collect();
        for first in largest.unwrap_or_default() {
            self.search(first as usize, &mut hops);
            for (group, left) in groups.iter_mut().zip(&mut left) {
                let distance = |place: &usize| {
                    let rank = left[*place];
                    let hops = if rank == first {
                        0
                    } else {
                        hops[rank as usize]
                    };
                    (hops, rank)
                };
                if let Some(closest) = (0..left.len()).min_by_key(distance) {
                    group.push(left.remove(closest));
                }
            }
        }
    }
}
