//! The frozen graph and what can be asked of it without a search.

use std::collections::BTreeMap;

use crate::{
    CapacityGroup, GraphHash, GroupId, Link, LinkId, Node, NodeId, Vertex, VertexId, hash,
};

/// A link graph: immutable, checked, in canonical order. Made by a [`Builder`](crate::Builder).
#[derive(Clone, Debug)]
pub struct LinkGraph {
    parts: Parts,
    ranks: BTreeMap<u32, VertexId>,
    /// For each vertex, where its outgoing links begin in `parts.links`; one more at the end.
    starts: Vec<u32>,
    hash: GraphHash,
}

/// The content of a graph, in canonical order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) nodes: Vec<Node>,
    pub(crate) vertices: Vec<Vertex>,
    pub(crate) links: Vec<Link>,
    pub(crate) groups: Vec<CapacityGroup>,
}

impl PartialEq for LinkGraph {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Eq for LinkGraph {}

impl LinkGraph {
    pub(crate) fn freeze(parts: Parts) -> Self {
        let ranks = (0u32..)
            .zip(&parts.vertices)
            .filter_map(|(place, vertex)| Some((vertex.rank()?, VertexId(place))))
            .collect();
        let mut starts = vec![0; parts.vertices.len() + 1];
        for link in &parts.links {
            starts[link.from.index() + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        let hash = hash::hash(&parts);
        Self {
            parts,
            ranks,
            starts,
            hash,
        }
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The nodes, by identity.
    pub fn nodes(&self) -> &[Node] {
        &self.parts.nodes
    }

    /// The vertices: devices by rank, devices without one, network cards, switches, NUMA nodes.
    pub fn vertices(&self) -> &[Vertex] {
        &self.parts.vertices
    }

    /// The links, by ends.
    pub fn links(&self) -> &[Link] {
        &self.parts.links
    }

    /// The capacities that links share.
    pub fn capacity_groups(&self) -> &[CapacityGroup] {
        &self.parts.groups
    }

    /// A fingerprint of everything in the graph, the same on every host and architecture.
    pub fn hash(&self) -> GraphHash {
        self.hash
    }

    /// A node by identity.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        let place = self
            .parts
            .nodes
            .binary_search_by_key(&id, |node| node.id)
            .ok()?;
        Some(&self.parts.nodes[place])
    }

    /// A vertex.
    ///
    /// # Panics
    /// If the identity is another graph's and this graph is smaller; so too in what follows.
    pub fn vertex(&self, id: VertexId) -> &Vertex {
        &self.parts.vertices[id.index()]
    }

    /// A link.
    ///
    /// # Panics
    /// As for [`vertex`](Self::vertex).
    pub fn link(&self, id: LinkId) -> &Link {
        &self.parts.links[id.index()]
    }

    /// A capacity group.
    ///
    /// # Panics
    /// As for [`vertex`](Self::vertex).
    pub fn capacity_group(&self, id: GroupId) -> &CapacityGroup {
        &self.parts.groups[id.index()]
    }

    /// The vertices with their identities.
    pub fn vertex_ids(&self) -> impl DoubleEndedIterator<Item = (VertexId, &Vertex)> {
        let ids = 0..self.starts.len() as u32 - 1;
        ids.map(VertexId).zip(&self.parts.vertices)
    }

    /// The ranks that have a device here, in order.
    pub fn ranks(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.ranks.keys().copied()
    }

    /// How many ranks have a device here.
    pub fn rank_count(&self) -> usize {
        self.ranks.len()
    }

    /// The device of a rank.
    pub fn rank(&self, rank: u32) -> Option<VertexId> {
        self.ranks.get(&rank).copied()
    }

    /// The node that a rank runs on, if it has one.
    pub fn node_of_rank(&self, rank: u32) -> Option<NodeId> {
        self.vertex(self.rank(rank)?).node
    }

    /// The links that begin at a vertex, with their identities, by their other end.
    ///
    /// # Panics
    /// As for [`vertex`](Self::vertex).
    pub fn links_from(&self, vertex: VertexId) -> impl DoubleEndedIterator<Item = (LinkId, &Link)> {
        let range = self.starts[vertex.index()]..self.starts[vertex.index() + 1];
        range.map(|place| (LinkId(place), &self.parts.links[place as usize]))
    }

    /// The links from one vertex straight to another; parallel links, and links of several kinds,
    /// are several.
    ///
    /// # Panics
    /// As for [`vertex`](Self::vertex).
    pub fn links_between(
        &self,
        from: VertexId,
        to: VertexId,
    ) -> impl DoubleEndedIterator<Item = (LinkId, &Link)> {
        self.links_from(from).filter(move |(_, link)| link.to == to)
    }
}
