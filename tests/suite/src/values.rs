//! Test data of every type, with values whose sums and products are exact, so that every order of
//! reduction gives the same bits.

use half::{bf16, f16};
use unisono::{DataType, Element, F8E4M3, F8E5M2, Order, ReduceOp, Reduction, UserReduction};

/// A reduction to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// One with a name.
    Op(ReduceOp),
    /// A sum, every contribution multiplied by its rank's factor.
    Scaled,
    /// A function of the user's that commutes: the larger of two.
    Larger,
    /// One that does not: the first that is not zero.
    First,
}

impl Fold {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = [Self::Scaled, Self::Larger, Self::First];
        ReduceOp::ALL.into_iter().map(Self::Op).chain(others)
    }

    /// Whether it is defined on a type.
    #[must_use]
    pub fn applies_to(self, dtype: DataType) -> bool {
        !matches!(self, Self::Op(op) if !op.applies_to(dtype))
    }

    /// What the library takes, on this rank.
    #[must_use]
    pub fn reduction<T: Value>(self, rank: u32) -> Reduction {
        match self {
            Self::Op(op) => op.into(),
            Self::Scaled => Reduction::scaled_sum(factor::<T>(rank)),
            Self::Larger => {
                UserReduction::new(Order::Any, |a: T, b: T| if a < b { b } else { a }).into()
            }
            Self::First => {
                let zero = T::of(0);
                UserReduction::new(
                    Order::Ranks,
                    move |a: T, b: T| if a == zero { b } else { a },
                )
                .into()
            }
        }
    }
}

impl From<ReduceOp> for Fold {
    fn from(op: ReduceOp) -> Self {
        Self::Op(op)
    }
}

/// What a rank's contributions are multiplied by.
fn factor<T: Value>(rank: u32) -> T {
    T::of(1 + i64::from(rank % 2))
}

/// An element that tests can make and compare.
pub trait Value: Element + PartialEq + PartialOrd + std::fmt::Debug + Default {
    /// Whole numbers up to this are exact.
    const EXACT: i64;
    /// From a small whole number.
    fn of(number: i64) -> Self;
    /// `self op other`, as the library defines it.
    fn fold(self, other: Self, op: ReduceOp) -> Self;
    /// Divided by a number of ranks, for avg.
    fn over(self, ranks: u32) -> Self;
}

macro_rules! integers {
    ($($t:ty),+) => {$(
        impl Value for $t {
            const EXACT: i64 = if size_of::<$t>() == 1 { 127 } else { 1 << 14 };
            fn of(number: i64) -> Self { number as Self }
            fn fold(self, other: Self, op: ReduceOp) -> Self {
                match op {
                    ReduceOp::Sum | ReduceOp::Avg => self.wrapping_add(other),
                    ReduceOp::Prod => self.wrapping_mul(other),
                    ReduceOp::Min => self.min(other),
                    ReduceOp::Max => self.max(other),
                    ReduceOp::And => self & other,
                    ReduceOp::Or => self | other,
                    ReduceOp::Xor => self ^ other,
                }
            }
            fn over(self, ranks: u32) -> Self { ((self as i128) / i128::from(ranks)) as Self }
        }
    )+};
}
integers!(i8, u8, i16, u16, i32, u32, i64, u64);

macro_rules! floats {
    ($($t:ty: $wide:ty, $exact:literal, $from:expr, $to:expr);+ $(;)?) => {$(
        impl Value for $t {
            const EXACT: i64 = $exact;
            fn of(number: i64) -> Self { $from(number as $wide) }
            fn fold(self, other: Self, op: ReduceOp) -> Self {
                let (a, b): ($wide, $wide) = ($to(self), $to(other));
                $from(match op {
                    ReduceOp::Prod => a * b,
                    ReduceOp::Min => a.min(b),
                    ReduceOp::Max => a.max(b),
                    _ => a + b,
                })
            }
            fn over(self, ranks: u32) -> Self { $from($to(self) / ranks as $wide) }
        }
    )+};
}
floats! {
    f32: f32, 16_384, |x| x, |x| x;
    f64: f64, 16_384, |x| x, |x| x;
    f16: f32, 2048, f16::from_f32, f16::to_f32;
    bf16: f32, 256, bf16::from_f32, bf16::to_f32;
    F8E4M3: f32, 16, F8E4M3::from_f32, F8E4M3::to_f32;
    F8E5M2: f32, 8, F8E5M2::from_f32, F8E5M2::to_f32;
}

/// The largest number that [`input`] gives.
const MOST: i64 = 3;

/// The element at `index` that `rank` of `ranks` contributes: small, so that sums are exact in
/// every type, also when doubled, and products too (ones and twos, few of them).
pub fn input<T: Value>(ranks: u32, rank: u32, index: usize, salt: u64, fold: Option<Fold>) -> T {
    let spread = (index as u64)
        .wrapping_mul(31)
        .wrapping_add(u64::from(rank) * 7)
        .wrapping_add(salt);
    if fold == Some(Fold::Op(ReduceOp::Prod)) {
        return T::of(1 + i64::from(rank < 3 && spread.is_multiple_of(3)));
    }
    // In narrow types only some ranks give more than zero, others at other places.
    let turn = (u64::from(rank) + index as u64) % u64::from(ranks);
    let most = if turn < (T::EXACT / (2 * MOST)) as u64 {
        MOST
    } else {
        0
    };
    T::of((spread % 4) as i64).min_of(T::of(most))
}

/// The lesser, for values that compare.
trait MinOf: PartialOrd + Sized {
    fn min_of(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
}
impl<T: PartialOrd> MinOf for T {}

/// What a reduction over `ranks` gives at `index`, folded in rank order.
pub fn reduced<T: Value>(ranks: u32, index: usize, salt: u64, fold: Fold) -> T {
    let of = |rank| input::<T>(ranks, rank, index, salt, Some(fold));
    let combine = |a: T, b: T, op| a.fold(b, op);
    match fold {
        Fold::Op(op) => {
            let all = (1..ranks).fold(of(0), |all, rank| combine(all, of(rank), op));
            if op == ReduceOp::Avg && ranks > 1 {
                all.over(ranks)
            } else {
                all
            }
        }
        Fold::Scaled => {
            let of = |rank| combine(of(rank), factor(rank), ReduceOp::Prod);
            (1..ranks).fold(of(0), |all, rank| combine(all, of(rank), ReduceOp::Sum))
        }
        Fold::Larger => (1..ranks).fold(of(0), |all, rank| combine(all, of(rank), ReduceOp::Max)),
        Fold::First => {
            let first = (0..ranks).map(of).find(|value| *value != T::of(0));
            first.unwrap_or(T::of(0))
        }
    }
}
