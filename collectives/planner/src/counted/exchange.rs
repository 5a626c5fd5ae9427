//! Everybody sends as much to everybody.

use unisono_network::{Network, Symmetry};

use super::ways::{Facts, Ways};
use crate::programs::ProgramError;

/// Up to so many ranks all are looked at, without a search for those that are alike.
const ALL_SOURCES: u32 = 2048;

/// What it takes if everybody sends one byte to everybody else.
pub(super) struct Exchange {
    /// Bytes over each edge.
    pub(super) loads: Vec<f64>,
    /// The longest and the narrowest path.
    pub(super) facts: Facts,
}

impl Exchange {
    /// Of ranks that are alike one is looked at: what it sends over edges of one class is what all
    /// of its class send over those together.
    pub(super) fn new(network: &Network, ways: &mut Ways<'_>) -> Result<Self, ProgramError> {
        let count = network.edges().len();
        let symmetry = match network.ranks() {
            0..=ALL_SOURCES => None,
            _ => Symmetry::of(network),
        };
        let class_of = |edge: usize| match &symmetry {
            Some(symmetry) => symmetry.arcs().of(edge as u32) as usize,
            None => edge,
        };
        let sources: Vec<(u32, f64)> = match &symmetry {
            Some(symmetry) => {
                let classes = symmetry.vertices();
                let ranks = classes.representatives().iter().zip(classes.sizes());
                (ranks.filter(|(vertex, _)| **vertex < network.ranks()))
                    .map(|(&rank, &size)| (rank, f64::from(size)))
                    .collect()
            }
            None => (0..network.ranks()).map(|rank| (rank, 1.0)).collect(),
        };
        let mut of_class = vec![0.0; count];
        let mut facts = Facts {
            latency_ps: 0.0,
            width: f64::INFINITY,
        };
        for (from, times) in sources {
            ways.start_at(from);
            let add = |edge, bytes: f64| of_class[class_of(edge as usize)] += bytes * times;
            let longest =
                (ways.exchange(1.0, add)).map_err(|to| ProgramError::NoPath { from, to })?;
            facts.latency_ps = facts.latency_ps.max(longest.latency_ps);
            facts.width = facts.width.min(longest.width);
        }
        let size = |class: usize| match &symmetry {
            Some(symmetry) => f64::from(symmetry.arcs().sizes()[class]),
            None => 1.0,
        };
        let share = |edge| of_class[class_of(edge)] / size(class_of(edge));
        Ok(Self {
            loads: (0..count).map(share).collect(),
            facts,
        })
    }
}
