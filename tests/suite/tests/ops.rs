//! Every operation, type and reduction, at every small rank count, in place and out, against a
//! reference; and what reductions do at the edges of their types.

use half::{bf16, f16};
use unisono::plan::OpKind;
use unisono::plan::select::{Override, Overrides};
use unisono::{
    Algorithm, DataType, Element, Error, F8E4M3, F8E5M2, InitOptions, Op, Order, ReduceOp,
    Reduction, Rules, UserReduction,
};
use unisono_tests::{everything, soaking, threads};

fn run(ranks: u32, sizes: &'static [usize], adjust: fn(&mut InitOptions)) -> u64 {
    let calls = threads(ranks, adjust, move |world| {
        let calls = everything(&world, sizes, &DataType::ALL);
        let calls = calls.unwrap_or_else(|what| panic!("{what}"));
        world.finalize().expect("finalize");
        calls
    });
    calls[0]
}

#[test]
fn everything_is_right() {
    let (ranks, sizes): (&[u32], &[usize]) = if soaking() {
        (
            &[1, 2, 3, 4, 5, 6, 7, 8, 9, 16],
            &[0, 1, 2, 33, 1000, 20_011],
        )
    } else {
        (&[1, 2, 3, 5, 8], &[1, 33])
    };
    let mut calls = 0;
    for &ranks in ranks {
        calls += run(ranks, sizes, |_| {});
    }
    let full = if soaking() {
        ""
    } else {
        " (10 and 6 in a soak)"
    };
    println!(
        "{calls} calls at {} rank counts and {} sizes{full}",
        ranks.len(),
        sizes.len()
    );
}

#[test]
fn everything_is_right_over_posted_links() {
    let (ranks, sizes): (&[u32], &[usize]) = if soaking() {
        (&[2, 3, 4, 5, 8], &[0, 1, 33, 1000])
    } else {
        (&[3], &[33])
    };
    let mut calls = 0;
    for &ranks in ranks {
        calls += run(ranks, sizes, |options| {
            options.without_links = vec!["shm".to_owned()];
        });
    }
    let full = if soaking() {
        ""
    } else {
        " (5 and 4 in a soak)"
    };
    println!(
        "{calls} calls at {} rank counts and {} sizes{full}",
        ranks.len(),
        sizes.len()
    );
}

/// What ranks 0, 1 and 2 give, reduced.
fn over_three<T: Element>(values: [T; 3], op: ReduceOp) -> T {
    let results = threads(
        3,
        |_| {},
        move |world| {
            let mut data = [values[world.rank() as usize]; 5];
            world.all_reduce_in_place(&mut data, op).expect("no error");
            data[4]
        },
    );
    results[1]
}

#[test]
fn min_and_max_keep_nan_wherever_it_is() {
    for at in 0..3 {
        for op in [ReduceOp::Min, ReduceOp::Max] {
            let mut values = [1.0_f32, -2.0, f32::INFINITY];
            values[at] = f32::NAN;
            assert!(over_three(values, op).is_nan(), "{op} f32 {at}");
            assert!(over_three(values.map(f64::from), op).is_nan(), "{op} f64");
            assert!(over_three(values.map(f16::from_f32), op).is_nan(), "{op}");
            assert!(over_three(values.map(bf16::from_f32), op).is_nan(), "{op}");
            let e4m3 = over_three(values.map(F8E4M3::from_f32), op);
            assert!(e4m3.to_f32().is_nan(), "{op} f8e4m3");
            let e5m2 = over_three(values.map(F8E5M2::from_f32), op);
            assert!(e5m2.to_f32().is_nan(), "{op} f8e5m2");
        }
    }
}

#[test]
fn what_is_too_large_saturates_or_is_infinite() {
    let large = [300.0, 300.0, -500.0_f32];
    // In rank order: 448, then 448 - 448.
    let sum = over_three(large.map(F8E4M3::from_f32), ReduceOp::Sum);
    assert!(sum.to_f32() == 0.0 || sum.to_f32() == 160.0, "{sum}");
    let product = over_three(large.map(F8E4M3::from_f32), ReduceOp::Prod);
    assert_eq!(product.to_f32(), -448.0);
    let huge = [50_000.0, 50_000.0, 2.0_f32];
    let sum = over_three(huge.map(F8E5M2::from_f32), ReduceOp::Sum);
    assert_eq!(sum.to_f32(), f32::INFINITY);
    let sum = over_three(huge.map(f16::from_f32), ReduceOp::Sum);
    assert_eq!(sum, f16::INFINITY);
    let sum = over_three([f32::INFINITY, f32::NEG_INFINITY, 0.0], ReduceOp::Sum);
    assert!(sum.is_nan());
    assert_eq!(over_three([100_i8, 100, 100], ReduceOp::Sum), 44);
    assert_eq!(over_three([-1_i32, -1, -2], ReduceOp::Avg), -1);
}

#[test]
fn what_no_reduction_is_defined_on_is_refused() {
    threads(
        2,
        |_| {},
        |world| {
            let mut data = [1.0_f32; 4];
            let sum = UserReduction::new(Order::Any, |a: i32, b: i32| a + b);
            for (op, says) in [
                (Reduction::from(ReduceOp::Xor), "xor is for integers"),
                (
                    Reduction::scaled_sum(2_i32),
                    "the factor is of i32, the elements of f32",
                ),
                (sum.into(), "the reduction is of i32, the elements of f32"),
            ] {
                let error = world.all_reduce_in_place(&mut data, op).unwrap_err();
                assert!(error.is_harmless(), "{error}");
                assert!(error.to_string().contains(says), "{error}");
            }
            // And nothing is broken.
            world
                .all_reduce_in_place(&mut data, ReduceOp::Sum)
                .expect("it goes on");
            assert_eq!(data, [2.0; 4]);
        },
    );
}

/// In one piece and in many, by the calling thread and by streams.
#[test]
fn an_all_to_all_by_pairs_is_right() {
    let by_pairs = |options: &mut InitOptions, direct| {
        options.direct = direct;
        options.memory.slot = Some(16 << 10);
        options.rules = Rules::new(|_, _| Overrides {
            rules: vec![Override {
                op: Some(OpKind::AllToAll),
                bytes: 0..=u64::MAX,
                algorithm: Algorithm::Pairwise.into(),
                windowed: None,
                put_bytes: None,
            }],
        });
    };
    let value = |from: u32, to: u32, at: usize| u64::from(from << 8 | to) << 32 | at as u64;
    for (ranks, direct) in [(2, true), (3, false), (4, true), (5, false), (6, true)] {
        threads(
            ranks,
            move |options| by_pairs(options, direct),
            move |world| {
                let me = world.rank();
                for count in [1_usize, 3000, 30_001] {
                    let plan = world.explain(
                        Op::AllToAll,
                        (count * 8) as u64 * u64::from(ranks),
                        DataType::U64,
                    );
                    assert_eq!(plan.expect("a plan").algorithm(), "pairwise");
                    let all = |of: &dyn Fn(u32, usize) -> u64| -> Vec<u64> {
                        (0..ranks)
                            .flat_map(|rank| (0..count).map(move |at| of(rank, at)))
                            .collect()
                    };
                    let mut send = all(&|to, at| value(me, to, at));
                    let wanted = all(&|from, at| value(from, me, at));
                    let mut got = vec![0; send.len()];
                    world.all_to_all(&send, &mut got).expect("all_to_all");
                    assert!(got == wanted, "{count} among {ranks}");
                    world.all_to_all_in_place(&mut send).expect("in place");
                    assert!(send == wanted, "{count} among {ranks}, in place");
                }
                world.finalize().expect("finalize");
            },
        );
    }
}

#[test]
fn a_panic_in_a_users_reduction_is_an_error_on_every_rank() {
    let errors = threads(
        3,
        |_| {},
        |world| {
            let op = UserReduction::new(Order::Any, |a: u32, b: u32| {
                assert!(a + b < 10, "too much");
                a + b
            });
            let mut data = [1_u32; 3];
            world
                .all_reduce_in_place(&mut data, &op)
                .expect("3 is fine");
            assert_eq!(data, [3; 3]);
            let mut data = [7_u32; 3];
            let first = world.all_reduce_in_place(&mut data, &op).err();
            // A rank whose own function did not panic hears of it with its next call at the latest.
            first.unwrap_or_else(|| world.barrier().unwrap_err())
        },
    );
    for error in errors {
        assert!(
            matches!(&error, Error::Aborted { why, .. } if why.contains("panicked")),
            "{error}"
        );
    }
}
