//! A tree, or a path, along which a share of a message goes, and when each rank acts on it.

use crate::ir::Blocks;

/// Which way, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// From the root to all others.
    Out,
    /// From all to the root, reduced on the way.
    In,
    /// From one end of a path to the other.
    Route,
    /// Signals from all to the root.
    Acknowledge,
    /// A signal from each node to its children, on entering.
    Go,
}

/// A tree with a moment for each of its nodes. Nodes are in breadth-first order from the root, so
/// that the children of a node are neighbours, and parents come before children.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) kind: Kind,
    /// What it carries.
    blocks: Blocks,
    /// The flow that must have come to its root before this one starts.
    pub(super) after: Option<usize>,
    nodes: Vec<Node>,
    /// By what names the nodes know what is carried, where each has its own.
    names: Vec<Blocks>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    rank: u32,
    parent: u32,
    first_child: u32,
    moment: i64,
}

impl Flow {
    /// A spanning tree, given by the parent of each rank; the root is its own.
    pub(super) fn tree(kind: Kind, blocks: Blocks, root: u32, parents: &[u32]) -> Self {
        let count = parents.len();
        let mut starts = vec![0u32; count + 1];
        let children = || {
            (0u32..)
                .zip(parents)
                .filter(|&(rank, &up)| rank != root && up != rank)
        };
        for (_, &parent) in children() {
            starts[parent as usize + 1] += 1;
        }
        for index in 0..count {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let mut listed = vec![0u32; count];
        for (rank, &parent) in children() {
            listed[next[parent as usize] as usize] = rank;
            next[parent as usize] += 1;
        }
        let below = |rank: u32| {
            let (start, end) = (starts[rank as usize], starts[rank as usize + 1]);
            &listed[start as usize..end as usize]
        };
        let mut nodes = vec![Node::new(root, 0)];
        let mut index = 0;
        while index < nodes.len() {
            nodes[index].first_child = nodes.len() as u32;
            let rank = nodes[index].rank;
            nodes.extend(
                below(rank)
                    .iter()
                    .map(|&child| Node::new(child, index as u32)),
            );
            index += 1;
        }
        Self {
            kind,
            blocks,
            after: None,
            nodes,
            names: Vec::new(),
        }
    }

    /// A path from its first rank, the root, to its last.
    pub(super) fn path(kind: Kind, blocks: Blocks, ranks: impl Iterator<Item = u32>) -> Self {
        let nodes = (0u32..).zip(ranks).map(|(index, rank)| Node {
            rank,
            parent: index.saturating_sub(1),
            first_child: index + 1,
            moment: 0,
        });
        Self {
            kind,
            blocks,
            after: None,
            nodes: nodes.collect(),
            names: Vec::new(),
        }
    }

    /// The same flow, whose nodes know what they carry by names of their own.
    pub(super) fn with_names(self, names: Vec<Blocks>) -> Self {
        Self { names, ..self }
    }

    /// What the flow carries, as a node knows it.
    pub(super) fn blocks_at(&self, node: usize) -> Blocks {
        self.names.get(node).copied().unwrap_or(self.blocks)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn rank(&self, node: usize) -> u32 {
        self.nodes[node].rank
    }

    /// The rank of a node's parent; none at the root.
    pub(super) fn parent(&self, node: usize) -> Option<u32> {
        (node > 0).then(|| self.rank(self.nodes[node].parent as usize))
    }

    pub(super) fn children(&self, node: usize) -> std::ops::Range<usize> {
        let end = self.nodes.get(node + 1).map_or(self.nodes.len(), |next| {
            (next.first_child as usize).min(self.nodes.len())
        });
        (self.nodes[node].first_child as usize).min(end)..end
    }

    /// Whether data goes from the root to the leaves.
    fn is_outwards(&self) -> bool {
        matches!(self.kind, Kind::Out | Kind::Go | Kind::Route)
    }

    /// From whom to whom, between a node and its parent.
    pub(super) fn channel(&self, node: usize) -> (u32, u32) {
        let (rank, parent) = (
            self.rank(node),
            self.parent(node).unwrap_or(self.rank(node)),
        );
        match self.is_outwards() {
            true => (parent, rank),
            false => (rank, parent),
        }
    }

    /// All channels that the flow uses.
    pub(super) fn hops(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (1..self.len()).map(|node| self.channel(node))
    }

    pub(super) fn moment(&self, node: usize) -> i64 {
        self.nodes[node].moment
    }

    pub(super) fn set_moment(&mut self, node: usize, moment: i64) {
        self.nodes[node].moment = moment;
    }

    pub(super) fn root_moment(&self) -> i64 {
        self.moment(0)
    }

    pub(super) fn moments(&self) -> impl Iterator<Item = i64> + '_ {
        self.nodes.iter().map(|node| node.moment)
    }

    /// A moment farther from the root than another one.
    pub(super) fn away(&self, moment: i64, distance: i64) -> i64 {
        match self.is_outwards() {
            true => moment + distance,
            false => moment - distance,
        }
    }

    /// Every message: its channel, and when it is put and taken.
    pub(super) fn messages(&self) -> impl Iterator<Item = ((u32, u32), i64, i64)> + '_ {
        (1..self.len()).map(|node| {
            let far = self.moment(node);
            let near = self.moment(self.nodes[node].parent as usize);
            (self.channel(node), far.min(near), far.max(near))
        })
    }

    pub(super) fn shift(&mut self, by: i64) {
        self.nodes.iter_mut().for_each(|node| node.moment += by);
    }
}

impl Node {
    fn new(rank: u32, parent: u32) -> Self {
        Self {
            rank,
            parent,
            first_child: 0,
            moment: 0,
        }
    }
}
