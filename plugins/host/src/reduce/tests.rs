//! Every type, reduction and instruction set against the oracle, which is scalar.
#![allow(unsafe_code, reason = "kernels take addresses")]

use half::{bf16, f16};
use proptest::prelude::*;

use super::run::{BLOCK, LONG, Results};
use super::{Dtype, Kernel, Reduction, oracle};
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
    let run = |kernel: &Kernel, dst, a, b, elements| {
        // SAFETY: each pointer has room for the elements; `dst` is an operand or distinct.
        unsafe { kernel.run(dst, a, b, elements, divisor, streaming) };
    };
    check_run((isa, dtype, reduction), [a, b], shift, divisor, run);
}

/// The same of what `run` does.
fn check_run(
    (isa, dtype, reduction): (Isa, Dtype, Reduction),
    [a, b]: [&[u8]; 2],
    shift: usize,
    divisor: u32,
    run: impl Fn(&Kernel, *mut u8, *const u8, *const u8, usize),
) {
    let kernel = Kernel::new(isa, dtype, reduction).expect("the combination is defined");
    let size = dtype.bytes();
    let elements = a.len() / size;
    let expected: Vec<_> = a
        .chunks_exact(size)
        .zip(b.chunks_exact(size))
        .map(|(a, b)| oracle::class(dtype, &oracle::element(dtype, reduction, a, b, divisor)))
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
        run(&kernel, dst, a_ptr, b_ptr, elements);
        let (room, start) = match alias {
            "distinct" => (&d_room, d_start),
            "dst is a" => (&a_room, a_start),
            _ => (&b_room, b_start),
        };
        for (i, got) in room[start..start + a.len()].chunks_exact(size).enumerate() {
            assert_eq!(
                oracle::class(dtype, got),
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
        let elements = 2 * BLOCK / combination.1.bytes() + 37;
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

proptest! {
    /// Any bits, of any length, at any address, whatever aliases and however they are stored.
    #[test]
    fn any_operands_match_the_oracle(
        which in any::<proptest::sample::Index>(),
        seed in 1..u64::MAX,
        elements in 0_usize..700,
        shift in 0_usize..64,
        divisor in prop_oneof![Just(0), 1_u32..20, any::<u32>()],
        streaming: bool,
    ) {
        let all: Vec<_> = combinations().collect();
        let combination = *which.get(&all);
        let mut random = Random(seed);
        let a = inputs(&mut random, combination.1, elements);
        let b = inputs(&mut random, combination.1, elements);
        check(combination, [&a, &b], shift, divisor, streaming);
    }

    /// A factor is an operand whose elements are all the same.
    #[test]
    fn any_factor_matches_the_oracle(
        which in any::<proptest::sample::Index>(),
        seed in 1..u64::MAX,
        elements in 0_usize..5000,
        in_place: bool,
    ) {
        let all: Vec<_> = combinations().collect();
        let (isa, dtype, reduction) = *which.get(&all);
        let mut random = Random(seed);
        let size = dtype.bytes();
        let a = inputs(&mut random, dtype, elements);
        let mut factor = [0; 8];
        factor[..size].copy_from_slice(&inputs(&mut random, dtype, 1));
        let kernel = Kernel::new(isa, dtype, reduction).expect("the combination is defined");
        let mut got = a.clone();
        let source = if in_place { got.as_ptr() } else { a.as_ptr() };
        // SAFETY: both hold `elements` elements and are equal or distinct.
        unsafe { kernel.run_with(got.as_mut_ptr(), source, &factor, elements) };
        for (a, got) in a.chunks_exact(size).zip(got.chunks_exact(size)) {
            let wanted = oracle::element(dtype, reduction, a, &factor[..size], 0);
            prop_assert_eq!(oracle::class(dtype, got), oracle::class(dtype, &wanted));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Several runs of addresses, and a rest of any length, on whatever processor.
    #[test]
    fn long_operands_match_the_oracle(
        which in any::<proptest::sample::Index>(),
        seed in 1..u64::MAX,
        more in 0..5 * BLOCK,
        shift in 0_usize..64,
        divisor in prop_oneof![Just(0), 1_u32..20],
        streamed: bool,
    ) {
        let all: Vec<_> = combinations().collect();
        let combination = *which.get(&all);
        let mut random = Random(seed);
        let elements = (LONG + more) / combination.1.bytes();
        let [a, b] = [0, 1].map(|_| inputs(&mut random, combination.1, elements));
        // What is streamed begins with a line; what is not is not divided by several runs.
        let (shift, divisor) = if streamed { (0, divisor) } else { (shift, 0) };
        check_run(combination, [&a, &b], shift, divisor, |kernel, dst, a, b, elements| {
            let results = Results::StreamedInRuns;
            // SAFETY: as for `check`; what is streamed begins with a line.
            unsafe {
                match streamed {
                    true => kernel.by_blocks(dst, a, b, elements, divisor, results),
                    false => kernel.run_in_runs(dst, a, b, elements),
                }
            }
        });
        check(combination, [&a, &b], shift, divisor, streamed);
    }
}
