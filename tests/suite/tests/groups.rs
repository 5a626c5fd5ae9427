//! Groups: calls that are started together, in whatever order each rank names them.

use std::time::Duration;

use unisono::{Communicator, Error, InitOptions, ReduceOp, group};
use unisono_tests::{Rng, threads};

fn without_shm(options: &mut InitOptions) {
    options.without_links = vec!["shm".to_owned()];
}

/// Both kinds of links, and both at once.
fn over_all_links(ranks: u32, body: fn(Communicator)) {
    threads(ranks, |_| {}, body);
    threads(ranks, without_shm, body);
    let nodes = |options: &mut InitOptions| {
        let node = unisono::bootstrap::NodeId([1 + options.rank as u8 % 2; 16]);
        options.node_id = Some(node);
    };
    threads(ranks, nodes, body);
}

fn data(from: u32, to: u32, count: usize) -> Vec<u32> {
    let of = |i: usize| (i as u32).wrapping_mul(7) ^ from << 20 ^ to << 10;
    (0..count).map(of).collect()
}

/// Every rank sends first: far more than slots hold.
#[test]
fn a_ring_in_which_all_send_first() {
    over_all_links(5, |world| {
        let (rank, size) = (world.rank(), world.size());
        let (next, before) = ((rank + 1) % size, (rank + size - 1) % size);
        for count in [0, 1, 1000, 1_000_003] {
            let mine = data(rank, next, count);
            let mut theirs = vec![0; count];
            world
                .group(|group| {
                    group.send(&mine, next)?;
                    group.recv(&mut theirs, before)
                })
                .expect("no error");
            assert!(theirs == data(before, rank, count), "{count} from {before}");
        }
        world.finalize().expect("finalize");
    });
}

/// One rank groups, the other calls one after the other, in either order.
#[test]
fn a_group_meets_calls_that_are_none() {
    for receives_first in [true, false] {
        for tcp in [true, false] {
            let adjust = move |options: &mut InitOptions| {
                if tcp {
                    without_shm(options);
                }
            };
            threads(2, adjust, move |world| {
                let (rank, peer) = (world.rank(), 1 - world.rank());
                let mine = data(rank, peer, 700_001);
                let mut theirs = vec![0; 700_001];
                if rank == 0 {
                    let result = world.group(|group| {
                        group.send(&mine, peer)?;
                        group.recv(&mut theirs, peer)
                    });
                    result.expect("no error");
                } else if receives_first {
                    world.recv(&mut theirs, peer).expect("recv");
                    world.send(&mine, peer).expect("send");
                } else {
                    world.send(&mine, peer).expect("send");
                    world.recv(&mut theirs, peer).expect("recv");
                }
                assert!(theirs == data(peer, rank, 700_001));
            });
        }
    }
}

/// Everybody sends to everybody, several times, of several sizes, in an order of its own.
#[test]
fn everybody_to_everybody_in_any_order() {
    over_all_links(6, |world| {
        let (rank, size) = (world.rank(), world.size());
        let peers: Vec<u32> = (0..size).filter(|peer| *peer != rank).collect();
        let counts = [3, 120_000, 0];
        let mut rng = Rng::new(Rng::seed() ^ u64::from(rank));
        for _ in 0..3 {
            let sends: Vec<Vec<Vec<u32>>> = peers
                .iter()
                .map(|peer| counts.map(|count| data(rank, *peer, count)).into())
                .collect();
            let mut recvs: Vec<Vec<Vec<u32>>> = peers
                .iter()
                .map(|_| counts.map(|count| vec![0; count]).into())
                .collect();
            let mut sum = [u64::from(rank); 3];
            world
                .group(|group| {
                    // Messages between two ranks keep their order; whose turn it is, chance says.
                    let mut out: Vec<_> = peers.iter().zip(&sends).collect();
                    let mut into: Vec<_> = peers.iter().zip(&mut recvs).collect();
                    while !(out.is_empty() && into.is_empty()) {
                        if into.is_empty() || (!out.is_empty() && rng.below(2) == 0) {
                            let at = rng.below(out.len() as u64) as usize;
                            let (peer, messages) = out.swap_remove(at);
                            for message in messages {
                                group.send(message, *peer)?;
                            }
                        } else {
                            let at = rng.below(into.len() as u64) as usize;
                            let (peer, messages) = into.swap_remove(at);
                            for message in messages {
                                group.recv(message, *peer)?;
                            }
                        }
                    }
                    group.all_reduce_in_place(&mut sum, ReduceOp::Sum)
                })
                .expect("no error");
            assert_eq!(sum, [15; 3]);
            for (peer, messages) in peers.iter().zip(&recvs) {
                for (message, count) in messages.iter().zip(counts) {
                    assert!(*message == data(*peer, rank, count), "{count} from {peer}");
                }
            }
            // Calls after the group wait for it.
            let mut one = [1_u8];
            world
                .all_reduce_in_place(&mut one, ReduceOp::Sum)
                .expect("after");
            assert_eq!(one, [6]);
        }
        world.finalize().expect("finalize");
    });
}

/// Ranks name two communicators in different orders: neither waits for the other.
#[test]
fn communicators_run_beside_each_other() {
    over_all_links(4, |world| {
        let (rank, size) = (world.rank(), world.size());
        let other = world.duplicate().expect("duplicate");
        let half = world.split(Some(rank % 2), 0).expect("split").expect("all");
        for round in 0..5_u32 {
            let mut a = vec![rank; 50_000];
            let mut b = vec![u64::from(rank) + 1; 30_000];
            let mut halves = [rank + round];
            group(|group| {
                if (rank + round).is_multiple_of(2) {
                    group
                        .on(&world)
                        .all_reduce_in_place(&mut a, ReduceOp::Sum)?;
                    group
                        .on(&other)
                        .all_reduce_in_place(&mut b, ReduceOp::Prod)?;
                } else {
                    group
                        .on(&other)
                        .all_reduce_in_place(&mut b, ReduceOp::Prod)?;
                    group
                        .on(&world)
                        .all_reduce_in_place(&mut a, ReduceOp::Sum)?;
                }
                group
                    .on(&half)
                    .all_reduce_in_place(&mut halves, ReduceOp::Max)
            })
            .expect("no error");
            assert!(a.iter().all(|x| *x == size * (size - 1) / 2));
            assert!(b.iter().all(|x| *x == 24));
            assert_eq!(halves, [2 + rank % 2 + round]);
        }
        for communicator in [half, other, world] {
            communicator.finalize().expect("finalize");
        }
    });
}

#[test]
fn an_error_names_the_call_and_nothing_is_started() {
    threads(
        2,
        |_| {},
        |world| {
            let mine = [world.rank()];
            let mut theirs = [9, 9];
            let (one, other) = theirs.split_at_mut(1);
            let error = world
                .group(|group| {
                    group.send(&mine, 1 - world.rank())?;
                    group.recv(one, 1 - world.rank())?;
                    group.recv(other, 7)
                })
                .unwrap_err();
            assert!(error.is_harmless(), "{error}");
            let text = error.to_string();
            assert!(text.contains("call 3 of the group"), "{text}");
            assert!(text.contains("rank 7"), "{text}");
            let (mine, mut long) = ([1_u8; 3], [0_u8; 4]);
            let error = world
                .group(|group| group.all_reduce(&mine, &mut long, ReduceOp::Sum))
                .unwrap_err();
            assert!(error.to_string().contains("call 1 of the group"), "{error}");
            world.barrier().expect("nothing is broken");
            assert_eq!(theirs, [9, 9]);
        },
    );
}

#[test]
fn a_message_of_another_length_is_a_mismatch() {
    let errors = threads(
        2,
        |_| {},
        |world| {
            let (mine, mut theirs) = ([1_u32; 5], [0_u32; 4]);
            let peer = 1 - world.rank();
            let result = world.group(|group| {
                group.send(&mine, peer)?;
                group.recv(&mut theirs, peer)
            });
            result.unwrap_err()
        },
    );
    for error in errors {
        let text = error.to_string();
        assert!(matches!(error, Error::Mismatch(_)), "{text}");
        assert!(
            text.contains("count 4") && text.contains("count 5"),
            "{text}"
        );
    }
}

#[test]
fn a_message_that_nobody_sends_is_named() {
    let errors = threads(
        2,
        |options| options.timeouts.op = Duration::from_millis(300),
        |world| {
            let (mine, mut theirs) = ([1_u32; 5], [0_u32; 5]);
            if world.rank() == 0 {
                let result = world.group(|group| {
                    group.send(&mine, 1)?;
                    group.recv(&mut theirs, 1)
                });
                return Some(result.unwrap_err());
            }
            world.recv(&mut theirs, 0).expect("it was sent");
            std::thread::sleep(Duration::from_millis(1500));
            None
        },
    );
    let error = errors[0].as_ref().expect("an error");
    let text = error.to_string();
    assert!(matches!(error, Error::Timeout(_)), "{text}");
    assert!(text.contains("waiting for rank 1"), "{text}");
}
