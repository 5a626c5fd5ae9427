//! The one way to a graph: fill a builder, then have everything checked and put in order.
//!
//! Order of insertion does not matter: the same vertices, links and groups give the same graph.

mod check;
mod order;

use crate::graph::Parts;
use crate::{
    CapacityGroup, GraphError, GroupId, LinkGraph, LinkType, Node, Source, Vertex, VertexId,
};

/// A graph in the making. The identities that it hands out are its own: those of the graph differ.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    nodes: Vec<Node>,
    vertices: Vec<Vertex>,
    links: Vec<NewLink>,
    groups: Vec<CapacityGroup>,
}

/// A link for a builder: a [`Link`](crate::Link) whose number among parallel links is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLink {
    /// Where bytes enter.
    pub from: VertexId,
    /// Where bytes leave.
    pub to: VertexId,
    /// The plugin that drives it; may be empty.
    pub plugin: String,
    /// Its kind.
    pub kind: String,
    /// How bytes are moved over it.
    pub link_type: LinkType,
    /// Bandwidth in bytes a second: by whichever end moves the bytes faster.
    pub bytes_per_second: u64,
    /// The same in bytes a second where the sender writes, if that is less.
    pub written_bytes_per_second: Option<u64>,
    /// Latency in nanoseconds.
    pub latency_ns: u64,
    /// The capacity that it shares, if it does.
    pub shared: Option<GroupId>,
    /// Its rail, 0 if there are none.
    pub rail: u32,
    /// Who says so.
    pub source: Source,
}

impl Builder {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node.
    pub fn node(&mut self, node: Node) -> &mut Self {
        self.nodes.push(node);
        self
    }

    /// Adds a vertex.
    pub fn vertex(&mut self, vertex: Vertex) -> VertexId {
        self.vertices.push(vertex);
        VertexId(number(self.vertices.len() - 1))
    }

    /// Adds a link. Parallel links are kept, each with an index of its own.
    pub fn link(&mut self, link: NewLink) -> &mut Self {
        self.links.push(link);
        self
    }

    /// Adds a capacity that links can share.
    pub fn capacity_group(&mut self, group: CapacityGroup) -> GroupId {
        self.groups.push(group);
        GroupId(number(self.groups.len() - 1))
    }

    /// Checks everything, puts it in canonical order and freezes it.
    ///
    /// # Errors
    /// The first thing that is wrong: an end or a node that is missing, a link from a vertex to
    /// itself, a bandwidth of zero, something described twice, a rank on two devices, a bad name.
    pub fn build(self) -> Result<LinkGraph, GraphError> {
        self.check()?;
        let parts = order::canonical(self.nodes, self.vertices, self.links, self.groups)?;
        Ok(LinkGraph::freeze(parts))
    }
}

/// A graph taken apart, to be changed. The vertices, links and groups keep their places.
impl From<&LinkGraph> for Builder {
    fn from(graph: &LinkGraph) -> Self {
        let Parts {
            nodes,
            vertices,
            links,
            groups,
        } = graph.parts().clone();
        let links = links
            .into_iter()
            .map(|link| NewLink {
                from: link.from,
                to: link.to,
                plugin: link.plugin,
                kind: link.kind,
                link_type: link.link_type,
                bytes_per_second: link.bytes_per_second,
                written_bytes_per_second: link.written_bytes_per_second,
                latency_ns: link.latency_ns,
                shared: link.shared,
                rail: link.rail,
                source: link.source,
            })
            .collect();
        Self {
            nodes,
            vertices,
            links,
            groups,
        }
    }
}

impl Builder {
    /// The capacity of this name, and how large it is.
    pub(crate) fn find_group(&self, name: &str) -> Option<(GroupId, u64)> {
        let place = self.groups.iter().position(|group| group.name == name)?;
        Some((GroupId(number(place)), self.groups[place].bytes_per_second))
    }

    pub(crate) fn links_mut(&mut self) -> &mut Vec<NewLink> {
        &mut self.links
    }
}

/// A place as a number. Places beyond 32 bits are refused by `check` before any is read back.
fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
