//! Islands: ranks joined by one plugin's own mapped links.

use std::collections::BTreeMap;

use crate::{LinkGraph, LinkType, VertexId, VertexKind, Way};

/// Ranks joined by one plugin's own mapped links, straight or through its switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Island {
    /// The plugin of its devices and links.
    pub plugin: String,
    /// Its ranks in order, never none. A rank that no such link reaches is alone.
    pub ranks: Vec<u32>,
}

/// How alike the ways between some ranks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// Each is joined to each other, all alike.
    Uniform,
    /// Not all alike, but each pair is joined in both directions alike, or in neither.
    Mirrored,
    /// Some pair is joined otherwise in one direction than in the other.
    Uneven,
}

/// The islands of a graph, by their lowest rank; each rank is in exactly one.
pub fn islands(graph: &LinkGraph) -> Vec<Island> {
    let mut sets = Sets((0..graph.vertices().len()).collect());
    for link in graph
        .links()
        .iter()
        .filter(|link| link.link_type == LinkType::Mapped)
    {
        if end_of(graph, link.from, &link.plugin) && end_of(graph, link.to, &link.plugin) {
            sets.join(link.from.index(), link.to.index());
        }
    }
    // A switch that serves several plugins must not join their devices, so the plugin is in the key.
    let mut islands: BTreeMap<(usize, &str), Island> = BTreeMap::new();
    for rank in graph.ranks() {
        let Some(vertex) = graph.rank(rank) else {
            continue;
        };
        let Some(device) = graph.vertex(vertex).device() else {
            continue;
        };
        let plugin = device.plugin.as_str();
        let island = islands.entry((sets.root(vertex.index()), plugin));
        island
            .or_insert_with(|| Island {
                plugin: plugin.to_owned(),
                ranks: Vec::new(),
            })
            .ranks
            .push(rank);
    }
    let mut islands: Vec<Island> = islands.into_values().collect();
    islands.sort_by_key(|island| island.ranks.first().copied());
    islands
}

impl Island {
    /// How alike the ways between its ranks are. An island of one is uniform.
    pub fn symmetry(&self, graph: &LinkGraph) -> Symmetry {
        graph.symmetry(&self.ranks)
    }
}

impl LinkGraph {
    /// How alike the best ways between some ranks are.
    pub fn symmetry(&self, ranks: &[u32]) -> Symmetry {
        let best = |from, to| self.ways(from, to).into_iter().next();
        let mut first: Option<Option<Way>> = None;
        let mut uniform = true;
        for (place, &a) in ranks.iter().enumerate() {
            for &b in &ranks[place + 1..] {
                let (there, back) = (best(a, b), best(b, a));
                if there != back {
                    return Symmetry::Uneven;
                }
                uniform &= there.is_some() && *first.get_or_insert_with(|| there.clone()) == there;
            }
        }
        if uniform {
            Symmetry::Uniform
        } else {
            Symmetry::Mirrored
        }
    }
}

fn end_of(graph: &LinkGraph, vertex: VertexId, plugin: &str) -> bool {
    match &graph.vertex(vertex).kind {
        VertexKind::Device(device) => device.plugin == plugin,
        VertexKind::Switch(_) => true,
        VertexKind::Nic(_) | VertexKind::Numa(_) => false,
    }
}

/// Disjoint sets of places.
struct Sets(Vec<usize>);

impl Sets {
    fn root(&mut self, mut place: usize) -> usize {
        while self.0[place] != place {
            self.0[place] = self.0[self.0[place]];
            place = self.0[place];
        }
        place
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a.max(b)] = a.min(b);
    }
}
