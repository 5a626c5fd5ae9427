//! Several cycles through all ranks at once.

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
}

/// Rings that carry shares of a message side by side. A ring the other way is a ring of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rings {
    rings: Arc<[Ring]>,
}

impl Rings {
    /// Rings over the same ranks.
    pub fn new(rings: impl Into<Arc<[Ring]>>) -> Result<Self, TemplateError> {
        let rings = rings.into();
        let Some(first) = rings.first() else {
            return Err(TemplateError::Empty { what: "ring" });
        };
        let (what, ranks) = ("ring", first.order.len());
        super::trees::check_weights(what, rings.iter().map(|ring| ring.weight))?;
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
        Ok(Self { rings })
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
}
