//! Networks made from a network: of some of its ranks, and turned around.

use crate::builder::{build, number};
use crate::{Edge, Network, NetworkError, Vertex, VertexId};

impl Network {
    /// The network of some ranks: rank 0 is the first one given, and so on. The devices of other
    /// ranks vanish with their edges, since a device outside does not forward; switches stay.
    ///
    /// # Errors
    /// If no rank is given, one is not there, or one is given twice.
    pub fn restrict(&self, ranks: &[u32]) -> Result<Self, NetworkError> {
        let mut ids: Vec<Option<VertexId>> = vec![None; self.vertices.len()];
        for (place, &rank) in ranks.iter().enumerate() {
            if rank >= self.ranks {
                return Err(NetworkError::UnknownRank {
                    rank,
                    ranks: self.ranks,
                });
            }
            if ids[rank as usize].replace(number(place)).is_some() {
                return Err(NetworkError::DuplicateRank { rank });
            }
        }
        let count = number(ranks.len());
        let mut vertices: Vec<Vertex> = (0..count).map(|rank| Vertex::Compute { rank }).collect();
        for (id, vertex) in ids.iter_mut().zip(&self.vertices).skip(self.ranks as usize) {
            *id = Some(number(vertices.len()));
            vertices.push(*vertex);
        }
        let mut edges = Vec::new();
        let mut links = Vec::new();
        for (place, edge) in self.edges.iter().enumerate() {
            let ends = (ids[edge.from as usize], ids[edge.to as usize]);
            if let (Some(from), Some(to)) = ends {
                edges.push(Edge { from, to, ..*edge });
                links.extend(self.links.get(place));
            }
        }
        let groups: Vec<u64> = self
            .groups
            .iter()
            .map(|group| group.bytes_per_second)
            .collect();
        build(count, vertices, edges, &groups, links)
    }

    /// The same network with every edge the other way; edges keep their numbers. What holds for a
    /// broadcast here holds for a reduction there.
    pub fn reversed(&self) -> Self {
        let turn = |edge: &Edge| Edge {
            from: edge.to,
            to: edge.from,
            ..*edge
        };
        Self::assemble(
            self.ranks,
            self.vertices.clone(),
            self.edges.iter().map(turn).collect(),
            self.groups.clone(),
            self.links.clone(),
        )
    }
}
