//! Paths for many pairs at once, each beside the others.

use std::collections::HashMap;

use super::{Router, Tree};
use crate::{EdgeId, Network, VertexId};

/// How busy a path's busiest edge would be with the pair's bytes, then all its edges together; in
/// nanoseconds of work, so that a wide edge counts less.
type Load = (u128, u128);

impl Router<'_> {
    /// Paths for pairs of ranks with so many bytes each, as short as [`path`](Self::path) gives them,
    /// and among those where the pairs before left most room. `None` where nothing leads.
    ///
    /// The order of pairs matters; sorted by source it is fastest.
    pub fn spread(&mut self, pairs: &[(u32, u32, u64)]) -> Vec<Option<Vec<EdgeId>>> {
        let network = self.network;
        let mut load = vec![0u128; network.edges().len()];
        let mut known = HashMap::new();
        let mut paths = Vec::with_capacity(pairs.len());
        for &(from, to, bytes) in pairs {
            let path = self.tree_to(from, to).map(|tree| {
                known.clear();
                let with = |edge: EdgeId| load[edge as usize] + work(network, edge, bytes);
                least_loaded(network, tree, with, &mut known, to);
                let mut path = Vec::new();
                let mut at = to;
                while let Some(&(_, Some(by))) = known.get(&at) {
                    path.push(by);
                    at = network.edge(by).from;
                }
                path.reverse();
                path
            });
            for &edge in path.iter().flatten() {
                load[edge as usize] += work(network, edge, bytes);
            }
            paths.push(path);
        }
        paths
    }
}

/// The time that an edge takes for so many bytes, in nanoseconds and at least one.
fn work(network: &Network, edge: EdgeId, bytes: u64) -> u128 {
    let wide = u128::from(network.edge(edge).bytes_per_second);
    (u128::from(bytes) * 1_000_000_000 / wide).max(1)
}

/// Fills in, for all vertices on shortest paths to a vertex, the least load and the edge by which it
/// is reached. Level by level, so that depth costs no stack.
fn least_loaded(
    network: &Network,
    tree: &Tree,
    load: impl Fn(EdgeId) -> u128,
    known: &mut HashMap<VertexId, (Load, Option<EdgeId>)>,
    to: VertexId,
) {
    // The vertices on shortest paths, the farthest from the root first.
    let mut order = vec![to];
    known.insert(to, ((0, 0), None));
    let mut at = 0;
    while let Some(&vertex) = order.get(at) {
        at += 1;
        for (_, before) in steps(network, tree, vertex) {
            known.entry(before).or_insert_with(|| {
                order.push(before);
                ((0, 0), None)
            });
        }
    }
    for &vertex in order.iter().rev() {
        let best = steps(network, tree, vertex)
            .map(|(edge, before)| {
                let (worst, sum) = known[&before].0;
                let here = load(edge);
                ((worst.max(here), sum + here), before, edge)
            })
            .min();
        if let Some((least, _, edge)) = best {
            known.insert(vertex, (least, Some(edge)));
        }
    }
}

/// The edges by which shortest paths come to a vertex, and where each begins.
fn steps<'a>(
    network: &'a Network,
    tree: &'a Tree,
    vertex: VertexId,
) -> impl Iterator<Item = (EdgeId, VertexId)> + 'a {
    let level = tree.level[vertex as usize];
    let edges = network.in_edges(vertex).iter();
    edges.filter_map(move |&edge| {
        let before = network.edge(edge).from;
        tree.may_pass(network, before).then_some(())?;
        (level > 0 && tree.level[before as usize] == level - 1).then_some((edge, before))
    })
}
