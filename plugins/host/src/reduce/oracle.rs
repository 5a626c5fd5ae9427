//! One element by the book: written apart from the loops, to hold them against.

use half::{bf16, f16};

use super::{Dtype, Reduction};

/// Every finite value of an 8-bit format, by its definition.
fn fp8_value(code: u8, exponent_bits: i32, mantissa_bits: i32) -> f64 {
    let bias = (1 << (exponent_bits - 1)) - 1;
    let exponent = i32::from(code & 0x7f) >> mantissa_bits;
    let mantissa = f64::from(i32::from(code) & ((1 << mantissa_bits) - 1));
    let scale = f64::from(1 << mantissa_bits);
    let magnitude = if exponent == 0 {
        mantissa / scale * f64::powi(2.0, 1 - bias)
    } else {
        (1.0 + mantissa / scale) * f64::powi(2.0, exponent - bias)
    };
    if code & 0x80 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

#[derive(Clone, Copy)]
struct Fp8 {
    exponent_bits: i32,
    mantissa_bits: i32,
    largest: u8,
    infinity: Option<u8>,
    nan: u8,
}
const E4M3: Fp8 = Fp8 {
    exponent_bits: 4,
    mantissa_bits: 3,
    largest: 0x7e,
    infinity: None,
    nan: 0x7f,
};
const E5M2: Fp8 = Fp8 {
    exponent_bits: 5,
    mantissa_bits: 2,
    largest: 0x7b,
    infinity: Some(0x7c),
    nan: 0x7e,
};

impl Fp8 {
    fn widen(self, code: u8) -> f32 {
        let magnitude = code & 0x7f;
        let sign = if code & 0x80 == 0 { 1.0 } else { -1.0 };
        if magnitude <= self.largest {
            fp8_value(code, self.exponent_bits, self.mantissa_bits) as f32
        } else if self.infinity == Some(magnitude) {
            sign * f32::INFINITY
        } else {
            f32::NAN
        }
    }

    /// The nearest code by search; a tie goes to the even one.
    fn narrow(self, value: f32) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        if value.is_nan() {
            return self.nan;
        }
        let value = f64::from(value.abs());
        let at = |code: u8| fp8_value(code, self.exponent_bits, self.mantissa_bits);
        let step = at(self.largest) - at(self.largest - 1);
        if let Some(infinity) = self.infinity
            && value >= at(self.largest) + step / 2.0
        {
            return sign | infinity;
        }
        let distance = |code: u8| (at(code) - value.min(at(self.largest))).abs();
        let best = (0..=self.largest)
            .min_by(|&a, &b| {
                distance(a)
                    .total_cmp(&distance(b))
                    .then_with(|| (a & 1).cmp(&(b & 1)))
            })
            .unwrap_or(0);
        sign | best
    }
}

fn float_op(reduction: Reduction, a: f64, b: f64) -> f64 {
    match reduction {
        Reduction::Sum => a + b,
        Reduction::Prod => a * b,
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        Reduction::Min if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        Reduction::Max if a == b => {
            if a.is_sign_negative() {
                b
            } else {
                a
            }
        }
        Reduction::Min => a.min(b),
        _ => a.max(b),
    }
}

fn f32_op(reduction: Reduction, a: f32, b: f32, divisor: u32) -> f32 {
    let result = match reduction {
        Reduction::Sum => a + b,
        Reduction::Prod => a * b,
        _ => float_op(reduction, a.into(), b.into()) as f32,
    };
    if divisor == 0 {
        result
    } else {
        result / divisor as f32
    }
}

fn integer_op(reduction: Reduction, a: i128, b: i128) -> i128 {
    match reduction {
        Reduction::Sum => a + b,
        Reduction::Prod => a.wrapping_mul(b),
        Reduction::Min => a.min(b),
        Reduction::Max => a.max(b),
        Reduction::And => a & b,
        Reduction::Or => a | b,
        Reduction::Xor => a ^ b,
    }
}

macro_rules! oracle_integer {
    ($t:ty, $reduction:expr, $a:expr, $b:expr, $divisor:expr) => {{
        let read = |bytes: &[u8]| <$t>::from_le_bytes(bytes.try_into().unwrap());
        let wide = integer_op($reduction, read($a).into(), read($b).into()) as $t;
        let divisor = if $divisor == 0 {
            1
        } else {
            i128::from($divisor)
        };
        ((i128::from(wide) / divisor) as $t).to_le_bytes().to_vec()
    }};
}

/// One element of the result.
pub(super) fn element(
    dtype: Dtype,
    reduction: Reduction,
    a: &[u8],
    b: &[u8],
    divisor: u32,
) -> Vec<u8> {
    let half = |bytes: &[u8]| u16::from_le_bytes(bytes.try_into().unwrap());
    let f32_of = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
    let f64_of = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap());
    match dtype {
        Dtype::I8 => oracle_integer!(i8, reduction, a, b, divisor),
        Dtype::U8 => oracle_integer!(u8, reduction, a, b, divisor),
        Dtype::I16 => oracle_integer!(i16, reduction, a, b, divisor),
        Dtype::U16 => oracle_integer!(u16, reduction, a, b, divisor),
        Dtype::I32 => oracle_integer!(i32, reduction, a, b, divisor),
        Dtype::U32 => oracle_integer!(u32, reduction, a, b, divisor),
        Dtype::I64 => oracle_integer!(i64, reduction, a, b, divisor),
        Dtype::U64 => oracle_integer!(u64, reduction, a, b, divisor),
        Dtype::F16 => {
            let wide = |bytes| f16::from_bits(half(bytes)).to_f32_const();
            let result = f32_op(reduction, wide(a), wide(b), divisor);
            f16::from_f32_const(result).to_bits().to_le_bytes().to_vec()
        }
        Dtype::Bf16 => {
            let wide = |bytes| bf16::from_bits(half(bytes)).to_f32_const();
            let result = f32_op(reduction, wide(a), wide(b), divisor);
            bf16::from_f32_const(result)
                .to_bits()
                .to_le_bytes()
                .to_vec()
        }
        Dtype::F32 => f32_op(reduction, f32_of(a), f32_of(b), divisor)
            .to_le_bytes()
            .to_vec(),
        Dtype::F64 => {
            let result = float_op(reduction, f64_of(a), f64_of(b));
            let result = if divisor == 0 {
                result
            } else {
                result / f64::from(divisor)
            };
            result.to_le_bytes().to_vec()
        }
        Dtype::F8e4m3 | Dtype::F8e5m2 => {
            let format = if dtype == Dtype::F8e4m3 { E4M3 } else { E5M2 };
            let result = f32_op(reduction, format.widen(a[0]), format.widen(b[0]), divisor);
            vec![format.narrow(result)]
        }
    }
}

/// The bits, with all NaNs made one.
pub(super) fn class(dtype: Dtype, bytes: &[u8]) -> Vec<u8> {
    let half = || u16::from_le_bytes(bytes.try_into().unwrap());
    let nan = match dtype {
        Dtype::F16 => f16::from_bits(half()).is_nan(),
        Dtype::Bf16 => bf16::from_bits(half()).is_nan(),
        Dtype::F32 => f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        Dtype::F64 => f64::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        Dtype::F8e4m3 => E4M3.widen(bytes[0]).is_nan(),
        Dtype::F8e5m2 => E5M2.widen(bytes[0]).is_nan(),
        _ => false,
    };
    if nan { b"NaN".to_vec() } else { bytes.to_vec() }
}
