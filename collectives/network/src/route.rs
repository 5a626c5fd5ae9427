//! Paths: over which edges data goes from one rank to another.
//!
//! A plan says who sends to whom; where no edge joins the two, this says what lies in between.
//! Paths with switches only in between come first, whatever their length, since what goes through
//! another rank's device takes that device's part. Where there is none, data goes through devices
//! too, cut through, not stored. Among such paths the fewest edges count, then the widest
//! bottleneck, then the last edges whose ends are closest in number: every host finds the same one,
//! and on a torus it is what routers there do, one dimension after the other.
//!
//! Many pairs at once, as all_to_all has them, would crowd those edges while others of the same
//! length stay empty. [`Router::spread`] goes by load instead of by number.

mod spread;
mod tree;

use crate::{EdgeId, Network};
use tree::Tree;

/// Finds paths on one network. It keeps what it found from the last source, so ask source by
/// source.
#[derive(Clone, Debug)]
pub struct Router<'a> {
    network: &'a Network,
    /// The rank that the trees begin at, if any does.
    from: Option<u32>,
    /// Paths through switches only.
    switched: Tree,
    /// Paths through anything; made when the first path needs it.
    relayed: Option<Tree>,
}

impl<'a> Router<'a> {
    /// For a network.
    pub fn new(network: &'a Network) -> Self {
        Self {
            network,
            from: None,
            switched: Tree::default(),
            relayed: None,
        }
    }

    /// The network that paths are on.
    pub fn network(&self) -> &'a Network {
        self.network
    }

    /// The edges from one rank to another, in the order in which data takes them: none for a rank
    /// to itself. `None` if nothing leads there, or a rank is not there.
    pub fn path(&mut self, from: u32, to: u32) -> Option<Vec<EdgeId>> {
        let network = self.network;
        self.tree_to(from, to)?.path(network, to)
    }

    /// The tree on which a rank's path to another lies, if there is one.
    fn tree_to(&mut self, from: u32, to: u32) -> Option<&Tree> {
        if from.max(to) >= self.network.ranks() {
            return None;
        }
        if self.from != Some(from) {
            self.from = Some(from);
            self.relayed = None;
            self.switched.grow(self.network, from, true);
        }
        if self.switched.reaches(to) {
            return Some(&self.switched);
        }
        let relayed = self.relayed.get_or_insert_with(|| {
            let mut tree = Tree::default();
            tree.grow(self.network, from, false);
            tree
        });
        relayed.reaches(to).then_some(&*relayed)
    }
}

/// What a path is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// What its narrowest edge carries, in bytes a second; the largest number for no edges.
    pub bytes_per_second: u64,
    /// Its edges' latencies together, in nanoseconds.
    pub latency_ns: u64,
}

impl Network {
    /// What a path is like.
    ///
    /// # Panics
    /// If there is no such edge.
    pub fn path_facts(&self, path: &[EdgeId]) -> PathFacts {
        let edges = path.iter().map(|edge| self.edge(*edge));
        PathFacts {
            bytes_per_second: edges
                .clone()
                .map(|edge| edge.bytes_per_second)
                .min()
                .unwrap_or(u64::MAX),
            latency_ns: edges
                .map(|edge| edge.latency_ns)
                .fold(0, u64::saturating_add),
        }
    }
}

#[cfg(test)]
mod tests;
