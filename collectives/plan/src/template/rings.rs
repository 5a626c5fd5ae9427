//! Several cycles through all ranks at once.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Order, TemplateError};

/// A cycle: data goes from each rank to the next of the order, and from the last to the first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ring {
    /// The ranks, each once.
    pub order: Order,
    /// The ring's share of the message, relative to the other rings'. Not zero.
    pub weight: u64,
}

impl Ring {
    /// A ring in the order in which `ranks` lists the ranks.
    pub fn new(ranks: impl Into<Arc<[u32]>>, weight: u64) -> Result<Self, TemplateError> {
        Ok(Self {
            order: Order::new(ranks)?,
            weight,
        })
    }

    /// The rank so many steps after another one, which is in the ring.
    pub(super) fn after(&self, rank: u32, steps: u32) -> u32 {
        let (position, ranks) = (self.order.position(rank).unwrap_or(0), self.order.len());
        let at = (u64::from(position) + u64::from(steps)) % u64::from(ranks);
        self.order.ranks()[at as usize]
    }

    /// The hops of the ring: from, to.
    pub(crate) fn hops(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let ranks = self.order.ranks();
        let next = ranks.iter().cycle().skip(1);
        ranks.iter().copied().zip(next.copied())
    }
}

/// Rings that carry shares of a message side by side. A ring the other way is a ring of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rings {
    rings: Arc<[Ring]>,
    /// The most rings that go from one rank to one other.
    shared: u32,
}

impl Rings {
    /// Rings over the same ranks.
    ///
    /// Weights may be large, but their sum times the number of ranks must be below 2^63.
    pub fn new(rings: impl Into<Arc<[Ring]>>) -> Result<Self, TemplateError> {
        let rings = rings.into();
        let Some(first) = rings.first() else {
            return Err(TemplateError::Empty { what: "ring" });
        };
        let (what, ranks) = ("ring", first.order.len());
        let each = |ring: &Ring| ring.weight.saturating_mul(u64::from(ranks));
        super::trees::check_weights(what, rings.iter().map(each))?;
        for (index, ring) in rings.iter().enumerate() {
            if ring.order.len() != ranks {
                let rank = ring.order.len().min(ranks);
                return Err(TemplateError::NotOnce { what, index, rank });
            }
        }
        if u64::from(ranks) * rings.len() as u64 >= 1 << 31 {
            return Err(TemplateError::TooMany {
                what: "rings",
                count: rings.len(),
            });
        }
        let mut uses: HashMap<(u32, u32), u32> = HashMap::new();
        for hop in rings.iter().flat_map(Ring::hops) {
            *uses.entry(hop).or_default() += 1;
        }
        let shared = uses.into_values().max().unwrap_or(0);
        Ok(Self { rings, shared })
    }

    /// The rings.
    #[must_use]
    pub fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Ranks of each ring.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.rings.first().map_or(0, |ring| ring.order.len())
    }

    /// The most rings that go from one rank to one other: 1 if no hop is used twice.
    #[must_use]
    pub fn rings_on_a_hop(&self) -> u32 {
        self.shared
    }
}
