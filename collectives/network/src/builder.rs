//! A network by hand, for tests and generated families.

use crate::{Edge, EdgeId, Group, Network, NetworkError, Vertex, VertexId};

/// A network in the making. Ranks are there from the start, as vertices 0, 1, 2 and so on.
///
/// ```
/// use unisono_network::Builder;
///
/// // Four ranks behind one switch, 50 GB/s each way.
/// let mut builder = Builder::new(4);
/// let switch = builder.switch(false);
/// for rank in 0..4 {
///     builder.duplex(rank, switch, 50_000_000_000, 0);
/// }
/// let network = builder.build()?;
/// assert_eq!((network.ranks(), network.edges().len()), (4, 8));
/// # Ok::<(), unisono_network::NetworkError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    ranks: u32,
    vertices: Vec<Vertex>,
    edges: Vec<Edge>,
    groups: Vec<u64>,
}

impl Builder {
    /// So many ranks, and nothing else yet.
    pub fn new(ranks: u32) -> Self {
        Self {
            ranks,
            vertices: (0..ranks).map(|rank| Vertex::Compute { rank }).collect(),
            edges: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Adds a switch; `reduces` says whether it reduces what passes.
    pub fn switch(&mut self, reduces: bool) -> VertexId {
        self.vertices.push(Vertex::Switch { reduces });
        number(self.vertices.len() - 1)
    }

    /// Adds a directed edge, with bytes a second and nanoseconds.
    pub fn edge(
        &mut self,
        from: VertexId,
        to: VertexId,
        bytes_per_second: u64,
        latency_ns: u64,
    ) -> EdgeId {
        self.edges.push(Edge {
            from,
            to,
            bytes_per_second,
            latency_ns,
            group: None,
        });
        number(self.edges.len() - 1)
    }

    /// Adds two edges, one each way, of the same capacity and latency.
    pub fn duplex(
        &mut self,
        one: VertexId,
        other: VertexId,
        bytes_per_second: u64,
        latency_ns: u64,
    ) -> [EdgeId; 2] {
        [(one, other), (other, one)]
            .map(|(from, to)| self.edge(from, to, bytes_per_second, latency_ns))
    }

    /// Adds a capacity in bytes a second that edges can share, and puts edges under it. An edge is
    /// under one group at most: the last one named. Edges that are not there are passed over.
    pub fn group(&mut self, bytes_per_second: u64, edges: &[EdgeId]) -> u32 {
        self.groups.push(bytes_per_second);
        let group = number(self.groups.len() - 1);
        for &edge in edges {
            if let Some(edge) = self.edges.get_mut(edge as usize) {
                edge.group = Some(group);
            }
        }
        group
    }

    /// Checks everything and makes the network.
    ///
    /// # Errors
    /// The first thing that is wrong: no ranks, an end that is missing, an edge from a vertex to
    /// itself, a capacity of zero.
    pub fn build(self) -> Result<Network, NetworkError> {
        build(self.ranks, self.vertices, self.edges, &self.groups, vec![])
    }
}

/// Checks parts and puts them together. Groups without edges are dropped.
pub(crate) fn build(
    ranks: u32,
    vertices: Vec<Vertex>,
    mut edges: Vec<Edge>,
    groups: &[u64],
    links: Vec<u32>,
) -> Result<Network, NetworkError> {
    if ranks == 0 {
        return Err(NetworkError::NoRanks);
    }
    for (what, count) in [
        ("vertices", vertices.len()),
        ("edges", edges.len()),
        ("groups", groups.len()),
    ] {
        // One less than would fit, so that counts fit too.
        if count >= u32::MAX as usize {
            return Err(NetworkError::TooMany { what });
        }
    }
    for (id, edge) in (0..).zip(&edges) {
        check(id, edge, number(vertices.len()), number(groups.len()))?;
    }
    let mut members: Vec<Vec<EdgeId>> = vec![Vec::new(); groups.len()];
    for (id, edge) in (0..).zip(&edges) {
        if let Some(group) = edge.group {
            members[group as usize].push(id);
        }
    }
    let mut kept = Vec::new();
    for (place, edges_of) in members.into_iter().enumerate() {
        let bytes_per_second = groups[place];
        capacity(|| format!("group {place}"), bytes_per_second)?;
        if edges_of.is_empty() {
            continue;
        }
        for &edge in &edges_of {
            edges[edge as usize].group = Some(number(kept.len()));
        }
        kept.push(Group {
            bytes_per_second,
            edges: edges_of,
        });
    }
    Ok(Network::assemble(ranks, vertices, edges, kept, links))
}

fn check(id: EdgeId, edge: &Edge, vertices: u32, groups: u32) -> Result<(), NetworkError> {
    for vertex in [edge.from, edge.to] {
        if vertex >= vertices {
            return Err(NetworkError::UnknownVertex {
                edge: id,
                vertex,
                vertices,
            });
        }
    }
    if edge.from == edge.to {
        return Err(NetworkError::SelfLoop {
            edge: id,
            vertex: edge.from,
        });
    }
    if let Some(group) = edge.group.filter(|group| *group >= groups) {
        return Err(NetworkError::UnknownGroup {
            edge: id,
            group,
            groups,
        });
    }
    capacity(|| format!("edge {id}"), edge.bytes_per_second)
}

fn capacity(what: impl Fn() -> String, bytes_per_second: u64) -> Result<(), NetworkError> {
    if (1..=Network::MAX_CAPACITY).contains(&bytes_per_second) {
        return Ok(());
    }
    Err(NetworkError::Capacity {
        what: what(),
        bytes_per_second,
        max: Network::MAX_CAPACITY,
    })
}

/// A place as a number. Places beyond 32 bits are refused by `build` before any is read back.
pub(crate) fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
