//! Routes between two vertices: fewest relays, then fewest links, then widest, then quickest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Link, LinkGraph, LinkId, VertexId};

/// A way through the graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its links in order, never none.
    pub links: Vec<LinkId>,
    /// The bandwidth of its narrowest link, in bytes a second.
    pub bytes_per_second: u64,
    /// The sum of its latencies in nanoseconds.
    pub latency_ns: u64,
    /// How many devices stand in between and must pass the bytes on. A switch is none.
    pub relays: u32,
}

impl LinkGraph {
    /// The route from one rank to another that passes the fewest devices, then the fewest links;
    /// among those, the widest; among those, the quickest. Integers decide, so every host agrees.
    ///
    /// None if a rank is unknown, if they are the same, or if there is no way.
    pub fn route(&self, from: u32, to: u32) -> Option<Route> {
        search(self, self.rank(from)?, self.rank(to)?, |_| true)
    }

    /// As [`route`](Self::route), between any two vertices.
    ///
    /// # Panics
    /// As for [`vertex`](Self::vertex).
    pub fn route_between(&self, from: VertexId, to: VertexId) -> Option<Route> {
        search(self, from, to, |_| true)
    }
}

/// Relays, then links, on the way to a vertex.
type Distance = (u32, u32);
const FAR: Distance = (u32::MAX, u32::MAX);

pub(super) fn search(
    graph: &LinkGraph,
    from: VertexId,
    to: VertexId,
    allowed: impl Fn(&Link) -> bool,
) -> Option<Route> {
    if from == to {
        return None;
    }
    let step = |(relays, links): Distance, at: VertexId| {
        let relay = at != from && graph.vertex(at).device().is_some();
        (relays + u32::from(relay), links + 1)
    };

    // Shortest distances; `order` is the vertices nearer than the end, nearest first.
    let mut distance = vec![FAR; graph.vertices().len()];
    let mut order = Vec::new();
    let mut heap = BinaryHeap::from([Reverse(((0, 0), from))]);
    distance[from.index()] = (0, 0);
    while let Some(Reverse((here, at))) = heap.pop() {
        if here > distance[at.index()] {
            continue;
        }
        if at == to {
            break;
        }
        order.push(at);
        for (_, link) in graph.links_from(at).filter(|(_, link)| allowed(link)) {
            let there = step(here, at);
            if there < distance[link.to.index()] {
                distance[link.to.index()] = there;
                heap.push(Reverse((there, link.to)));
            }
        }
    }
    if distance[to.index()] == FAR {
        return None;
    }
    let shortest =
        |at: VertexId, link: &Link| step(distance[at.index()], at) == distance[link.to.index()];

    // The widest of the shortest ways.
    let mut width = vec![0u64; distance.len()];
    width[from.index()] = u64::MAX;
    for &at in &order {
        for (_, link) in graph
            .links_from(at)
            .filter(|(_, link)| allowed(link) && shortest(at, link))
        {
            let through = width[at.index()].min(link.bytes_per_second);
            width[link.to.index()] = width[link.to.index()].max(through);
        }
    }
    let wide = width[to.index()];

    // The quickest of the widest; of equals the one with the lowest numbers.
    let mut latency: Vec<Option<(u64, LinkId, VertexId)>> = vec![None; distance.len()];
    for &at in &order {
        let Some(so_far) = (if at == from {
            Some(0)
        } else {
            latency[at.index()].map(|(ns, _, _)| ns)
        }) else {
            continue;
        };
        let links = graph
            .links_from(at)
            .filter(|(_, link)| allowed(link) && shortest(at, link));
        for (id, link) in links.filter(|(_, link)| link.bytes_per_second >= wide) {
            let candidate = (so_far.saturating_add(link.latency_ns), id, at);
            let best = &mut latency[link.to.index()];
            if best.is_none_or(|best| candidate < best) {
                *best = Some(candidate);
            }
        }
    }

    let mut links = Vec::new();
    let mut at = to;
    while at != from {
        let (_, link, before) = latency[at.index()]?;
        links.push(link);
        at = before;
    }
    links.reverse();
    Some(Route {
        links,
        bytes_per_second: wide,
        latency_ns: latency[to.index()]?.0,
        relays: distance[to.index()].0,
    })
}
