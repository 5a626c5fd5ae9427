//! Memory that peers reach directly, and calls that break its rule.

use std::time::Duration;

use unisono::plan::select::{Override, Overrides};
use unisono::{Algorithm, Communicator, DataType, Error, Op, ReduceOp, Rules};
use unisono_tests::{input, options, reduced, threads};

/// Makes every plan that can go over windows do so.
fn force(algorithm: Algorithm) -> Rules {
    Rules::new(move |_, _| Overrides {
        rules: vec![Override {
            op: None,
            bytes: 1..=u64::MAX,
            algorithm: algorithm.into(),
            windowed: Some(true),
            put_bytes: None,
        }],
    })
}

#[test]
fn collectives_over_windows_are_right() {
    for ranks in [2, 3, 5, 8] {
        threads(
            ranks,
            |options| options.rules = force(Algorithm::MeshOneShot),
            move |world| {
                let (rank, n) = (world.rank(), ranks as usize);
                let plan = world.explain_windows(Op::AllGather, 4096, DataType::F32);
                assert!(plan.expect("a plan").is_windowed());
                for count in [1, 1000, 100_003] {
                    let mut send = world.alloc::<f32>(count * n).expect("alloc");
                    let mut recv = world.alloc::<f32>(count * n).expect("alloc");
                    assert!(send.is_direct() && recv.is_direct());
                    for salt in 0..5 {
                        let op = ReduceOp::Sum;
                        for (i, x) in send.iter_mut().enumerate() {
                            *x = input(ranks, rank, i, salt, Some(op.into()));
                        }
                        world
                            .reduce_scatter(&send, &mut recv[..count], op)
                            .expect("reduce_scatter");
                        let own = rank as usize * count;
                        for i in 0..count {
                            assert_eq!(recv[i], reduced::<f32>(ranks, own + i, salt, op.into()));
                        }
                        world
                            .all_gather(&send[..count], &mut recv)
                            .expect("all_gather");
                        for (i, x) in recv.iter().enumerate() {
                            let from = (i / count) as u32;
                            assert_eq!(
                                *x,
                                input::<f32>(ranks, from, i % count, salt, Some(op.into()))
                            );
                        }
                        world.broadcast(&mut send, ranks - 1).expect("broadcast");
                        for (i, x) in send.iter().enumerate() {
                            assert_eq!(
                                *x,
                                input::<f32>(ranks, ranks - 1, i, salt, Some(op.into()))
                            );
                        }
                    }
                }
                world.finalize().expect("finalize");
            },
        );
    }
}

#[test]
fn all_reduce_over_windows_is_right_in_and_out_of_place() {
    for ranks in [2, 3, 8] {
        threads(
            ranks,
            |options| options.rules = force(Algorithm::MeshTwoShot),
            move |world| {
                let rank = world.rank();
                let op = ReduceOp::Avg;
                for count in [1, 1000, 300_001] {
                    let mut send = world.alloc::<f64>(count).expect("alloc");
                    let mut recv = world.alloc::<f64>(count).expect("alloc");
                    for salt in 0..5 {
                        for (i, x) in send.iter_mut().enumerate() {
                            *x = input(ranks, rank, i, salt, Some(op.into()));
                        }
                        world.all_reduce(&send, &mut recv, op).expect("all_reduce");
                        world.all_reduce_in_place(&mut send, op).expect("in place");
                        for i in 0..count {
                            assert_eq!(recv[i], reduced::<f64>(ranks, i, salt, op.into()));
                            assert_eq!(send[i], recv[i]);
                        }
                    }
                }
                world.finalize().expect("finalize");
            },
        );
    }
}

/// The output is the root's alone: in place, at another offset than any other rank's buffers, in another window, or where no
/// peer reaches it.
#[test]
fn reduce_over_windows_goes_wherever_the_root_has_its_output() {
    const LEN: usize = 1 << 20;
    for ranks in [2, 3, 5] {
        threads(
            ranks,
            |options| options.rules = force(Algorithm::MeshTwoShot),
            move |world| {
                let (rank, op) = (world.rank(), ReduceOp::Sum);
                let root = ranks - 1;
                let plan = world.explain_windows(Op::Reduce { root }, 4096, DataType::U64);
                let plan = plan.expect("a plan");
                assert!(plan.is_windowed(), "{plan}");
                let mut send = world.alloc::<u64>(LEN).expect("alloc");
                let mut other = world.alloc::<u64>(LEN + 77).expect("alloc");
                let mut private = vec![0_u64; LEN];
                for (salt, count) in (0..).zip([1, 1000, 4099, LEN].into_iter().cycle().take(12)) {
                    let fill = |send: &mut [u64]| {
                        for (i, x) in send.iter_mut().enumerate() {
                            *x = input(ranks, rank, i, salt, Some(op.into()));
                        }
                    };
                    let check = |what: &str, sum: &[u64]| {
                        for (i, x) in sum.iter().enumerate().filter(|_| rank == root) {
                            assert_eq!(*x, reduced::<u64>(ranks, i, salt, op.into()), "{what}");
                        }
                    };
                    fill(&mut send[..count]);
                    // Of which none is used but the root's.
                    let at = if rank == root { 77 } else { 0 };
                    other.fill(u64::MAX);
                    let sum = &mut other[at..at + count];
                    world.reduce(&send[..count], sum, op, root).expect("reduce");
                    check("another window", &other[at..at + count]);
                    if rank != root {
                        assert!(other.iter().all(|x| *x == u64::MAX));
                    }
                    let sum = &mut private[..count];
                    world.reduce(&send[..count], sum, op, root).expect("reduce");
                    check("private", &private[..count]);
                    world
                        .reduce_in_place(&mut send[..count], op, root)
                        .expect("reduce");
                    check("in place", &send[..count]);
                }
                world.finalize().expect("finalize");
            },
        );
    }
}

#[test]
fn all_to_all_over_windows_is_right_in_and_out_of_place() {
    for ranks in [2, 3, 8] {
        threads(
            ranks,
            |options| options.rules = Rules::new(|_, _| Overrides::NONE),
            move |world| {
                let (rank, n) = (world.rank(), ranks as usize);
                let plan = world.explain_windows(Op::AllToAll, 8 << 20, DataType::U64);
                assert!(plan.expect("a plan").is_windowed());
                // What the rank sends is told by both ranks, the place and the round.
                let sent = |from: u32, to: usize, i: usize, round: usize| {
                    ((from as usize * n + to) << 40 | round << 32 | i) as u64
                };
                for count in [1, 1000, (1 << 20) / n] {
                    let mut send = world.alloc::<u64>(count * n).expect("alloc");
                    let mut recv = world.alloc::<u64>(count * n).expect("alloc");
                    for round in 0..5 {
                        for (at, x) in send.iter_mut().enumerate() {
                            *x = sent(rank, at / count, at % count, round);
                        }
                        world.all_to_all(&send, &mut recv).expect("all_to_all");
                        // Through slots: what is overwritten others would have yet to read.
                        world.all_to_all_in_place(&mut send).expect("in place");
                        for (at, x) in recv.iter().enumerate() {
                            let from = (at / count) as u32;
                            assert_eq!(*x, sent(from, rank as usize, at % count, round));
                        }
                        assert_eq!(send[..], recv[..]);
                    }
                }
                world.finalize().expect("finalize");
            },
        );
    }
}

#[test]
fn a_window_on_one_rank_and_none_on_the_other_is_a_mismatch() {
    threads(
        2,
        |options| {
            options.rules = Rules::new(|_, _| Overrides::NONE);
            options.timeouts.op = Duration::from_secs(5);
        },
        |world| {
            let mut window = world.alloc::<f32>(1 << 20).expect("alloc");
            let mut plain = vec![0.0_f32; 1 << 20];
            let forced = world.explain_windows(Op::AllReduce, 4 << 20, DataType::F32);
            if !forced.expect("a plan").is_windowed() {
                // Then both run staged, and there is nothing to disagree about.
                return;
            }
            let data = if world.rank() == 0 {
                &mut window[..]
            } else {
                &mut plain[..]
            };
            let error = world.all_reduce_in_place(data, ReduceOp::Sum).unwrap_err();
            assert!(matches!(error, Error::Mismatch(_)), "{error}");
            assert!(error.to_string().contains("in the same window"), "{error}");
        },
    );
}

#[test]
fn other_lengths_on_other_ranks_are_refused() {
    threads(
        2,
        |_| {},
        |world| {
            let error = world.alloc::<f32>(100 + world.rank() as usize).unwrap_err();
            assert!(error.to_string().contains("another length"), "{error}");
        },
    );
}

#[test]
fn ranks_of_one_process_are_made_at_once() {
    let root = unisono::bootstrap::RootSpec::Node;
    let all = Communicator::init_all(4, |rank| options(rank, 4, root.clone())).expect("a job");
    let sums: Vec<u64> = std::thread::scope(|scope| {
        let ranks: Vec<_> = all
            .into_iter()
            .map(|world| {
                scope.spawn(move || {
                    let mut data = [u64::from(world.rank())];
                    world
                        .all_reduce_in_place(&mut data, ReduceOp::Sum)
                        .expect("all_reduce");
                    world.finalize().expect("finalize");
                    data[0]
                })
            })
            .collect();
        ranks
            .into_iter()
            .map(|rank| rank.join().expect("no panic"))
            .collect()
    });
    assert_eq!(sums, [6; 4]);
}
