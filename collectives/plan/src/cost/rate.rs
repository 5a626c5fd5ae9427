//! Exact amounts: bytes as fractions of a message, rates, picoseconds.

use std::fmt;
use std::num::NonZeroU64;

/// Picoseconds in a second.
const PS: u128 = 1_000_000_000_000;

/// Bytes a second, or unknown. What moves at an unknown rate is not charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Rate(Option<NonZeroU64>);

impl Rate {
    /// Not known, or without limit.
    pub const UNKNOWN: Rate = Rate(None);

    /// A rate; 0 stands for unknown, as in the plugin contract.
    #[must_use]
    pub const fn bytes_per_second(bytes: u64) -> Rate {
        Rate(NonZeroU64::new(bytes))
    }

    /// The rate in bytes a second, if it is known.
    #[must_use]
    pub fn get(self) -> Option<u64> {
        self.0.map(NonZeroU64::get)
    }

    /// The slower of two rates.
    #[must_use]
    pub fn min(self, other: Rate) -> Rate {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Rate(Some(a.min(b))),
            (known, None) | (None, known) => Rate(known),
        }
    }

    /// The rate divided by a ratio of at least 1, never below one byte a second.
    pub(super) fn shared(self, ratio: Ratio) -> Rate {
        Rate(self.0.map(|rate| {
            let slower = u128::from(rate.get()) * ratio.den / ratio.num.max(1);
            u64::try_from(slower)
                .ok()
                .and_then(NonZeroU64::new)
                .unwrap_or(NonZeroU64::MIN)
        }))
    }

    /// The rate at which `most` would take as long as `weight` really does; `weight` is no more
    /// than `most`.
    pub(super) fn raised(self, most: u128, weight: u128) -> Rate {
        if most == weight {
            return self;
        }
        let Some(rate) = self.get() else { return self };
        // Both as small as a product with a rate allows.
        let spare = (u128::BITS - most.leading_zeros()).saturating_sub(u64::BITS);
        let (most, weight) = (most >> spare, (weight >> spare).max(1));
        let raised = u128::from(rate) * most / weight;
        Rate::bytes_per_second(u64::try_from(raised).unwrap_or(u64::MAX))
    }

    /// The rate at which an amount takes so many picoseconds; unknown for no time.
    pub(super) fn that_takes(ps: u128, bytes: Ratio) -> Rate {
        let Some(rate) = bytes.num.saturating_mul(PS).checked_div(ps) else {
            return Rate::UNKNOWN;
        };
        let rate = (rate / bytes.den).max(1);
        Rate::bytes_per_second(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// Time for an amount, rounded up to a picosecond.
    pub(super) fn time(self, bytes: Ratio) -> u128 {
        let Some(rate) = self.0 else { return 0 };
        let bottom = bytes.den.saturating_mul(u128::from(rate.get()));
        match bytes.num.checked_mul(PS) {
            Some(top) => top.div_ceil(bottom),
            // More than 3e26 bytes: whole bytes are exact enough.
            None => (bytes.num / bytes.den / u128::from(rate.get())).saturating_mul(PS),
        }
    }
}

/// A fraction: an amount in bytes, or how many times slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ratio {
    pub(super) num: u128,
    pub(super) den: u128,
}

impl Ratio {
    pub(super) const ZERO: Ratio = Ratio { num: 0, den: 1 };

    /// `num / den`; a denominator of 0 counts as 1.
    pub(super) fn new(num: u128, den: u128) -> Self {
        Ratio {
            num,
            den: den.max(1),
        }
    }

    pub(super) fn times(self, factor: u128) -> Self {
        Ratio::new(self.num.saturating_mul(factor), self.den)
    }

    /// A fraction of it.
    pub(super) fn part(self, num: u64, den: u64) -> Self {
        self.times(u128::from(num)).over(u128::from(den))
    }

    pub(super) fn at_least_one(self) -> Self {
        Ratio::new(self.num.max(self.den), self.den)
    }

    pub(super) fn over(self, divisor: u128) -> Self {
        Ratio::new(self.num, self.den.saturating_mul(divisor))
    }
}

/// A time in picoseconds, shown in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Picoseconds(pub u128);

impl fmt::Display for Picoseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.saturating_add(500) / 1000;
        let text = match nanoseconds {
            0..10_000_000 => format!("{}.{:02} us", nanoseconds / 1000, nanoseconds % 1000 / 10),
            _ => format!("{} us", nanoseconds / 1000),
        };
        f.pad(&text)
    }
}
