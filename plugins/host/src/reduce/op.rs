//! The reductions, each commutative to the bit (NaNs as a class).

/// One reduction on one type of computation.
pub(super) trait Op<T> {
    fn apply(a: T, b: T) -> T;
}

pub(super) struct Sum;
pub(super) struct Prod;
pub(super) struct Min;
pub(super) struct Max;
pub(super) struct And;
pub(super) struct Or;
pub(super) struct Xor;

macro_rules! op {
    ($($op:ident for $($t:ty),+: |$a:ident, $b:ident| $result:expr;)+) => {$($(
        impl Op<$t> for $op {
            #[inline(always)]
            fn apply($a: $t, $b: $t) -> $t {
                $result
            }
        }
    )+)+};
}
op! {
    Sum for u8, u16, u32, u64: |a, b| a.wrapping_add(b);
    Prod for u8, u16, u32, u64: |a, b| a.wrapping_mul(b);
    Min for i8, u8, i16, u16, i32, u32, i64, u64: |a, b| a.min(b);
    Max for i8, u8, i16, u16, i32, u32, i64, u64: |a, b| a.max(b);
    And for u8: |a, b| a & b;
    Or for u8: |a, b| a | b;
    Xor for u8: |a, b| a ^ b;
    Sum for f32, f64: |a, b| a + b;
    Prod for f32, f64: |a, b| a * b;
}

// NaN if either is, and -0 < +0, so that the order of the operands does not matter: equal floats
// differ in the sign of zero at most, where `or` gives the smaller and `and` the larger.
macro_rules! float_extremes {
    ($($t:ident),+) => {$(
        impl Op<$t> for Min {
            #[inline(always)]
            fn apply(a: $t, b: $t) -> $t {
                let smaller = if a < b { a } else { b };
                let ordered = if a == b { $t::from_bits(a.to_bits() | b.to_bits()) } else { smaller };
                if a.is_nan() | b.is_nan() { $t::NAN } else { ordered }
            }
        }
        impl Op<$t> for Max {
            #[inline(always)]
            fn apply(a: $t, b: $t) -> $t {
                let larger = if a > b { a } else { b };
                let ordered = if a == b { $t::from_bits(a.to_bits() & b.to_bits()) } else { larger };
                if a.is_nan() | b.is_nan() { $t::NAN } else { ordered }
            }
        }
    )+};
}
float_extremes!(f32, f64);
