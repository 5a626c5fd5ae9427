//! Long calls over sockets alone, whose bytes land where they belong: right with every plan, wherever buffers lie, and
//! nothing lands any more once a call has failed.

use std::sync::Barrier;
use std::time::Duration;

use unisono::plan::OpKind;
use unisono::plan::select::{Override, Overrides};
use unisono::{Algorithm, Communicator, DataType, Error, InitOptions, Op, ReduceOp, Rules};
use unisono_tests::threads;

const MS: Duration = Duration::from_millis(1);

/// Over sockets, by one algorithm where it is able to run a call.
fn by(options: &mut InitOptions, op: OpKind, algorithm: Algorithm) {
    options.without_links = vec!["shm".to_owned()];
    options.direct = false;
    options.rules = Rules::new(move |_, _| Overrides {
        rules: vec![Override {
            op: Some(op),
            bytes: 0..=u64::MAX,
            algorithm: algorithm.into(),
            windowed: None,
            put_bytes: None,
        }],
    });
}

fn value(rank: u32, at: usize, round: u64) -> u64 {
    u64::from(rank + 1) << 44 | round << 32 | at as u64
}

fn calls_are_right(world: &Communicator, op: OpKind, count: usize, rounds: u64) {
    let (rank, ranks) = (world.rank(), world.size());
    let whole = count * ranks as usize;
    for round in 0..rounds {
        match op {
            OpKind::Broadcast => {
                let root = round as u32 % ranks;
                let mut data: Vec<u64> = (0..count).map(|at| value(rank, at, round)).collect();
                world.broadcast(&mut data, root).expect("broadcast");
                assert!((0..count).all(|at| data[at] == value(root, at, round)));
            }
            OpKind::AllGather => {
                let own: Vec<u64> = (0..count).map(|at| value(rank, at, round)).collect();
                let expected = |at: usize| value((at / count) as u32, at % count, round);
                let mut all = vec![0; whole];
                world.all_gather(&own, &mut all).expect("all_gather");
                assert!((0..whole).all(|at| all[at] == expected(at)));
                let mut all = vec![0; whole];
                all[rank as usize * count..][..count].copy_from_slice(&own);
                world.all_gather_in_place(&mut all).expect("in place");
                assert!((0..whole).all(|at| all[at] == expected(at)));
            }
            OpKind::AllToAll => {
                let mut send: Vec<u64> = (0..whole).map(|at| value(rank, at, round)).collect();
                let expected = |at: usize| {
                    let place = rank as usize * count + at % count;
                    value((at / count) as u32, place, round)
                };
                let mut got = vec![0; whole];
                world.all_to_all(&send, &mut got).expect("all_to_all");
                assert!((0..whole).all(|at| got[at] == expected(at)));
                world.all_to_all_in_place(&mut send).expect("in place");
                assert!((0..whole).all(|at| send[at] == expected(at)));
            }
            _ => {
                let sum = |at: usize| (0..ranks).map(|rank| value(rank, at, round)).sum::<u64>();
                let send: Vec<u64> = (0..count).map(|at| value(rank, at, round)).collect();
                let mut got = vec![0; count];
                world
                    .all_reduce(&send, &mut got, ReduceOp::Sum)
                    .expect("all_reduce");
                assert!((0..count).all(|at| got[at] == sum(at)));
                let mut data = send;
                world
                    .all_reduce_in_place(&mut data, ReduceOp::Sum)
                    .expect("in place");
                assert!((0..count).all(|at| data[at] == sum(at)));
            }
        }
    }
}

/// Of one piece and of many. Plans that read a place before something is copied there are among them: ring and halving in
/// place, Bruck.
#[test]
fn long_calls_of_every_plan_are_right() {
    use Algorithm::{
        BidirectionalRing, Binomial, Bruck, Chain, DoubleBinaryTree, HalvingDoubling, MeshOneShot,
        MeshTwoShot, Nhr, Pairwise, RecursiveDoubling, Ring, ScatterAllGather,
    };
    let plans: [(OpKind, &[Algorithm]); 4] = [
        (
            OpKind::Broadcast,
            &[
                MeshOneShot,
                MeshTwoShot,
                Binomial,
                ScatterAllGather,
                DoubleBinaryTree,
                Chain,
            ],
        ),
        (
            OpKind::AllGather,
            &[
                MeshOneShot,
                Ring,
                BidirectionalRing,
                HalvingDoubling,
                Nhr,
                Bruck,
                Binomial,
            ],
        ),
        (OpKind::AllToAll, &[MeshOneShot, Pairwise, Bruck]),
        (
            OpKind::AllReduce,
            &[MeshTwoShot, Ring, RecursiveDoubling, HalvingDoubling, Nhr],
        ),
    ];
    for (op, algorithms) in plans {
        for &algorithm in algorithms {
            for ranks in [2, 3, 4] {
                threads(
                    ranks,
                    move |options| by(options, op, algorithm),
                    move |world| {
                        for (count, rounds) in [(5000, 3), (100_001, 3), (700_001, 1)] {
                            calls_are_right(&world, op, count, rounds);
                        }
                        world.finalize().expect("finalize");
                    },
                );
            }
        }
    }
}

/// Its memory is the caller's again when the call has failed: the other rank goes on sending, and nothing of it comes.
#[test]
fn nothing_lands_after_a_call_has_failed() {
    for delay in [5, 15, 40] {
        // Not the communicator's barrier: the abort could meet a rank that has not left it yet.
        let ready = Barrier::new(2);
        threads(
            2,
            |options| by(options, OpKind::Broadcast, Algorithm::MeshOneShot),
            move |world| {
                let mut data = vec![7 - 7 * world.rank() as u8; 512 << 20];
                ready.wait();
                let abort = world.abort_handle();
                let is_receiver = world.rank() == 1;
                let failed = std::thread::scope(|scope| {
                    let caller = scope.spawn(|| world.broadcast(&mut data, 0));
                    if is_receiver {
                        std::thread::sleep(delay * MS);
                        abort.abort("enough");
                    }
                    caller.join().expect("no panic")
                });
                let error = failed.expect_err("an abort");
                assert!(matches!(error, Error::Aborted { .. }), "{error}");
                if is_receiver {
                    data.fill(0);
                    std::thread::sleep(200 * MS);
                    assert!(data.iter().all(|byte| *byte == 0), "something came");
                }
            },
        );
    }
}

/// Slots are longer where no two ranks share memory, and messages are cut into fewer pieces.
#[test]
fn sockets_alone_carry_longer_pieces() {
    for (sockets, pieces) in [(true, 8), (false, 24)] {
        threads(
            3,
            move |options| {
                by(options, OpKind::Broadcast, Algorithm::MeshOneShot);
                if !sockets {
                    options.without_links.clear();
                }
            },
            move |world| {
                let plan = world.explain(Op::Broadcast { root: 0 }, 3 << 20, DataType::F32);
                let cut = plan.expect("a plan").selection().winner().pieces;
                assert_eq!(cut, pieces, "sockets alone: {sockets}");
                world.finalize().expect("finalize");
            },
        );
    }
}
