//! The rows of linear programs over edges: one for each edge, or, where the network is the same
//! both ways and so is what is packed, one for an edge and its way back.

use unisono_network::{EdgeId, Network};

use crate::lp::Column;
use crate::mates::mates;

/// Rows and what they allow.
pub(crate) struct Rows {
    /// What each row allows, in bytes a second.
    pub(crate) limits: Vec<f64>,
    /// For each edge its row.
    pub(crate) row: Vec<usize>,
    /// For each edge the one back, of the same capacity, if all have one.
    pub(crate) mates: Option<Vec<EdgeId>>,
}

impl Rows {
    pub(crate) fn new(network: &Network) -> Self {
        let mates = mates(network);
        let capacity = |edge: usize| network.edges()[edge].bytes_per_second as f64;
        let edges = network.edges().len();
        let mut row = vec![usize::MAX; edges];
        let mut limits = Vec::new();
        for edge in 0..edges {
            if row[edge] != usize::MAX {
                continue;
            }
            row[edge] = limits.len();
            match &mates {
                Some(mates) => {
                    row[mates[edge] as usize] = limits.len();
                    limits.push(2.0 * capacity(edge));
                }
                None => limits.push(capacity(edge)),
            }
        }
        Self { limits, row, mates }
    }

    /// A column of this value that puts 1 on each of these edges, as often as they come.
    pub(crate) fn column(&self, value: f64, edges: impl Iterator<Item = EdgeId>) -> Column {
        let mut uses = vec![0.0; self.limits.len()];
        for edge in edges {
            uses[self.row[edge as usize]] += 1.0;
        }
        let uses = uses.into_iter().enumerate().filter(|(_, use_)| *use_ > 0.0);
        Column {
            value,
            uses: uses.collect(),
        }
    }

    /// For each edge the price of its row, and a little for every hop, so that what is free is not
    /// used for nothing.
    pub(crate) fn spread(&self, prices: &[f64]) -> Vec<f64> {
        let average = prices.iter().sum::<f64>() / prices.len() as f64;
        let hop = average * 1e-6 + f64::MIN_POSITIVE;
        self.row
            .iter()
            .map(|&row| prices[row].max(0.0) + hop)
            .collect()
    }
}
