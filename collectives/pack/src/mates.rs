//! Each edge's way back.

use std::collections::BTreeMap;

use unisono_network::{EdgeId, Network, VertexId};

/// For each edge one of the same capacity back, if all can be matched so: then the network is the
/// same both ways, and what flows out over it can come in mirrored. None if some share a capacity.
pub(crate) fn mates(network: &Network) -> Option<Vec<EdgeId>> {
    if !network.groups().is_empty() {
        return None;
    }
    // The edges without a mate yet, by ends and capacity.
    let mut open: BTreeMap<(VertexId, VertexId, u64), Vec<EdgeId>> = BTreeMap::new();
    let mut mates = vec![EdgeId::MAX; network.edges().len()];
    for (id, edge) in (0..).zip(network.edges()) {
        let back = (edge.to, edge.from, edge.bytes_per_second);
        match open.get_mut(&back).and_then(Vec::pop) {
            Some(mate) => {
                mates[id as usize] = mate;
                mates[mate as usize] = id;
            }
            None => {
                let here = (edge.from, edge.to, edge.bytes_per_second);
                open.entry(here).or_default().push(id);
            }
        }
    }
    open.values().all(Vec::is_empty).then_some(mates)
}
