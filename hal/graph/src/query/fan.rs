//! The ways from one rank to many, found at once: what [`LinkGraph::ways`] gives for each.
//!
//! A communicator asks for the ways between any two of its ranks when it forms. One search for every
//! two of a thousand ranks on one switch would look at a billion links.

use std::collections::{BTreeMap, BTreeSet};

use super::way::{Way, sort};
use crate::{Link, LinkGraph, LinkId, VertexId};

impl LinkGraph {
    /// The ways from one rank to each of others, as [`ways`](Self::ways) gives them. Takes about as
    /// long as one look at each link for each of the rank's kinds of links.
    pub fn ways_to_each(&self, from: u32, to: &[u32]) -> Vec<Vec<Way>> {
        let mut all: Vec<Vec<Way>> = vec![Vec::new(); to.len()];
        let Some(start) = self.rank(from) else {
            return all;
        };
        // Where each vertex stands among those that are asked for.
        let mut wanted: BTreeMap<VertexId, Vec<usize>> = BTreeMap::new();
        for (place, &rank) in to.iter().enumerate() {
            if let Some(end) = self.rank(rank) {
                wanted.entry(end).or_default().push(place);
            }
        }
        let of = |link: &Link| {
            (
                link.plugin.clone(),
                link.kind.clone(),
                link.link_type,
                link.rail,
            )
        };
        let classes: BTreeSet<_> = self.links_from(start).map(|(_, link)| of(link)).collect();
        for (plugin, kind, link_type, rail) in classes {
            let fan = Fan::new(self, start, |link| {
                (link.link_type, link.rail) == (link_type, rail)
                    && link.plugin == plugin
                    && link.kind == kind
            });
            for (end, bytes_per_second, latency_ns, hops) in fan.ends(&wanted) {
                let written = fan.straight.get(&end).map(|straight| straight.written);
                for &place in &wanted[&end] {
                    all[place].push(Way {
                        plugin: plugin.to_string(),
                        kind: kind.to_string(),
                        link_type,
                        rail,
                        bytes_per_second,
                        written_bytes_per_second: written
                            .filter(|written| *written < bytes_per_second),
                        latency_ns,
                        hops,
                    });
                }
            }
        }
        for ways in &mut all {
            sort(ways);
        }
        all
    }
}

/// The shortest ways from a vertex by links of one class, with no device in between.
struct Fan<'g> {
    graph: &'g LinkGraph,
    start: VertexId,
    /// The links that shortest ways may take, each vertex's after those that lead to it.
    links: Vec<LinkId>,
    /// For each vertex the links on a shortest way, `u32::MAX` if there is none.
    hops: Vec<u32>,
    /// For each vertex the bandwidth of the widest of them.
    width: Vec<u64>,
    /// For each vertex what goes there straight.
    straight: BTreeMap<VertexId, Straight>,
}

/// Parallel links to a vertex: bandwidth in all, where senders write too, and the least latency.
struct Straight {
    bytes_per_second: u64,
    written: u64,
    latency_ns: u64,
}

impl<'g> Fan<'g> {
    fn new(graph: &'g LinkGraph, start: VertexId, of_class: impl Fn(&Link) -> bool) -> Self {
        let count = graph.vertices().len();
        let mut fan = Self {
            graph,
            start,
            links: Vec::new(),
            hops: vec![u32::MAX; count],
            width: vec![0; count],
            straight: BTreeMap::new(),
        };
        fan.hops[start.index()] = 0;
        fan.width[start.index()] = u64::MAX;
        let mut queue = vec![start];
        let mut head = 0;
        while let Some(&at) = queue.get(head) {
            head += 1;
            let here = fan.hops[at.index()];
            for (id, link) in graph.links_from(at).filter(|(_, link)| of_class(link)) {
                let there = &mut fan.hops[link.to.index()];
                if *there == u32::MAX {
                    *there = here + 1;
                    if graph.vertex(link.to).device().is_none() {
                        queue.push(link.to);
                    }
                }
                if *there == here + 1 {
                    fan.links.push(id);
                    let through = fan.width[at.index()].min(link.bytes_per_second);
                    let width = &mut fan.width[link.to.index()];
                    *width = through.max(*width);
                }
                if at == start {
                    let straight = fan.straight.entry(link.to).or_insert(Straight {
                        bytes_per_second: 0,
                        written: 0,
                        latency_ns: u64::MAX,
                    });
                    let rate = &mut straight.bytes_per_second;
                    *rate = rate.saturating_add(link.bytes_per_second);
                    straight.written = straight.written.saturating_add(link.written());
                    straight.latency_ns = straight.latency_ns.min(link.latency_ns);
                }
            }
        }
        fan
    }

    /// Those of some vertices that it reaches: bandwidth, latency in nanoseconds, and links.
    fn ends(&self, wanted: &BTreeMap<VertexId, Vec<usize>>) -> Vec<(VertexId, u64, u64, u32)> {
        let mut ends = Vec::new();
        let mut by_width: BTreeMap<u64, Vec<VertexId>> = BTreeMap::new();
        for &end in wanted.keys().filter(|end| **end != self.start) {
            match (self.straight.get(&end), self.hops[end.index()]) {
                (Some(straight), _) => {
                    ends.push((end, straight.bytes_per_second, straight.latency_ns, 1));
                }
                (None, u32::MAX) => {}
                (None, _) => by_width
                    .entry(self.width[end.index()])
                    .or_default()
                    .push(end),
            }
        }
        // The quickest of the widest: ways as wide as the end's widest are looked at alone.
        for (wide, of_width) in by_width {
            let latency = self.latencies(wide);
            ends.extend(of_width.into_iter().filter_map(|end| {
                let latency_ns = latency[end.index()]?;
                Some((end, wide, latency_ns, self.hops[end.index()]))
            }));
        }
        ends
    }

    /// For each vertex the least latency of the shortest ways that are at least so wide.
    fn latencies(&self, wide: u64) -> Vec<Option<u64>> {
        let mut latency: Vec<Option<u64>> = vec![None; self.hops.len()];
        latency[self.start.index()] = Some(0);
        for &id in &self.links {
            let link = self.graph.link(id);
            let Some(so_far) = latency[link.from.index()] else {
                continue;
            };
            if link.bytes_per_second >= wide {
                let here = so_far.saturating_add(link.latency_ns);
                let best = &mut latency[link.to.index()];
                *best = Some(best.map_or(here, |best| best.min(here)));
            }
        }
        latency
    }
}
