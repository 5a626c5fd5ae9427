//! What is reduced.

use unisono_abi::dtype;

use super::reference::size;

/// The operands of a type: every pair of an 8-bit type, and of others what is special with what is
/// special, and many more.
pub(super) fn operands(dtype: u16) -> Vec<(u64, u64)> {
    let bits = 8 * size(dtype) as u32;
    if bits == 8 {
        return (0..65_536).map(|pair| (pair & 0xff, pair >> 8)).collect();
    }
    let mask = u64::MAX >> (64 - bits);
    let special = special(dtype, mask);
    let mut out: Vec<_> = special
        .iter()
        .flat_map(|a| special.iter().map(|b| (*a, *b)))
        .collect();
    // A linear congruence: the same numbers in every run.
    let mut state = 0x5eed_u64 + u64::from(dtype);
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 20 ^ state << 33) & mask
    };
    out.extend((0..4001).map(|_| (next(), next())));
    out
}

fn special(dtype: u16, mask: u64) -> Vec<u64> {
    let floats = |list: [f64; 12]| -> Vec<u64> {
        list.iter()
            .map(|value| match dtype {
                dtype::F16 => half::f16::from_f64(*value).to_bits().into(),
                dtype::BF16 => half::bf16::from_f64(*value).to_bits().into(),
                dtype::F32 => (*value as f32).to_bits().into(),
                _ => value.to_bits(),
            })
            .collect()
    };
    match dtype {
        dtype::F16 | dtype::BF16 | dtype::F32 | dtype::F64 => {
            let mut out = floats([
                0.0,
                -0.0,
                1.0,
                -1.0,
                1.5,
                -3.0,
                65_504.0,
                6.1e-5,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::NAN,
                1.0 / 3.0,
            ]);
            out.extend([1, 2, 3]); // the smallest subnormals
            out
        }
        _ => vec![
            0,
            1,
            2,
            3,
            mask,
            mask - 1,
            mask >> 1,
            (mask >> 1) + 1,
            mask / 3,
        ],
    }
}
