//! Inputs whose results are known exactly, in every type and for every reduction.
//!
//! A rank's input repeats with a prime period, so that data that ends up at a wrong place is wrong.
//! Values are whole numbers so small that sums are exact in the type; products are of few factors.

use half::{bf16, f16};
use unisono::{DataType, F8E4M3, F8E5M2, ReduceOp};

/// Elements after which inputs repeat: a prime, so that no block or page is a multiple of it.
const PERIOD: u64 = 4093;

/// A repeating sequence of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    bytes: Vec<u8>,
    element: usize,
}

/// The input of one rank.
pub fn input(dtype: DataType, reduction: ReduceOp, ranks: u32, rank: u32) -> Pattern {
    Pattern::of(dtype, |at| {
        Number::Whole(value(dtype, reduction, ranks, rank, at))
    })
}

/// The reduction of all ranks' inputs.
pub fn reduced(dtype: DataType, reduction: ReduceOp, ranks: u32) -> Pattern {
    let all = |at| (0..ranks).map(move |rank| value(dtype, reduction, ranks, rank, at));
    Pattern::of(dtype, |at| match reduction {
        ReduceOp::Sum => Number::Whole(all(at).sum()),
        ReduceOp::Prod => Number::Whole(all(at).product()),
        ReduceOp::Min => Number::Whole(all(at).min().unwrap_or(0)),
        ReduceOp::Max => Number::Whole(all(at).max().unwrap_or(0)),
        ReduceOp::Avg => Number::Share(all(at).sum(), ranks),
        ReduceOp::And => Number::Whole(all(at).fold(-1, |a, b| a & b)),
        ReduceOp::Or => Number::Whole(all(at).fold(0, |a, b| a | b)),
        ReduceOp::Xor => Number::Whole(all(at).fold(0, |a, b| a ^ b)),
    })
}

impl Pattern {
    fn of(dtype: DataType, number: impl Fn(u64) -> Number) -> Self {
        let element = dtype.size();
        let mut bytes = Vec::with_capacity(PERIOD as usize * element);
        for at in 0..PERIOD {
            number(at).encode(dtype, &mut bytes);
        }
        Self { bytes, element }
    }

    /// Writes the elements from number `first` on.
    pub fn fill(&self, out: &mut [u8], first: u64) {
        self.pieces(out.len(), first, |at, piece| {
            out[at..at + piece.len()].copy_from_slice(piece);
        });
    }

    /// How many elements are not those from number `first` on.
    pub fn wrong(&self, data: &[u8], first: u64) -> u64 {
        let mut wrong = 0;
        self.pieces(data.len(), first, |at, piece| {
            let data = &data[at..at + piece.len()];
            if data != piece {
                let pairs = data.chunks(self.element).zip(piece.chunks(self.element));
                wrong += pairs.filter(|(is, should)| is != should).count() as u64;
            }
        });
        wrong
    }

    fn pieces(&self, len: usize, first: u64, mut piece: impl FnMut(usize, &[u8])) {
        let mut start = (first % PERIOD) as usize * self.element;
        let mut at = 0;
        while at < len {
            let take = (self.bytes.len() - start).min(len - at);
            piece(at, &self.bytes[start..start + take]);
            (at, start) = (at + take, 0);
        }
    }
}

/// The value of one rank's element.
fn value(dtype: DataType, reduction: ReduceOp, ranks: u32, rank: u32, at: u64) -> i64 {
    let exact: i64 = match dtype {
        DataType::I8 => 127,
        DataType::U8 => 255,
        DataType::F8E5M2 => 8,
        DataType::F8E4M3 => 16,
        DataType::Bf16 => 256,
        DataType::F16 => 2048,
        DataType::I16 | DataType::U16 => 32_767,
        _ => 1 << 20,
    };
    let owner = |salt| (hash(at, salt) % u64::from(ranks)) as u32;
    let most = match reduction {
        // Two ranks have a factor, so that no type is left.
        ReduceOp::Prod => {
            return match rank {
                r if r == owner(1) => 2,
                r if r == owner(2) => 3,
                _ => 1,
            };
        }
        ReduceOp::Min | ReduceOp::Max | ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => exact,
        ReduceOp::Sum | ReduceOp::Avg => match exact / i64::from(ranks) {
            // One rank has more than nothing.
            0 => return i64::from(rank == owner(1)),
            each => each,
        },
    };
    (hash(at, u64::from(rank) + 3) % (most as u64 + 1)) as i64
}

/// SplitMix64's finaliser (Steele, Lea and Flood, 2014).
fn hash(at: u64, salt: u64) -> u64 {
    let mut x = at
        .wrapping_add(salt << 32)
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A number before it has a type.
enum Number {
    Whole(i64),
    /// A sum and by what it is divided.
    Share(i64, u32),
}

impl Number {
    /// As the type has it: integers wrap, and their shares are rounded toward zero; shares of floats
    /// are computed in f32, in f64 for f64.
    fn encode(&self, dtype: DataType, out: &mut Vec<u8>) {
        macro_rules! integer {
            ($ty:ty) => {{
                let value = match *self {
                    Self::Whole(value) => value as $ty,
                    Self::Share(sum, ranks) => ((sum as $ty) as i128 / i128::from(ranks)) as $ty,
                };
                out.extend_from_slice(&value.to_ne_bytes())
            }};
        }
        let single = match *self {
            Self::Whole(value) => value as f32,
            Self::Share(sum, ranks) => sum as f32 / ranks as f32,
        };
        match dtype {
            DataType::I8 => integer!(i8),
            DataType::U8 => integer!(u8),
            DataType::I16 => integer!(i16),
            DataType::U16 => integer!(u16),
            DataType::I32 => integer!(i32),
            DataType::U32 => integer!(u32),
            DataType::I64 => integer!(i64),
            DataType::U64 => integer!(u64),
            DataType::F16 => out.extend_from_slice(&f16::from_f32(single).to_ne_bytes()),
            DataType::Bf16 => out.extend_from_slice(&bf16::from_f32(single).to_ne_bytes()),
            DataType::F32 => out.extend_from_slice(&single.to_ne_bytes()),
            DataType::F8E4M3 => out.push(F8E4M3::from_f32(single).to_bits()),
            DataType::F8E5M2 => out.push(F8E5M2::from_f32(single).to_bits()),
            DataType::F64 => {
                let double = match *self {
                    Self::Whole(value) => value as f64,
                    Self::Share(sum, ranks) => sum as f64 / f64::from(ranks),
                };
                out.extend_from_slice(&double.to_ne_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_in_every_type() {
        for ranks in [1, 2, 3, 8, 64] {
            for at in 0..PERIOD {
                let sum = |dtype| -> i64 {
                    (0..ranks)
                        .map(|r| value(dtype, ReduceOp::Sum, ranks, r, at))
                        .sum()
                };
                assert!(sum(DataType::I8) <= 127 && sum(DataType::Bf16) <= 256);
                assert!(sum(DataType::F16) <= 2048 && sum(DataType::F32) <= 1 << 20);
                assert!(sum(DataType::F8E4M3) <= 16 && sum(DataType::F8E5M2) <= 8);
                let product: i64 = (0..ranks)
                    .map(|r| value(DataType::I8, ReduceOp::Prod, ranks, r, at))
                    .product();
                assert!([2, 6].contains(&product) || ranks == 1, "{product}");
            }
        }
    }

    #[test]
    fn every_value_is_exact_in_its_type() {
        for dtype in DataType::ALL {
            for reduction in ReduceOp::ALL {
                let most = (0..PERIOD)
                    .map(|at| value(dtype, reduction, 3, 1, at))
                    .max();
                let most = most.unwrap_or(0);
                let (mut encoded, mut next) = (Vec::new(), Vec::new());
                Number::Whole(most).encode(dtype, &mut encoded);
                Number::Whole(most - 1).encode(dtype, &mut next);
                assert_ne!(encoded, next, "{dtype} {reduction}");
                let limit = match dtype {
                    DataType::I8 => i64::from(i8::MAX),
                    DataType::U8 => i64::from(u8::MAX),
                    DataType::I16 => i64::from(i16::MAX),
                    _ => i64::MAX,
                };
                assert!(most <= limit, "{dtype} {reduction}: {most}");
            }
        }
    }

    #[test]
    fn what_is_filled_is_right_and_what_is_moved_is_wrong() {
        for dtype in DataType::ALL {
            // fp8 has so few exact values that one in five is right by chance.
            let few = matches!(dtype, DataType::F8E4M3 | DataType::F8E5M2);
            let most = if few { 7_000 } else { 9_000 };
            let pattern = input(dtype, ReduceOp::Sum, 2, 1);
            let mut data = vec![0; 10_000 * dtype.size()];
            pattern.fill(&mut data, 77);
            assert_eq!(pattern.wrong(&data, 77), 0, "{dtype}");
            assert!(pattern.wrong(&data, 78) > most, "{dtype}: by one element");
            assert!(
                pattern.wrong(&data, 77 + 4096) > most,
                "{dtype}: by a block"
            );
            assert!(
                input(dtype, ReduceOp::Sum, 2, 0).wrong(&data, 77) > most,
                "{dtype}"
            );
            data[dtype.size() * 5_000] ^= 1;
            assert_eq!(pattern.wrong(&data, 77), 1, "{dtype}");
        }
    }

    #[test]
    fn averages_round_as_their_types_do() {
        let encode = |number: Number, dtype| {
            let mut out = Vec::new();
            number.encode(dtype, &mut out);
            out
        };
        assert_eq!(
            encode(Number::Share(7, 2), DataType::I32),
            3_i32.to_ne_bytes()
        );
        assert_eq!(
            encode(Number::Share(1, 3), DataType::F32),
            (1.0_f32 / 3.0).to_ne_bytes()
        );
        assert_eq!(
            encode(Number::Whole(300), DataType::I8),
            44_i8.to_ne_bytes()
        );
    }
}
