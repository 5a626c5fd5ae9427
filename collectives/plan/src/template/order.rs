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
    /// of one core. The last ones may be fewer. Of the algorithms only a binomial tree has a use for it, and only for a
    /// reduce: it takes those of a run as one.
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

    /// The same order, but that the run of this rank comes first, and this rank first in it; and how many there are in that
    /// run. Behind it the others are as long as ever, so again only the last may have fewer.
    pub(crate) fn led_by(&self, rank: u32) -> (Self, u32) {
        let position = self.position(rank).unwrap_or(0);
        let start = position - position % self.run;
        let end = (start + self.run).min(self.len());
        if position == 0 {
            return (self.clone(), end);
        }
        let (before, behind) = (&self.ranks[..start as usize], &self.ranks[end as usize..]);
        let its_run = &self.ranks[start as usize..end as usize];
        let others = its_run.iter().filter(|other| **other != rank);
        let ranks: Arc<[u32]> = (std::iter::once(&rank).chain(others))
            .chain(before)
            .chain(behind)
            .copied()
            .collect();
        let mut positions = vec![0; ranks.len()];
        for (position, &rank) in (0u32..).zip(ranks.iter()) {
            positions[rank as usize] = position;
        }
        let run = self.run;
        let positions = positions.into();
        (
            Self {
                ranks,
                positions,
                run,
            },
            end - start,
        )
    }

    /// The position of a rank, if the order has it.
    #[must_use]
    pub fn position(&self, rank: u32) -> Option<u32> {
        self.positions.get(rank as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_of_who_leads_comes_first() {
        let order = Order::new([0, 2, 4, 1, 3]).unwrap().in_runs(3);
        let led_by = |rank| {
            let (led, first) = order.led_by(rank);
            for (position, &rank) in (0..).zip(led.ranks().iter()) {
                assert_eq!(led.position(rank), Some(position));
            }
            assert_eq!(led.run(), 3);
            (led.ranks().to_vec(), first)
        };
        assert_eq!(led_by(0), (vec![0, 2, 4, 1, 3], 3));
        assert_eq!(led_by(4), (vec![4, 0, 2, 1, 3], 3));
        assert_eq!(led_by(1), (vec![1, 3, 0, 2, 4], 2));
        assert_eq!(led_by(3), (vec![3, 1, 0, 2, 4], 2));
    }
}
