//! What waits in Dijkstra's searches.

use std::cmp::Ordering;

use unisono_network::VertexId;

/// A vertex to look at and how far it is; the nearest is the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry(pub(crate) f64, pub(crate) VertexId);

impl Eq for Entry {}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        let nearest = other.0.total_cmp(&self.0);
        nearest.then_with(|| other.1.cmp(&self.1))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
