//! Which bytes of the message belong to whom.

use std::ops::Range;

use unisono_plan::Op;

/// A message of so many bytes between so many ranks.
///
/// The size is that of the larger buffer, as in nccl-tests. Where every rank has a block of it,
/// block `r` is `[bytes r / p, bytes (r + 1) / p)`, rounded down to whole elements, so that blocks
/// may differ by one element. In all_to_all every block has the same size, the largest that
/// fits, since what one rank sends another receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Message {
    /// The size asked for.
    pub bytes: u64,
    /// The ranks.
    pub ranks: u32,
    /// Bytes that stay together: 4, or fewer if the size isn't a multiple of that.
    pub element: u64,
    equal: bool,
}

impl Message {
    /// The message of an operation.
    #[must_use]
    pub fn new(op: Op, ranks: u32, bytes: u64) -> Self {
        let element = [4, 2]
            .into_iter()
            .find(|&e| bytes.is_multiple_of(e))
            .unwrap_or(1);
        Self {
            bytes,
            ranks,
            element,
            equal: op == Op::AllToAll,
        }
    }

    /// The bytes of a rank's block.
    #[must_use]
    pub fn block(&self, rank: u32) -> Range<u64> {
        let count = self.bytes / self.element;
        let ranks = u64::from(self.ranks);
        let cut = |r: u64| match self.equal {
            true => r * (count / ranks) * self.element,
            false => (u128::from(count) * u128::from(r) / u128::from(ranks)) as u64 * self.element,
        };
        cut(u64::from(rank))..cut(u64::from(rank) + 1)
    }

    /// All its bytes.
    #[must_use]
    pub fn whole(&self) -> Range<u64> {
        0..self.bytes
    }
}

/// Cuts ranges of a message at whole elements.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// Bytes that stay together.
    pub element: u64,
}

impl Cut {
    /// A range in so many parts as even as they can be.
    pub fn even(self, range: Range<u64>, parts: u64) -> impl Iterator<Item = Range<u64>> {
        let ends = (1..=parts).map(move |part| (part, parts));
        self.at(range, ends)
    }

    /// A range in parts of these weights.
    #[must_use]
    pub fn weighted(self, range: Range<u64>, weights: &[u64]) -> Vec<Range<u64>> {
        let sum: u64 = weights.iter().sum();
        let mut before = 0;
        let ends = weights.iter().map(|weight| {
            before += weight;
            (before, sum.max(1))
        });
        self.at(range, ends).collect()
    }

    fn at(
        self,
        range: Range<u64>,
        ends: impl Iterator<Item = (u64, u64)>,
    ) -> impl Iterator<Item = Range<u64>> {
        let count = (range.end - range.start) / self.element;
        let mut start = range.start;
        ends.map(move |(part, of)| {
            let elements = u128::from(count) * u128::from(part) / u128::from(of);
            // What doesn't fill an element goes with the last one.
            let end = match part == of {
                true => range.end,
                false => range.start + elements as u64 * self.element,
            };
            let cut = start..end;
            start = end;
            cut
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_the_message_and_parts_their_range() {
        for (ranks, bytes) in [(3, 256), (7, 1001), (24, 256), (5, 3)] {
            let message = Message::new(Op::AllGather, ranks, bytes);
            let mut at = 0;
            for rank in 0..ranks {
                let block = message.block(rank);
                assert_eq!(block.start, at);
                at = block.end;
            }
            assert_eq!(at, bytes);
            let cut = Cut {
                element: message.element,
            };
            for parts in [
                cut.even(0..bytes, 5).collect(),
                cut.weighted(0..bytes, &[3, 1, 1]),
            ] {
                assert_eq!(parts.first().map(|part| part.start), Some(0));
                assert_eq!(parts.last().map(|part| part.end), Some(bytes));
                assert!(parts.windows(2).all(|two| two[0].end == two[1].start));
            }
        }
    }

    #[test]
    fn all_to_all_has_equal_blocks() {
        let message = Message::new(Op::AllToAll, 3, 256);
        assert_eq!(message.block(0), 0..84);
        assert_eq!(message.block(2), 168..252);
    }
}
