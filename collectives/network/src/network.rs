//! The network itself and what can be asked of it without a search.

/// A vertex, by its place in [`Network::vertices`].
pub type VertexId = u32;

/// An edge, by its place in [`Network::edges`].
pub type EdgeId = u32;

/// What a vertex is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vertex {
    /// The device of a rank: it holds buffers, reduces, and forwards what its rank's plan says.
    Compute {
        /// The rank.
        rank: u32,
    },
    /// Something that only forwards.
    Switch {
        /// Whether it can also reduce and multiply what passes through it.
        reduces: bool,
    },
}

/// A directed edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// Where bytes enter.
    pub from: VertexId,
    /// Where bytes leave.
    pub to: VertexId,
    /// Capacity in bytes a second, never 0, at most [`Network::MAX_CAPACITY`].
    pub bytes_per_second: u64,
    /// Latency in nanoseconds, 0 if it is not modelled.
    pub latency_ns: u64,
    /// The capacity that it shares with others, if it does: a place in [`Network::groups`].
    pub group: Option<u32>,
}

/// Edges that share one capacity, such as all that leave by one network card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What all its edges together can carry, in bytes a second.
    pub bytes_per_second: u64,
    /// Its edges, in order; never empty.
    pub edges: Vec<EdgeId>,
}

/// A network: immutable, checked. Made from a graph by [`Network::from_graph`], or by a
/// [`Builder`](crate::Builder).
///
/// The vertices of ranks come first, in the order of ranks: **rank `r` is vertex `r`**, and all
/// that follow are switches. Code that wants to be read says [`vertex_of`](Self::vertex_of) and
/// [`rank_of`](Self::rank_of); code in a hurry may count on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    pub(crate) ranks: u32,
    pub(crate) vertices: Vec<Vertex>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) groups: Vec<Group>,
    /// For each edge, the link of the graph that it came from; empty if it came from none.
    pub(crate) links: Vec<u32>,
    outgoing: Adjacency,
    incoming: Adjacency,
}

impl Network {
    /// The widest edge that is taken: 1 PB/s. Products with numbers of ranks then fit 64 bits.
    pub const MAX_CAPACITY: u64 = 1_000_000_000_000_000;

    /// Puts checked parts together.
    pub(crate) fn assemble(
        ranks: u32,
        vertices: Vec<Vertex>,
        edges: Vec<Edge>,
        groups: Vec<Group>,
        links: Vec<u32>,
    ) -> Self {
        let outgoing = Adjacency::new(vertices.len(), edges.iter().map(|edge| edge.from));
        let incoming = Adjacency::new(vertices.len(), edges.iter().map(|edge| edge.to));
        Self {
            ranks,
            vertices,
            edges,
            groups,
            links,
            outgoing,
            incoming,
        }
    }

    /// How many ranks there are; they are numbered from 0. Never 0.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The vertices: ranks first, in order, then switches.
    pub fn vertices(&self) -> &[Vertex] {
        &self.vertices
    }

    /// The edges.
    #[inline]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// One edge.
    ///
    /// # Panics
    /// If there is no such edge.
    #[inline]
    pub fn edge(&self, id: EdgeId) -> &Edge {
        &self.edges[id as usize]
    }

    /// The capacities that edges share.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The vertex of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn vertex_of(&self, rank: u32) -> VertexId {
        assert!(rank < self.ranks, "no rank {rank} of {}", self.ranks);
        rank
    }

    /// The rank at a vertex; none if it is a switch.
    #[inline]
    pub fn rank_of(&self, vertex: VertexId) -> Option<u32> {
        (vertex < self.ranks).then_some(vertex)
    }

    /// Whether a vertex is a switch that reduces (and multiplies) what passes.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn reduces(&self, vertex: VertexId) -> bool {
        matches!(
            self.vertices[vertex as usize],
            Vertex::Switch { reduces: true }
        )
    }

    /// The edges that begin at a vertex, in order.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[inline]
    pub fn out_edges(&self, vertex: VertexId) -> &[EdgeId] {
        self.outgoing.at(vertex)
    }

    /// The edges that end at a vertex, in order.
    ///
    /// # Panics
    /// If there is no such vertex.
    #[inline]
    pub fn in_edges(&self, vertex: VertexId) -> &[EdgeId] {
        self.incoming.at(vertex)
    }

    /// The link that an edge came from, as a place in
    /// [`LinkGraph::links`](unisono_graph::LinkGraph::links); none in a network from a
    /// [`Builder`](crate::Builder).
    pub fn link_of(&self, edge: EdgeId) -> Option<usize> {
        self.links.get(edge as usize).map(|&link| link as usize)
    }
}

/// Edges by one of their ends, all in one array.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Adjacency {
    /// For each vertex, where its edges begin in `edges`; one more at the end.
    starts: Vec<u32>,
    edges: Vec<EdgeId>,
}

impl Adjacency {
    fn new(vertices: usize, ends: impl ExactSizeIterator<Item = VertexId> + Clone) -> Self {
        let mut starts = vec![0u32; vertices + 1];
        for end in ends.clone() {
            starts[end as usize + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        let mut next = starts.clone();
        let mut edges = vec![0; ends.len()];
        for (id, end) in (0u32..).zip(ends) {
            let place = &mut next[end as usize];
            edges[*place as usize] = id;
            *place += 1;
        }
        Self { starts, edges }
    }

    fn at(&self, vertex: VertexId) -> &[EdgeId] {
        let vertex = vertex as usize;
        &self.edges[self.starts[vertex] as usize..self.starts[vertex + 1] as usize]
    }
}
