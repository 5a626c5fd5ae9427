//! A permutation of the ranks.

use std::sync::Arc;

use super::TemplateError;

/// Which rank stands at which position.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Order {
    ranks: Arc<[u32]>,
    positions: Arc<[u32]>,
    run: u32,
}

impl Order {
    /// The order in which `ranks` lists the ranks, each of which must be there once.
    pub fn new(ranks: impl Into<Arc<[u32]>>) -> Result<Self, TemplateError> {
        Order::checked("order", 0, ranks.into())
    }

    /// The same, of which each `run` ranks that follow each other are nearer to each other than to all others, such as those
    /// of one core. The last ones may be fewer.
    #[must_use]
    pub fn in_runs(mut self, run: u32) -> Self {
        self.run = run.max(1);
        self
    }

    pub(super) fn checked(
        what: &'static str,
        index: usize,
        ranks: Arc<[u32]>,
    ) -> Result<Self, TemplateError> {
        let count = ranks.len();
        if count == 0 {
            return Err(TemplateError::Empty { what: "rank" });
        }
        let Some(all) = u32::try_from(count).ok().filter(|&all| all < 1 << 31) else {
            let what = "ranks";
            return Err(TemplateError::TooMany { what, count });
        };
        let mut positions = vec![u32::MAX; count];
        for (position, &rank) in (0u32..).zip(ranks.iter()) {
            match positions.get_mut(rank as usize) {
                Some(at) if *at == u32::MAX => *at = position,
                Some(_) => return Err(TemplateError::NotOnce { what, index, rank }),
                None => {
                    let ranks = all;
                    return Err(TemplateError::NoSuchRank {
                        what,
                        index,
                        rank,
                        ranks,
                    });
                }
            }
        }
        Ok(Self {
            ranks,
            positions: positions.into(),
            run: 1,
        })
    }

    /// How many ranks there are.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Never: an order has a rank.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// The ranks by position.
    #[must_use]
    pub fn ranks(&self) -> &Arc<[u32]> {
        &self.ranks
    }

    /// How many that follow each other are near each other; 1 if none are known to be.
    #[must_use]
    pub fn run(&self) -> u32 {
        self.run
    }

    /// The same order, but that this rank is the first of its run.
    pub(crate) fn with_first(&self, rank: u32) -> Self {
        let Some(position) = self.position(rank) else {
            return self.clone();
        };
        let first = position - position % self.run;
        let (mut ranks, mut positions) = (self.ranks.to_vec(), self.positions.to_vec());
        ranks.swap(first as usize, position as usize);
        positions.swap(self.ranks[first as usize] as usize, rank as usize);
        Self {
            ranks: ranks.into(),
            positions: positions.into(),
            run: self.run,
        }
    }

    /// The position of a rank, if the order has it.
    #[must_use]
    pub fn position(&self, rank: u32) -> Option<u32> {
        self.positions.get(rank as usize).copied()
    }
}
