//! Splits any number of ranks into halves, and those again, down to one rank.
//!
//! Of an odd number of ranks the lower half has one more. Its ranks pair with those of the upper
//! half in order; the last one, which is left over, joins the last pair: it gives its part of the
//! upper half's blocks to the last upper rank and takes nothing, as its own contribution to the
//! lower half is already where it belongs. So only one rank of a group takes twice, and at most
//! once where the others don't: of `n` ranks it takes `2 floor(n/2)` blocks and not `ceil(n/2)`.

use crate::ir::Blocks;

/// One level of the halving, as one rank sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Level {
    /// The ranks of the own half, whose blocks stay.
    pub(super) kept: Blocks,
    /// The ranks of the other half, whose blocks go there.
    pub(super) sent: Blocks,
    /// To whom the other half's blocks go.
    pub(super) gives: u32,
    /// From whom the own half's blocks come, twice perhaps; those not used repeat others.
    takes: [u32; 2],
    count: usize,
}

impl Level {
    /// From whom the own half's blocks come: one rank, two, or none.
    pub(super) fn takes(&self) -> &[u32] {
        &self.takes[..self.count]
    }
}

/// The levels of a rank, the whole communicator first.
pub(super) fn levels(rank: u32, ranks: u32) -> Vec<Level> {
    let mut levels = Vec::new();
    let (mut first, mut count) = (0, ranks);
    while count > 1 {
        let lower = count.div_ceil(2);
        let upper = count - lower;
        let middle = first + lower;
        let (low, high) = (Blocks::new(first, lower), Blocks::new(middle, upper));
        let odd = lower > upper;
        let last = first + count - 1;
        let level = if rank < middle {
            let alone = odd && rank + 1 == middle;
            let partner = if alone { last } else { rank + lower };
            Level {
                kept: low,
                sent: high,
                gives: partner,
                takes: [partner; 2],
                count: usize::from(!alone),
            }
        } else {
            let partner = rank - lower;
            let twice = odd && rank == last;
            Level {
                kept: high,
                sent: low,
                gives: partner,
                takes: [partner, middle - 1],
                count: 1 + usize::from(twice),
            }
        };
        levels.push(level);
        (first, count) = if rank < middle {
            (first, lower)
        } else {
            (middle, upper)
        };
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exchange_has_two_sides() {
        for ranks in 1..=70 {
            let all: Vec<Vec<Level>> = (0..ranks).map(|rank| levels(rank, ranks)).collect();
            for (rank, mine) in (0..).zip(&all) {
                for (index, level) in mine.iter().enumerate() {
                    let theirs = &all[level.gives as usize][index];
                    assert!(theirs.takes().contains(&rank), "{rank} of {ranks}");
                    assert_eq!((theirs.kept, theirs.sent), (level.sent, level.kept));
                    for &from in level.takes() {
                        assert_eq!(all[from as usize][index].gives, rank);
                    }
                }
                let own = mine
                    .last()
                    .map_or(Blocks::new(0, ranks), |level| level.kept);
                assert_eq!(own, Blocks::one(rank), "ends with the own block");
            }
        }
    }
}
