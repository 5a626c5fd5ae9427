//! Floats narrower than 32 bits: exact widening to `f32`, narrowing to nearest, ties to even.
//!
//! Everything is branch-free, so that loops over it vectorise. No step relies on subnormal `f32`
//! operands, so the caller's flush-to-zero mode does not change a result.

/// An IEEE-like format: a sign, `EXPONENT` bits, `MANTISSA` bits.
pub(super) trait Format {
    const EXPONENT: u32;
    const MANTISSA: u32;
    /// The largest magnitude a finite value rounds to: infinity, or the largest finite value where
    /// the format saturates.
    const OVERFLOW: u32;
    /// Magnitudes from here on are not finite. One past the last code if all are.
    const SPECIAL: u32;
    /// A quiet NaN.
    const NAN: u32;
}

/// IEEE binary16.
pub(super) struct Half;
impl Format for Half {
    const EXPONENT: u32 = 5;
    const MANTISSA: u32 = 10;
    const OVERFLOW: u32 = 0x7c00;
    const SPECIAL: u32 = 0x7c00;
    const NAN: u32 = 0x7e00;
}

/// OCP E5M2.
pub(super) struct E5m2Format;
impl Format for E5m2Format {
    const EXPONENT: u32 = 5;
    const MANTISSA: u32 = 2;
    const OVERFLOW: u32 = 0x7c;
    const SPECIAL: u32 = 0x7c;
    const NAN: u32 = 0x7e;
}

/// OCP E4M3FN: no infinity, one NaN code, saturating.
pub(super) struct E4m3Format;
impl Format for E4m3Format {
    const EXPONENT: u32 = 4;
    const MANTISSA: u32 = 3;
    const OVERFLOW: u32 = 0x7e;
    const SPECIAL: u32 = 0x7f;
    const NAN: u32 = 0x7f;
}

const F32_MANTISSA: u32 = 23;
const F32_BIAS: u32 = 127;
const F32_INFINITY: u32 = 0x7f80_0000;
const F32_NAN: u32 = 0x7fc0_0000;

const fn bias<F: Format>() -> u32 {
    (1 << (F::EXPONENT - 1)) - 1
}

/// A code as `f32`, exact.
#[inline(always)]
pub(super) fn widen<F: Format>(code: u32) -> f32 {
    let shift = F32_MANTISSA - F::MANTISSA;
    let sign_bit = F::EXPONENT + F::MANTISSA;
    let magnitude = code & ((1 << sign_bit) - 1);
    let sign = (code >> sign_bit) << 31;
    let rebias = (F32_BIAS - bias::<F>()) << F32_MANTISSA;
    let normal = (magnitude << shift) + rebias;
    // A subnormal is a fixed-point number: put it below the leading one of a float whose last
    // place is the format's smallest step, and take that one away.
    let one = rebias + (1 << F32_MANTISSA);
    let subnormal = (f32::from_bits((magnitude << shift) | one) - f32::from_bits(one)).to_bits();
    let finite = if magnitude < (1 << F::MANTISSA) {
        subnormal
    } else {
        normal
    };
    let special = if F::SPECIAL == F::NAN || magnitude > F::SPECIAL {
        F32_NAN
    } else {
        F32_INFINITY
    };
    f32::from_bits(
        sign | if magnitude >= F::SPECIAL {
            special
        } else {
            finite
        },
    )
}

/// The nearest code to an `f32`, ties to even.
#[inline(always)]
pub(super) fn narrow<F: Format>(value: f32) -> u32 {
    let shift = F32_MANTISSA - F::MANTISSA;
    let bits = value.to_bits();
    let sign = (bits >> 31) << (F::EXPONENT + F::MANTISSA);
    let magnitude = bits & 0x7fff_ffff;
    let rebias = (F32_BIAS - bias::<F>()) << F32_MANTISSA;
    // Adding a float whose last place is the format's smallest step rounds a subnormal.
    let step = (F32_BIAS - bias::<F>() + shift + 1) << F32_MANTISSA;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(step))
        .to_bits()
        .wrapping_sub(step);
    let odd = (magnitude >> shift) & 1;
    let rounded = magnitude
        .wrapping_sub(rebias)
        .wrapping_add((1 << (shift - 1)) - 1 + odd)
        >> shift;
    let smallest_normal = rebias + (1 << F32_MANTISSA);
    let finite = if magnitude < smallest_normal {
        subnormal
    } else {
        rounded.min(F::OVERFLOW)
    };
    sign | if magnitude > F32_INFINITY {
        F::NAN
    } else {
        finite
    }
}

/// bfloat16 as `f32`, exact.
#[inline(always)]
pub(super) fn widen_bf16(code: u16) -> f32 {
    f32::from_bits(u32::from(code) << 16)
}

/// The nearest bfloat16, ties to even.
#[inline(always)]
pub(super) fn narrow_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
    let quiet = bits | 0x0040_0000;
    ((if value.is_nan() { quiet } else { rounded }) >> 16) as u16
}
