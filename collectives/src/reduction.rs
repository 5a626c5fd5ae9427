//! Reductions, as callers name them.

mod user;

use std::fmt;
use std::str::FromStr;

use unisono_abi::reduction;

pub use user::{Order, UserReduction};

use crate::{DataType, Element};

/// How contributions are combined, where that needs no more than a name.
///
/// Floats are computed in their type (f16, bf16 and the 8-bit ones in f32) and rounded after each
/// step; `Min` and `Max` give NaN if any input is NaN. Integers wrap. `Avg` is the sum divided by
/// the number of ranks: floats in the type of computation, integers rounded toward zero. `And`, `Or`
/// and `Xor` are bitwise, and for integers alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the operations")]
pub enum ReduceOp {
    Sum = 1,
    Prod = 2,
    Min = 3,
    Max = 4,
    Avg = 5,
    And = 6,
    Or = 7,
    Xor = 8,
}

impl ReduceOp {
    /// Every reduction.
    pub const ALL: [Self; 8] = [
        Self::Sum,
        Self::Prod,
        Self::Min,
        Self::Max,
        Self::Avg,
        Self::And,
        Self::Or,
        Self::Xor,
    ];

    /// The name: `sum`, `prod`, `min`, `max`, `avg`, `and`, `or`, `xor`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Prod => "prod",
            Self::Min => "min",
            Self::Max => "max",
            Self::Avg => "avg",
            Self::And => "and",
            Self::Or => "or",
            Self::Xor => "xor",
        }
    }

    /// The number in the plugin contract; `Avg` is a sum whose last step divides.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Sum | Self::Avg => reduction::SUM,
            Self::Prod => reduction::PROD,
            Self::Min => reduction::MIN,
            Self::Max => reduction::MAX,
            Self::And => reduction::AND,
            Self::Or => reduction::OR,
            Self::Xor => reduction::XOR,
        }
    }

    /// Whether it is defined on a type: the bitwise ones are for integers.
    #[must_use]
    pub const fn applies_to(self, dtype: DataType) -> bool {
        dtype.is_integer() || !matches!(self, Self::And | Self::Or | Self::Xor)
    }
}

impl fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ReduceOp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|op| op.name() == text)
            .ok_or_else(|| {
                let known: Vec<_> = Self::ALL.iter().map(|op| op.name()).collect();
                format!("unknown reduction `{text}`; known: {}", known.join(", "))
            })
    }
}

/// How contributions are combined: what the collectives take. A [`ReduceOp`] is one.
#[derive(Clone, Debug)]
pub struct Reduction(pub(crate) How);

#[derive(Clone, Debug)]
pub(crate) enum How {
    Op(ReduceOp),
    Scaled(Factor),
    User(UserReduction),
}

/// What each element of this rank's input is multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Factor {
    pub dtype: DataType,
    /// One element in the first bytes, zero after it.
    pub bytes: [u8; 8],
}

impl Reduction {
    /// The sum of the contributions, each multiplied by its rank's factor first (NCCL's
    /// "pre-multiplied sum"). The product is rounded to the type of the element, then added.
    ///
    /// The factor is this rank's alone; others may have another one.
    #[must_use]
    #[allow(unsafe_code, reason = "the bytes of an element")]
    pub fn scaled_sum<T: Element>(factor: T) -> Self {
        let mut bytes = [0; 8];
        // SAFETY: an element is plain data of its size, at most 8 bytes.
        unsafe {
            let source = (&raw const factor).cast::<u8>();
            source.copy_to_nonoverlapping(bytes.as_mut_ptr(), size_of::<T>().min(8));
        }
        Self::scaled_sum_of(T::TYPE, bytes)
    }

    /// [`Reduction::scaled_sum`] with the factor as it lies in memory: one element of `dtype` in
    /// the first bytes, zero after it.
    #[must_use]
    pub const fn scaled_sum_of(dtype: DataType, factor: [u8; 8]) -> Self {
        Self(How::Scaled(Factor {
            dtype,
            bytes: factor,
        }))
    }

    /// What ranks must agree on.
    #[must_use]
    pub const fn kind(&self) -> ReductionKind {
        match &self.0 {
            How::Op(op) => ReductionKind::Op(*op),
            How::Scaled(_) => ReductionKind::ScaledSum,
            How::User(user) => ReductionKind::User(user.order()),
        }
    }
}

impl From<ReduceOp> for Reduction {
    fn from(op: ReduceOp) -> Self {
        Self(How::Op(op))
    }
}

impl From<&Self> for Reduction {
    fn from(other: &Self) -> Self {
        other.clone()
    }
}

impl From<UserReduction> for Reduction {
    fn from(user: UserReduction) -> Self {
        Self(How::User(user))
    }
}

impl From<&UserReduction> for Reduction {
    fn from(user: &UserReduction) -> Self {
        Self(How::User(user.clone()))
    }
}

/// What all ranks of a call must agree on of its reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReductionKind {
    /// One of those with a name.
    Op(ReduceOp),
    /// A sum of scaled contributions, whatever the factors.
    ScaledSum,
    /// The user's own. That the functions are the same cannot be known.
    User(Order),
}

impl ReductionKind {
    const SCALED: u8 = 16;
    const ANY_ORDER: u8 = 17;
    const RANK_ORDER: u8 = 18;

    /// The number in a signature; never 0.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Op(op) => op as u8,
            Self::ScaledSum => Self::SCALED,
            Self::User(Order::Any) => Self::ANY_ORDER,
            Self::User(Order::Ranks) => Self::RANK_ORDER,
        }
    }

    /// The kind of this number.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        match code {
            Self::SCALED => Some(Self::ScaledSum),
            Self::ANY_ORDER => Some(Self::User(Order::Any)),
            Self::RANK_ORDER => Some(Self::User(Order::Ranks)),
            _ => {
                let op = ReduceOp::ALL.into_iter().find(|op| *op as u8 == code)?;
                Some(Self::Op(op))
            }
        }
    }
}

impl From<ReduceOp> for ReductionKind {
    fn from(op: ReduceOp) -> Self {
        Self::Op(op)
    }
}

impl fmt::Display for ReductionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Op(op) => op.fmt(f),
            Self::ScaledSum => f.write_str("scaled sum"),
            Self::User(Order::Any) => f.write_str("the user's own reduction"),
            Self::User(Order::Ranks) => f.write_str("the user's own reduction in rank order"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_round_trip() {
        for op in ReduceOp::ALL {
            assert_eq!(op.name().parse(), Ok(op));
            let kind = ReductionKind::from(op);
            assert_eq!(ReductionKind::from_code(kind.code()), Some(kind));
        }
        for kind in [
            ReductionKind::ScaledSum,
            ReductionKind::User(Order::Any),
            ReductionKind::User(Order::Ranks),
        ] {
            assert_eq!(ReductionKind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(ReductionKind::from_code(0), None);
        assert!("mean".parse::<ReduceOp>().is_err());
    }

    #[test]
    fn a_factor_is_its_element() {
        let Reduction(How::Scaled(factor)) = Reduction::scaled_sum(half::f16::from_f32(0.5)) else {
            panic!("it scales");
        };
        assert_eq!(factor.dtype, DataType::F16);
        assert_eq!(factor.bytes[..2], 0x3800_u16.to_ne_bytes());
        assert_eq!(factor.bytes[2..], [0; 6]);
    }

    #[test]
    fn bits_are_for_integers() {
        assert!(ReduceOp::Xor.applies_to(DataType::I64));
        assert!(!ReduceOp::And.applies_to(DataType::F8E5M2));
        assert!(ReduceOp::Avg.applies_to(DataType::F32));
    }
}
