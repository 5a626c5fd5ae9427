//! Every collective, with ranks as threads of one process.

use unisono::{Communicator, DataType, InitOptions, ReduceOp};
use unisono_tests::{Collective, Fold, Try, threads};

/// Every collective and type at a few sizes, with the reductions in turn (`ops.rs` has them all).
fn everything(world: &Communicator, sizes: &[usize]) {
    let mut salt = 0;
    for collective in Collective::all(world.size()) {
        for &count in sizes {
            for dtype in DataType::ALL {
                let folds: Vec<_> = Fold::all().filter(|fold| fold.applies_to(dtype)).collect();
                for in_place in [false, true] {
                    salt += 1;
                    let attempt = Try {
                        collective,
                        count,
                        op: folds[salt as usize % folds.len()],
                        in_place,
                        salt,
                    };
                    let done = attempt.run_as(world, dtype);
                    done.unwrap_or_else(|e| panic!("{attempt:?}: {e}"))
                        .unwrap_or_else(|wrong| panic!("{wrong}"));
                }
            }
        }
    }
    world.barrier().expect("barrier");
}

fn without_shm(options: &mut InitOptions) {
    options.without_links = vec!["shm".to_owned()];
}

#[test]
fn everything_over_shared_memory() {
    for ranks in [1, 2, 3, 4, 5, 8] {
        threads(
            ranks,
            |_| {},
            |world| {
                everything(&world, &[0, 1, 7, 1000]);
                world.finalize().expect("finalize");
            },
        );
    }
}

#[test]
fn everything_over_tcp() {
    for ranks in [2, 3, 4] {
        threads(ranks, without_shm, |world| {
            everything(&world, &[0, 1, 7, 1000]);
            world.finalize().expect("finalize");
        });
    }
}

/// Messages of many pieces, at counts that nothing divides.
fn large(world: &Communicator) {
    let counts: &[usize] = match world.size() {
        0..=3 => &[262_147, 500_003],
        // Each computes what it should have from what all have.
        _ => &[262_147],
    };
    for collective in Collective::all(world.size()) {
        for &count in counts {
            for (in_place, op) in [
                (false, Fold::Scaled),
                (true, Fold::First),
                (true, ReduceOp::Sum.into()),
            ] {
                let attempt = Try {
                    collective,
                    count,
                    op,
                    in_place,
                    salt: 5,
                };
                if collective.reduces() || op != Fold::First {
                    attempt.run::<f32>(world).expect("no error").expect("right");
                }
            }
        }
    }
}

#[test]
fn large_messages_over_shared_memory() {
    for ranks in [2, 3, 8] {
        threads(ranks, |_| {}, |world| large(&world));
    }
}

#[test]
fn large_messages_over_tcp() {
    for ranks in [2, 3] {
        threads(ranks, without_shm, |world| large(&world));
    }
}

#[test]
fn messages_between_two() {
    for tcp in [false, true] {
        let adjust = move |options: &mut InitOptions| {
            if tcp {
                without_shm(options);
            }
        };
        threads(3, adjust, |world| {
            let (rank, ranks) = (world.rank(), world.size());
            let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            for count in [0, 1, 1000, 400_000] {
                let mine: Vec<u64> = (0..count).map(|i| i * 3 + u64::from(rank)).collect();
                let mut theirs = vec![0; count as usize];
                // Ranks take turns, so that no two large sends wait for each other.
                if rank == 0 {
                    world.send(&mine, next).expect("send");
                    world.recv(&mut theirs, before).expect("recv");
                } else {
                    world.recv(&mut theirs, before).expect("recv");
                    world.send(&mine, next).expect("send");
                }
                assert!(
                    (0..)
                        .zip(&theirs)
                        .all(|(i, x)| *x == i * 3 + u64::from(before))
                );
            }
        });
    }
}

#[test]
fn everything_over_shared_memory_and_tcp_at_once() {
    // Ranks 0, 2, 4 say that they are on one node, ranks 1, 3 on another: mapped links within,
    // posted links between.
    let nodes = |options: &mut InitOptions| {
        let node = unisono::bootstrap::NodeId([1 + options.rank as u8 % 2; 16]);
        options.node_id = Some(node);
    };
    threads(5, nodes, |world| {
        everything(&world, &[0, 1, 1000]);
        large(&world);
        world.finalize().expect("finalize");
    });
}
