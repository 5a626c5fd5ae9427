//! Every type, reduction and instruction set against a scalar oracle written apart from the loops.
#![allow(unsafe_code, reason = "kernels take addresses")]

use half::{bf16, f16};

use super::{Dtype, Kernel, Reduction};
use crate::cpu::Isa;

/// A small generator: tests choose their inputs by seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 24) as u8).collect()
    }
}

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

/// One element by the book.
fn oracle(dtype: Dtype, reduction: Reduction, a: &[u8], b: &[u8], divisor: u32) -> Vec<u8> {
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
fn class(dtype: Dtype, bytes: &[u8]) -> Vec<u8> {
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

/// Values at the edges of each type, mixed into the random ones.
fn edges(dtype: Dtype) -> Vec<Vec<u8>> {
    let f32s = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-45,
        -1e-45,
        1e-40,
    ];
    match dtype {
        Dtype::F16 => f32s
            .iter()
            .map(|&v| f16::from_f32_const(v).to_bits())
            .chain([0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff])
            .map(|bits| bits.to_le_bytes().to_vec())
            .collect(),
        Dtype::Bf16 => f32s
            .iter()
            .map(|&v| bf16::from_f32_const(v).to_bits().to_le_bytes().to_vec())
            .collect(),
        Dtype::F32 => f32s.iter().map(|v| v.to_le_bytes().to_vec()).collect(),
        Dtype::F64 => f32s
            .iter()
            .map(|&v| f64::from(v))
            .chain([f64::MAX, 5e-324])
            .map(|v| v.to_le_bytes().to_vec())
            .collect(),
        _ => {
            let n = dtype.bytes();
            let mut low = vec![0; n];
            low[n - 1] = 0x80;
            let mut high = vec![0xff; n];
            high[n - 1] = 0x7f;
            vec![vec![0; n], vec![0xff; n], low, high]
        }
    }
}

fn inputs(random: &mut Random, dtype: Dtype, elements: usize) -> Vec<u8> {
    let edges = edges(dtype);
    let mut bytes = random.bytes(elements * dtype.bytes());
    for element in bytes.chunks_exact_mut(dtype.bytes()) {
        if random.next().is_multiple_of(4) {
            element.copy_from_slice(&edges[random.next() as usize % edges.len()]);
        }
    }
    bytes
}

fn combinations() -> impl Iterator<Item = (Isa, Dtype, Reduction)> {
    Isa::ALL
        .iter()
        .filter(|isa| isa.available())
        .flat_map(|&isa| {
            Dtype::ALL.iter().flat_map(move |&dtype| {
                Reduction::ALL
                    .iter()
                    .filter(move |reduction| reduction.applies_to(dtype))
                    .map(move |&reduction| (isa, dtype, reduction))
            })
        })
}

/// Runs a kernel on operands `shift` bytes off alignment and checks every element.
fn check(
    (isa, dtype, reduction): (Isa, Dtype, Reduction),
    [a, b]: [&[u8]; 2],
    shift: usize,
    divisor: u32,
    streaming: bool,
) {
    let kernel = Kernel::new(isa, dtype, reduction).expect("the combination is defined");
    let size = dtype.bytes();
    let elements = a.len() / size;
    let expected: Vec<_> = a
        .chunks_exact(size)
        .zip(b.chunks_exact(size))
        .map(|(a, b)| class(dtype, &oracle(dtype, reduction, a, b, divisor)))
        .collect();
    let place = |bytes: &[u8]| {
        let mut room = vec![0xa5_u8; bytes.len() + 192];
        let start = room.as_ptr().align_offset(64) + shift;
        room[start..start + bytes.len()].copy_from_slice(bytes);
        (room, start)
    };
    for alias in ["distinct", "dst is a", "dst is b"] {
        let (mut a_room, a_start) = place(a);
        let (mut b_room, b_start) = place(b);
        let (mut d_room, d_start) = place(&vec![0; a.len()]);
        let a_ptr = a_room[a_start..].as_mut_ptr();
        let b_ptr = b_room[b_start..].as_mut_ptr();
        let dst = match alias {
            "distinct" => d_room[d_start..].as_mut_ptr(),
            "dst is a" => a_ptr,
            _ => b_ptr,
        };
        // SAFETY: each pointer has room for the elements; `dst` is an operand or distinct.
        unsafe { kernel.run(dst, a_ptr, b_ptr, elements, divisor, streaming) };
        let (room, start) = match alias {
            "distinct" => (&d_room, d_start),
            "dst is a" => (&a_room, a_start),
            _ => (&b_room, b_start),
        };
        for (i, got) in room[start..start + a.len()].chunks_exact(size).enumerate() {
            assert_eq!(
                class(dtype, got),
                expected[i],
                "{isa:?} {dtype:?} {reduction:?} {alias} shift {shift} divisor {divisor} element {i}: \
                 {:02x?} and {:02x?}",
                &a[i * size..(i + 1) * size],
                &b[i * size..(i + 1) * size],
            );
        }
        assert!(
            room[..start]
                .iter()
                .chain(&room[start + a.len()..])
                .all(|&byte| byte == 0xa5),
            "{isa:?} {dtype:?} {reduction:?}: wrote beyond its elements"
        );
    }
}

#[test]
fn every_combination_matches_the_oracle() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for combination in combinations() {
        for elements in [0, 1, 7, 63, 130] {
            let a = inputs(&mut random, combination.1, elements);
            let b = inputs(&mut random, combination.1, elements);
            for shift in [0, 1, 32] {
                check(combination, [&a, &b], shift, 0, false);
            }
        }
    }
}

#[test]
fn blocks_divide_and_stream() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for combination in combinations() {
        // Several blocks and a rest that fills no line.
        let elements = 2 * super::run::BLOCK / combination.1.bytes() + 37;
        let a = inputs(&mut random, combination.1, elements);
        let b = inputs(&mut random, combination.1, elements);
        check(combination, [&a, &b], 0, 0, true);
        check(combination, [&a, &b], 3, 7, true);
        check(combination, [&a, &b], 0, 300, true);
    }
}

/// Widening is exact and narrowing of every code is the identity: all codes, all instruction sets.
#[test]
fn every_code_of_the_small_floats_survives() {
    for &isa in Isa::ALL.iter().filter(|isa| isa.available()) {
        for dtype in [Dtype::F16, Dtype::Bf16, Dtype::F8e4m3, Dtype::F8e5m2] {
            let size = dtype.bytes();
            let codes: Vec<u8> = (0..1_u32 << (8 * size))
                .flat_map(|code| code.to_le_bytes().into_iter().take(size))
                .collect();
            check((isa, dtype, Reduction::Min), [&codes, &codes], 0, 0, false);
        }
    }
}

/// Sums of all pairs of neighbours and of far pairs round as the formats say.
#[test]
fn all_pairs_of_fp8_round_right() {
    for dtype in [Dtype::F8e4m3, Dtype::F8e5m2] {
        let a: Vec<u8> = (0..=255).flat_map(|code| [code; 256]).collect();
        let b: Vec<u8> = (0..256).flat_map(|_| 0..=255).collect();
        for reduction in [Reduction::Sum, Reduction::Prod] {
            check((Isa::best(), dtype, reduction), [&a, &b], 0, 0, false);
        }
    }
}

#[test]
fn bitwise_reductions_are_for_integers() {
    for dtype in [
        Dtype::F16,
        Dtype::Bf16,
        Dtype::F32,
        Dtype::F64,
        Dtype::F8e4m3,
        Dtype::F8e5m2,
    ] {
        assert!(Kernel::new(Isa::Baseline, dtype, Reduction::Xor).is_none());
        assert!(!Reduction::Xor.applies_to(dtype));
    }
}
