//! One PUT: where its bytes are, where they go, and how it is shared out over the lanes.

use std::sync::Arc;

use unisono_plugin::abi::{CMD_WORDS, CommandPut, NO_WINDOW};
use unisono_plugin::{Error, Result};

use super::window::{Imported, Windows};
use crate::wire::Signal;

/// A PUT whose windows were checked.
#[derive(Clone, Debug)]
pub(crate) struct Put {
    pub(crate) source: Source,
    /// `None` if it has no bytes.
    pub(crate) target: Option<Arc<Imported>>,
    pub(crate) offset: u64,
    pub(crate) total: u64,
    /// In the peer's own numbers.
    pub(crate) signal: Option<Signal>,
    pub(crate) done: Option<(u64, u64)>,
}

/// Where a put's bytes are: pieces of one size, a stride apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) address: u64,
    piece: u64,
    stride: u64,
    contiguous: bool,
}

impl Source {
    /// The longest run from `position` of the bytes in order: its address and length.
    pub(crate) const fn run(&self, position: u64) -> (u64, u64) {
        let (index, within) = (position / self.piece, position % self.piece);
        (
            self.address + index * self.stride + within,
            self.piece - within,
        )
    }

    /// Where the memory begins and how long it is that holds so many bytes of the source, and what lies
    /// between them.
    pub(crate) const fn span(&self, total: u64) -> (u64, u64) {
        if self.contiguous || total == 0 {
            return (self.address, total);
        }
        let last = (total / self.piece).saturating_sub(1);
        (self.address, last * self.stride + self.piece)
    }

    /// Whether all of it lies in one run.
    pub(crate) const fn is_contiguous(&self) -> bool {
        self.contiguous
    }
}

impl Put {
    /// Checks a command against the windows.
    ///
    /// # Errors
    /// It names no window, or bytes outside of one, or wraps around the address space.
    pub(crate) fn check(put: &CommandPut, windows: &Windows) -> Result<Self> {
        let wraps = || Error::invalid("a PUT gathers more than the address space holds");
        let total = put.bytes.checked_mul(put.repeat).ok_or_else(wraps)?;
        put.src_stride
            .checked_mul(put.repeat.max(1) - 1)
            .and_then(|last| put.src.checked_add(last)?.checked_add(put.bytes))
            .ok_or_else(wraps)?;
        if total > 0 && put.src == 0 {
            return Err(Error::invalid("a PUT of bytes at address 0"));
        }
        let target = if total == 0 && put.dst_window == NO_WINDOW {
            None
        } else {
            let window = windows.target(put.dst_window, put.dst_offset, total)?;
            (total > 0).then(|| Arc::clone(window))
        };
        let signal = match put.signal_window {
            NO_WINDOW => None,
            id => Some(Signal {
                window: windows.target_flag(id, put.signal_offset)?.id,
                offset: put.signal_offset,
                words: (put.head.flags & CMD_WORDS != 0).then_some(put.words),
            }),
        };
        let contiguous = put.repeat <= 1 || put.src_stride == put.bytes;
        Ok(Self {
            source: Source {
                address: put.src,
                piece: if contiguous { total } else { put.bytes }.max(1),
                stride: put.src_stride,
                contiguous,
            },
            target,
            offset: put.dst_offset,
            total,
            signal,
            done: (put.done_flag != 0).then_some((put.done_flag, put.done_counter)),
        })
    }
}

/// How the bytes of puts are shared out: in proportion to what the lanes carry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Striping {
    /// By lane: its share of the sum.
    weights: Vec<u64>,
    stripe: u64,
}

/// The end of each lane's share of one put; lanes beyond have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shares {
    /// The first lane carries all.
    Whole,
    Striped(Vec<u64>),
}

/// Shares begin on such multiples of the put's bytes: devices like whole packets.
const GRAIN: u64 = 4096;

impl Striping {
    pub(crate) const fn new(weights: Vec<u64>, stripe: u64) -> Self {
        Self { weights, stripe }
    }

    /// The shares of a put of so many bytes.
    pub(crate) fn share(&self, total: u64) -> Shares {
        let most = usize::try_from(total / self.stripe.max(1)).unwrap_or(usize::MAX);
        let lanes = self.weights.len().min(most);
        if lanes < 2 {
            return Shares::Whole;
        }
        let weights = &self.weights[..lanes];
        let sum: u128 = weights.iter().map(|w| u128::from(*w)).sum();
        let mut upto = 0_u128;
        let ends = weights.iter().enumerate().map(|(lane, weight)| {
            upto += u128::from(*weight);
            if lane + 1 == lanes {
                return total;
            }
            let end = (u128::from(total) * upto / sum.max(1)) as u64; // at most `total`
            end.next_multiple_of(GRAIN).min(total)
        });
        Shares::Striped(ends.collect())
    }
}

impl Shares {
    /// Where a lane's share begins and ends, if it has one.
    pub(crate) fn of(&self, lane: usize, total: u64) -> Option<(u64, u64)> {
        match self {
            Self::Whole => (lane == 0).then_some((0, total)),
            Self::Striped(ends) => {
                let end = *ends.get(lane)?;
                let start = lane.checked_sub(1).map_or(0, |before| ends[before]);
                // The first lane always has its part in a put: it brings the signal.
                (lane == 0 || start < end).then_some((start, end))
            }
        }
    }

    /// Lanes that have a share.
    pub(crate) fn lanes(&self, total: u64) -> impl Iterator<Item = usize> + '_ {
        let most = match self {
            Self::Whole => 1,
            Self::Striped(ends) => ends.len(),
        };
        (0..most).filter(move |lane| self.of(*lane, total).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shares_follow_the_speed_of_the_rails() {
        let striping = Striping::new(vec![200, 100, 100], 64 << 10);
        let total = 4 << 20;
        let shares = striping.share(total);
        assert_eq!(shares.of(0, total), Some((0, 2 << 20)));
        assert_eq!(shares.of(1, total), Some((2 << 20, 3 << 20)));
        assert_eq!(shares.of(2, total), Some((3 << 20, 4 << 20)));
        assert_eq!(shares.of(3, total), None);
        // Too short for three stripes, and for two.
        assert_eq!(striping.share(150 << 10).of(2, 150 << 10), None);
        assert_eq!(striping.share(100 << 10), Shares::Whole);
        assert_eq!(striping.share(0).of(0, 0), Some((0, 0)));
    }

    proptest! {
        #[test]
        fn shares_tile_a_put(
            weights in prop::collection::vec(1u64..1 << 40, 1..16),
            stripe in 1u64..1 << 20,
            total in 0u64..1 << 40,
        ) {
            let lanes = weights.len();
            let shares = Striping::new(weights, stripe).share(total);
            let mut at = 0;
            for lane in 0..lanes + 1 {
                if let Some((start, end)) = shares.of(lane, total) {
                    prop_assert_eq!(start, at);
                    prop_assert!(end >= start);
                    at = end;
                }
            }
            prop_assert_eq!(at, total);
            prop_assert_eq!(shares.lanes(total).next(), Some(0));
        }
    }
}
