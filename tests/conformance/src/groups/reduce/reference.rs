//! What a reduction must give: one element at a time, plainly.

use half::{bf16, f16};
use unisono_abi::{dtype, reduction};

/// What is right for one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// These bits.
    Bits(u64),
    /// Any NaN.
    Nan,
    /// Zero of either sign: which of two zeros is the lesser, nobody says.
    Zero,
}

/// Bytes of an element.
pub(super) fn size(dtype: u16) -> usize {
    match dtype {
        dtype::I8 | dtype::U8 | dtype::F8E4M3FN | dtype::F8E5M2 => 1,
        dtype::I16 | dtype::U16 | dtype::F16 | dtype::BF16 => 2,
        dtype::I32 | dtype::U32 | dtype::F32 => 4,
        _ => 8,
    }
}

/// `a op b`, divided by `divisor` if that is not 0.
pub(super) fn reduce(dtype: u16, op: u16, a: u64, b: u64, divisor: u32) -> Wanted {
    match dtype {
        dtype::F64 => {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            let r = float(op, a, b);
            let r = if divisor == 0 {
                r
            } else {
                r / f64::from(divisor)
            };
            wanted(dtype, op, r.is_nan(), r == 0.0, r.to_bits())
        }
        dtype::F16 | dtype::BF16 | dtype::F32 | dtype::F8E4M3FN | dtype::F8E5M2 => {
            let r = float(op, widen(dtype, a), widen(dtype, b));
            let r = if divisor == 0 { r } else { r / divisor as f32 };
            wanted(dtype, op, r.is_nan(), r == 0.0, narrow(dtype, r))
        }
        _ => Wanted::Bits(integer(dtype, op, a, b, divisor)),
    }
}

fn wanted(dtype: u16, op: u16, is_nan: bool, is_zero: bool, bits: u64) -> Wanted {
    debug_assert!(size(dtype) == 8 || bits >> (8 * size(dtype)) == 0);
    match op {
        _ if is_nan => Wanted::Nan,
        reduction::MIN | reduction::MAX if is_zero => Wanted::Zero,
        _ => Wanted::Bits(bits),
    }
}

/// Whether the bits found are right.
pub(super) fn is_right(dtype: u16, wanted: Wanted, found: u64) -> bool {
    match wanted {
        Wanted::Bits(bits) => bits == found,
        Wanted::Nan => match dtype {
            dtype::F64 => f64::from_bits(found).is_nan(),
            _ => widen(dtype, found).is_nan(),
        },
        Wanted::Zero => found == 0 || found == 1 << (8 * size(dtype) - 1),
    }
}

fn float<T>(op: u16, a: T, b: T) -> T
where
    T: Copy + PartialOrd + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
{
    match op {
        reduction::SUM => a + b,
        reduction::PROD => a * b,
        // A NaN compares with nothing; a sum with one is NaN.
        _ if a.partial_cmp(&b).is_none() => a + b,
        reduction::MIN if a < b => a,
        reduction::MAX if a > b => a,
        _ => b,
    }
}

fn integer(dtype: u16, op: u16, a: u64, b: u64, divisor: u32) -> u64 {
    let bits = 8 * size(dtype) as u32;
    let signed = matches!(dtype, dtype::I8 | dtype::I16 | dtype::I32 | dtype::I64);
    let value = |raw: u64| -> i128 {
        let raw = i128::from(raw) & ((1 << bits) - 1);
        if signed && raw >> (bits - 1) & 1 == 1 {
            raw - (1 << bits)
        } else {
            raw
        }
    };
    let (a, b) = (value(a), value(b));
    let r = match op {
        reduction::SUM => a + b,
        reduction::PROD => a.wrapping_mul(b),
        reduction::MIN => a.min(b),
        reduction::MAX => a.max(b),
        reduction::AND => a & b,
        reduction::OR => a | b,
        _ => a ^ b,
    };
    // Wraps to the type before it is divided.
    let r = value((r & i128::from(u64::MAX)) as u64);
    let r = if divisor == 0 {
        r
    } else {
        r / i128::from(divisor)
    };
    (r & ((1 << bits) - 1)) as u64
}

/// A float of at most 32 bits, exactly.
fn widen(dtype: u16, bits: u64) -> f32 {
    match dtype {
        dtype::F16 => f16::from_bits(bits as u16).to_f32(),
        dtype::BF16 => bf16::from_bits(bits as u16).to_f32(),
        dtype::F8E4M3FN => small(bits as u32, 3, 7),
        dtype::F8E5M2 => small(bits as u32, 2, 15),
        _ => f32::from_bits(bits as u32),
    }
}

fn narrow(dtype: u16, value: f32) -> u64 {
    match dtype {
        dtype::F16 => f16::from_f32(value).to_bits().into(),
        dtype::BF16 => bf16::from_f32(value).to_bits().into(),
        dtype::F8E4M3FN | dtype::F8E5M2 => nearest(dtype, value).into(),
        _ => value.to_bits().into(),
    }
}

/// An 8-bit float with this many bits of mantissa and this bias.
fn small(code: u32, mantissa: u32, bias: i32) -> f32 {
    let magnitude = code & 0x7f;
    let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
    let infinity = if mantissa == 2 { 0x7c } else { 0x80 };
    let nan = if mantissa == 2 {
        magnitude > 0x7c
    } else {
        magnitude == 0x7f
    };
    if nan {
        return f32::NAN;
    }
    if magnitude == infinity {
        return sign * f32::INFINITY;
    }
    let (exponent, fraction) = (magnitude >> mantissa, magnitude & ((1 << mantissa) - 1));
    let step = 2_f32.powi(exponent.max(1) as i32 - bias - mantissa as i32);
    let whole = if exponent == 0 {
        fraction
    } else {
        fraction + (1 << mantissa)
    };
    sign * whole as f32 * step
}

/// The nearest 8-bit float, ties to the even code.
fn nearest(dtype: u16, value: f32) -> u8 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    let (last, beyond) = match dtype {
        dtype::F8E4M3FN => (0x7e_u8, None),         // saturates at 448
        _ => (0x7b, Some((61_440.0_f64, 0x7c_u8))), // half a step past 57344
    };
    let magnitude = f64::from(value.abs());
    if value.is_nan() {
        return 0x7f;
    }
    if let Some((limit, infinity)) = beyond
        && magnitude >= limit
    {
        return sign | infinity;
    }
    // They grow with their codes: the last that is no larger, and the next.
    let of = |code: u8| f64::from(widen(dtype, code.into()));
    let (mut low, mut high) = (0, last);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if of(middle) <= magnitude {
            low = middle;
        } else {
            high = middle;
        }
    }
    let (below, above) = (magnitude - of(low), of(high) - magnitude);
    let takes_low = below < above || below == above && low % 2 == 0;
    sign | if takes_low { low } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bit_floats_are_what_the_ocp_says() {
        assert_eq!(widen(dtype::F8E4M3FN, 0x7e), 448.0);
        assert_eq!(widen(dtype::F8E4M3FN, 0x01), 2_f32.powi(-9));
        assert_eq!(widen(dtype::F8E5M2, 0x7b), 57_344.0);
        assert_eq!(widen(dtype::F8E5M2, 0x01), 2_f32.powi(-16));
        assert!(widen(dtype::F8E5M2, 0xfc).is_infinite());
        for code in 0..=0xff_u8 {
            for dtype in [dtype::F8E4M3FN, dtype::F8E5M2] {
                let value = widen(dtype, code.into());
                let same = value.is_nan() || nearest(dtype, value) == code;
                assert!(same, "{code:#x} of type {dtype}");
            }
        }
        assert_eq!(nearest(dtype::F8E4M3FN, 1e9), 0x7e);
        assert_eq!(nearest(dtype::F8E4M3FN, f32::NEG_INFINITY), 0xfe);
        assert_eq!(nearest(dtype::F8E5M2, 61_439.9), 0x7b);
        assert_eq!(nearest(dtype::F8E5M2, 61_440.0), 0x7c);
        // Ties, down and up to the even code.
        assert_eq!(nearest(dtype::F8E4M3FN, 17.0), 0x58);
        assert_eq!(nearest(dtype::F8E4M3FN, 19.0), 0x5a);
        assert_eq!(nearest(dtype::F8E4M3FN, 2_f32.powi(-10)), 0);
    }

    #[test]
    fn integers_wrap_and_divide_toward_zero() {
        let get =
            |dtype, op, a: i64, b: i64, divisor| reduce(dtype, op, a as u64, b as u64, divisor);
        assert_eq!(
            get(dtype::I8, reduction::SUM, 127, 1, 0),
            Wanted::Bits(0x80)
        );
        assert_eq!(
            get(dtype::I8, reduction::SUM, -4, -3, 2),
            Wanted::Bits(0xfd)
        );
        assert_eq!(get(dtype::U64, reduction::SUM, -1, 1, 0), Wanted::Bits(0));
        assert_eq!(get(dtype::U64, reduction::PROD, -1, -1, 0), Wanted::Bits(1));
        assert_eq!(
            get(dtype::I64, reduction::PROD, i64::MIN, -1, 0),
            Wanted::Bits(1 << 63)
        );
        assert_eq!(
            get(dtype::U8, reduction::MAX, 0xff, 1, 0),
            Wanted::Bits(0xff)
        );
        assert_eq!(get(dtype::I8, reduction::MAX, 0xff, 1, 0), Wanted::Bits(1));
    }

    #[test]
    fn a_nan_wins_and_zeros_are_alike() {
        let nan = u64::from(f32::NAN.to_bits());
        let one = u64::from(1_f32.to_bits());
        for op in [reduction::MIN, reduction::MAX, reduction::SUM] {
            assert_eq!(reduce(dtype::F32, op, nan, one, 0), Wanted::Nan);
            assert_eq!(reduce(dtype::F32, op, one, nan, 0), Wanted::Nan);
        }
        let zeros = reduce(dtype::F32, reduction::MIN, 0, 1 << 31, 0);
        assert_eq!(zeros, Wanted::Zero);
        assert!(is_right(dtype::F32, zeros, 1 << 31) && !is_right(dtype::F32, zeros, one));
    }
}
