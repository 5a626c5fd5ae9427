//! Where blocks start.

use std::sync::Arc;

use crate::ir::Shares;

use super::GeometryError;

/// The first element of each block, by its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cuts {
    /// Equal blocks: no memory, however many there are.
    Equal { count: u64, blocks: u32 },
    /// One entry for each block, and the end of the message.
    At(Arc<[u64]>),
}

impl Cuts {
    /// Cuts each of `parts` parts by the shares; `part` gives where a part starts, or, after the
    /// last one, where it ends.
    pub(super) fn new(
        blocks: u32,
        shares: &Shares,
        parts: usize,
        part: impl Fn(usize) -> u64,
    ) -> Result<Self, GeometryError> {
        let wrong = |got: usize| GeometryError::Shares { blocks, got };
        let count = blocks as usize;
        let each = count / parts.max(1);
        let mut cuts = Vec::new();
        let mut add = |index: usize, weights: &mut dyn Iterator<Item = u64>, total: u64| {
            let (start, end) = (part(index), part(index + 1));
            cuts.extend(weights.map(|before| start + scale(end - start, before, total)));
        };
        match shares {
            Shares::Equal if parts == 0 || each * parts != count => return Err(wrong(parts)),
            Shares::Equal if parts == 1 => {
                return Ok(Cuts::Equal {
                    count: part(1),
                    blocks,
                });
            }
            Shares::Equal => {
                for index in 0..parts {
                    add(index, &mut (0..each as u64), each as u64);
                }
            }
            Shares::Cumulative(ends) => {
                if parts != 1 || ends.len() != count {
                    return Err(wrong(ends.len()));
                }
                let total = rising(ends).ok_or_else(|| wrong(ends.len()))?;
                let before = &ends[..count - 1];
                add(0, &mut [0].iter().chain(before).copied(), total);
            }
            Shares::Within { starts, ends } => {
                let fits = starts.len() == parts + 1
                    && starts.is_sorted()
                    && starts.first() == Some(&0)
                    && starts.last() == Some(&blocks)
                    && ends.len() == count;
                if !fits {
                    return Err(wrong(ends.len()));
                }
                for (index, range) in starts.windows(2).enumerate() {
                    let ends = &ends[range[0] as usize..range[1] as usize];
                    let Some((_, before)) = ends.split_last() else {
                        // A part without a block must be empty.
                        if part(index) == part(index + 1) {
                            continue;
                        }
                        return Err(wrong(ends.len()));
                    };
                    let total = rising(ends).ok_or_else(|| wrong(ends.len()))?;
                    add(index, &mut [0].iter().chain(before).copied(), total);
                }
            }
        }
        cuts.push(part(parts));
        Ok(Cuts::At(cuts.into()))
    }

    /// The first element of a block, or the end of the message.
    pub(super) fn at(&self, block: u32) -> u64 {
        match self {
            Cuts::Equal { count, blocks } => {
                scale(*count, u64::from(block.min(*blocks)), u64::from(*blocks))
            }
            Cuts::At(cuts) => {
                let last = cuts.len() - 1;
                cuts[(block as usize).min(last)]
            }
        }
    }

    /// Elements of the largest block.
    pub(super) fn largest(&self) -> u64 {
        match self {
            Cuts::Equal { count, blocks } => count.div_ceil(u64::from(*blocks).max(1)),
            Cuts::At(cuts) => {
                let sizes = cuts.windows(2).map(|pair| pair[1] - pair[0]);
                sizes.max().unwrap_or(0)
            }
        }
    }
}

/// The last entry of a list that never falls and ends above 0.
fn rising(ends: &[u64]) -> Option<u64> {
    let last = ends.last().copied().filter(|&last| last > 0)?;
    ends.is_sorted().then_some(last)
}

/// `floor(value * part / whole)` for `part <= whole`; 0 if `whole` is 0.
pub(super) fn scale(value: u64, part: u64, whole: u64) -> u64 {
    match value.checked_mul(part) {
        Some(product) => product.checked_div(whole).unwrap_or(0),
        // The quotient is at most `value`, so it fits.
        None => (u128::from(value) * u128::from(part) / u128::from(whole.max(1))) as u64,
    }
}
