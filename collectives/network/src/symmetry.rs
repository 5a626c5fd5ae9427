//! Which vertices and edges are alike, so that what holds for one holds for all of its class.
//!
//! Two vertices are alike if some *automorphism* takes one to the other: a renumbering of all
//! vertices after which every arc and every capacity is where it was. A bound is then found for one
//! of each class, and a linear program over edges becomes one over classes of edges.
//!
//! That vertices look alike is not enough: in a regular graph with one bridge they all do. So colour
//! refinement only proposes. Two copies of the graph are refined side by side, one vertex singled
//! out in each, until each vertex has one partner left; then the renumbering is checked on every
//! arc. Only checked ones count. The search is bounded, and what it misses makes classes smaller,
//! never wrong.

mod refine;
mod search;

use crate::{Network, VertexId};

/// Classes of vertices and of arcs that automorphisms take to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symmetry {
    vertices: Classes,
    arcs: Classes,
}

impl Symmetry {
    /// Of a graph: a colour for each vertex, and arcs by tail, head and label, no two between the
    /// same ends. Colours and labels must be equal where things are to be alike.
    ///
    /// # Panics
    /// If an arc ends at a vertex that has no colour.
    pub fn of_arcs(colours: &[u64], arcs: &[(VertexId, VertexId, u64)]) -> Self {
        search::find(colours, arcs)
    }

    /// Of a network, as far as capacities, latencies and kinds of vertices go; shared capacities
    /// make their edges different from all others. The classes of arcs are those of edges.
    ///
    /// `None` if there are parallel edges or shared capacities: put them together first.
    pub fn of(network: &Network) -> Option<Self> {
        let colours: Vec<u64> = (0..network.vertices().len() as u32)
            .map(|vertex| match network.rank_of(vertex) {
                Some(_) => 0,
                None => 1 + u64::from(network.reduces(vertex)),
            })
            .collect();
        let mut labels = std::collections::BTreeMap::new();
        let mut arcs = Vec::with_capacity(network.edges().len());
        let mut seen = std::collections::BTreeSet::new();
        for edge in network.edges() {
            if edge.group.is_some() || !seen.insert((edge.from, edge.to)) {
                return None;
            }
            let next = labels.len() as u64;
            let label = labels
                .entry((edge.bytes_per_second, edge.latency_ns))
                .or_insert(next);
            arcs.push((edge.from, edge.to, *label));
        }
        Some(Self::of_arcs(&colours, &arcs))
    }

    /// Classes of vertices.
    pub fn vertices(&self) -> &Classes {
        &self.vertices
    }

    /// Classes of arcs, in the order in which they were given.
    pub fn arcs(&self) -> &Classes {
        &self.arcs
    }
}

/// Things numbered from 0, put in classes numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    class: Vec<u32>,
    representatives: Vec<u32>,
    sizes: Vec<u32>,
}

impl Classes {
    /// The class of a thing.
    ///
    /// # Panics
    /// If there is no such thing.
    pub fn of(&self, thing: u32) -> u32 {
        self.class[thing as usize]
    }

    /// The first member of each class; classes are in the order of these.
    pub fn representatives(&self) -> &[u32] {
        &self.representatives
    }

    /// How many members each class has.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }
}

/// Things that turn out to be alike, pair by pair.
#[derive(Clone, Debug)]
struct Merging {
    above: Vec<u32>,
}

impl Merging {
    fn new(count: usize) -> Self {
        Self {
            above: (0..count as u32).collect(),
        }
    }

    fn top(&mut self, mut thing: u32) -> u32 {
        while self.above[thing as usize] != thing {
            let next = self.above[self.above[thing as usize] as usize];
            self.above[thing as usize] = next;
            thing = next;
        }
        thing
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.top(one), self.top(other));
        self.above[one.max(other) as usize] = one.min(other);
    }

    fn classes(mut self) -> Classes {
        let mut classes = Classes {
            class: vec![0; self.above.len()],
            representatives: Vec::new(),
            sizes: Vec::new(),
        };
        for thing in 0..self.above.len() as u32 {
            // The top of a class is its smallest member, so it has been here before the others.
            let top = self.top(thing);
            if top == thing {
                classes.class[thing as usize] = classes.sizes.len() as u32;
                classes.representatives.push(thing);
                classes.sizes.push(1);
            } else {
                let class = classes.class[top as usize];
                classes.class[thing as usize] = class;
                classes.sizes[class as usize] += 1;
            }
        }
        classes
    }
}

#[cfg(test)]
mod tests;
