//! Long messages that lie in a window of their sender's, which their receiver copies from there.

use std::time::Duration;

use unisono::plan::OpKind;
use unisono::plan::select::{Override, Overrides};
use unisono::{Algorithm, Communicator, DataType, Error, InitOptions, Op, ReduceOp, Rules};
use unisono_tests::{Count, Rng, threads};

/// From so many elements of f32 on a message may.
const LONG: usize = (256 << 10) / 4;

/// All messages that can lie in windows do, or none.
fn force(windowed: bool) -> Rules {
    force_cut(windowed, None)
}

/// The same in puts of so many bytes.
fn force_cut(windowed: bool, put_bytes: Option<u64>) -> Rules {
    Rules::new(move |_, _| Overrides {
        rules: vec![Override {
            op: Some(OpKind::Send),
            bytes: 1..=u64::MAX,
            algorithm: Algorithm::Direct.into(),
            windowed: Some(windowed),
            put_bytes,
        }],
    })
}

/// Runs ranks with short calls on their own threads and on streams, where all messages pass slots; with messages in
/// windows and without, and as is chosen.
fn each_way(ranks: u32, body: impl Fn(&Communicator) + Clone + Send + Sync + 'static) {
    for direct in [true, false] {
        for rules in [Some(true), Some(false), None] {
            let body = body.clone();
            let adjust = move |options: &mut InitOptions| {
                options.direct = direct;
                options.rules = rules.map_or_else(|| Rules::new(|_, _| Overrides::NONE), force);
            };
            threads(ranks, adjust, move |world| {
                body(&world);
                world.finalize().expect("finalize");
            });
        }
    }
}

fn value(from: u32, round: usize, i: usize) -> f32 {
    (from as usize * 7 + round * 13 + i % 1009) as f32
}

fn fill(data: &mut [f32], from: u32, round: usize) {
    for (i, x) in data.iter_mut().enumerate() {
        *x = value(from, round, i);
    }
}

#[track_caller]
fn check(data: &[f32], from: u32, round: usize) {
    for (i, x) in data.iter().enumerate() {
        assert_eq!(*x, value(from, round, i), "{i} of round {round}");
    }
}

/// From windows and from private memory to windows and to private memory, of lengths around the least, at any place, among
/// short messages and collectives, which use the same channels. Once it was sent the sender's memory is its own.
#[test]
fn messages_go_from_and_to_any_memory() {
    each_way(2, |world| {
        let (rank, peer) = (world.rank(), 1 - world.rank());
        const MOST: usize = 9 * LONG + 1000;
        let mut window = world.alloc::<f32>(MOST + 64).expect("alloc");
        let mut private = vec![0.0; MOST + 64];
        let lengths = [
            LONG - 1,
            LONG,
            LONG + 1,
            77,
            2 * LONG,
            1,
            9 * LONG + 999,
            LONG + 17,
        ];
        for (round, len) in lengths.into_iter().cycle().take(32).enumerate() {
            let at = round * 3 % 64;
            // Each way between the two kinds of memory, and of who sends first.
            let (from_window, to_window) = (round & 1 == 0, round & 2 == 0);
            let sends = (round & 4 == 0) == (rank == 0);
            let is_window = if sends { from_window } else { to_window };
            let data = match is_window {
                true => &mut window[at..at + len],
                false => &mut private[at..at + len],
            };
            if sends {
                fill(data, rank, round);
                world.send(data, peer).expect("send");
                data.fill(-1.0);
            } else {
                data.fill(-2.0);
                world.recv(data, peer).expect("recv");
                check(data, peer, round);
            }
            if round % 3 == 0 {
                let mut sum = [1_u64; 3];
                world
                    .all_reduce_in_place(&mut sum, ReduceOp::Sum)
                    .expect("all_reduce");
                assert_eq!(sum, [2; 3]);
            }
            if round % 5 == 0 {
                let mut root = vec![rank; 20_000];
                world.broadcast(&mut root, 1).expect("broadcast");
                assert!(root.iter().all(|x| *x == 1));
            }
        }
    });
}

#[test]
fn explain_says_that_a_message_may_lie_in_a_window() {
    threads(
        2,
        |options| options.rules = force(true),
        |world| {
            let to = 1 - world.rank();
            let of = |bytes| world.explain_windows(Op::Send { to }, bytes, DataType::F32);
            assert!(of(4 * LONG as u64).expect("a plan").is_windowed());
            assert!(
                !of(4 * LONG as u64 - 4).expect("a plan").is_windowed(),
                "short"
            );
            let received = world.explain_windows(Op::Recv { from: to }, 1 << 20, DataType::F32);
            assert!(
                !received.expect("a plan").is_windowed(),
                "its sender decides"
            );
            let staged = world.explain(Op::Send { to }, 1 << 20, DataType::F32);
            assert!(!staged.expect("a plan").is_windowed());
        },
    );
}

/// All send to all at once, so many that they wait for each other.
#[test]
fn messages_of_a_group_lie_in_windows() {
    each_way(3, |world| {
        let (rank, ranks) = (world.rank(), world.size());
        let others: Vec<u32> = (0..ranks).filter(|other| *other != rank).collect();
        let len = LONG + 5;
        let mut mine = world.alloc::<f32>(len * 2).expect("alloc");
        let mut theirs = world.alloc::<f32>(len * 2 * ranks as usize).expect("alloc");
        for round in 0..4 {
            for (at, part) in mine.chunks_mut(len).enumerate() {
                fill(part, rank, 10 * round + at);
            }
            let (sent, taken) = (&mine, &mut theirs);
            world
                .group(|group| {
                    for other in &others {
                        for part in sent.chunks(len) {
                            group.send(part, *other)?;
                        }
                    }
                    for (from, parts) in taken.chunks_mut(2 * len).enumerate() {
                        for part in parts.chunks_mut(len).filter(|_| from as u32 != rank) {
                            group.recv(part, from as u32)?;
                        }
                    }
                    Ok(())
                })
                .expect("a group");
            for (from, parts) in theirs.chunks(2 * len).enumerate() {
                for (at, part) in parts.chunks(len).enumerate() {
                    if from as u32 != rank {
                        check(part, from as u32, 10 * round + at);
                    }
                }
            }
        }
    });
}

/// Messages of any length from any memory, one after the other and started many at a time.
#[test]
fn any_messages_in_a_row() {
    let count = Count::new(40, 600).get();
    each_way(2, move |world| {
        let (rank, peer) = (world.rank(), 1 - world.rank());
        let mut rng = Rng::new(Rng::seed());
        let mut window = world.alloc::<f32>(6 * LONG).expect("alloc");
        let mut private = vec![0.0; 6 * LONG];
        for round in 0..count as usize {
            let (len, sender) = (1 + rng.below(6 * LONG as u64) as usize, rng.below(2) as u32);
            let in_window = [rng.below(4) > 0, rng.below(2) > 0];
            let data = match in_window[usize::from(rank != sender)] {
                true => &mut window[..len],
                false => &mut private[..len],
            };
            if rank == sender {
                fill(data, rank, round);
                world.send(data, peer).expect("send");
                data.fill(-1.0);
            } else {
                world.recv(data, peer).expect("recv");
                check(data, peer, round);
            }
        }
    });
}

#[test]
fn a_window_that_its_receiver_has_given_up_is_named() {
    // By a call's own thread, and by a stream.
    for len in [2 * LONG, 8 * LONG] {
        threads(
            2,
            move |options| {
                options.rules = force(true);
                options.timeouts.op = Duration::from_secs(20);
            },
            move |world| {
                let window = world.alloc::<f32>(len).expect("alloc");
                if world.rank() == 0 {
                    let error = world.send(&window, 1).expect_err("nobody takes it");
                    assert!(!matches!(error, Error::Timeout(_)), "{error}");
                    return;
                }
                drop(window);
                let mut data = vec![0.0_f32; len];
                let error = world.recv(&mut data, 0).expect_err("it is not there");
                let text = error.to_string();
                assert!(text.contains("must stay allocated on all ranks"), "{text}");
            },
        );
    }
}

#[test]
fn a_message_that_nobody_takes_is_named() {
    threads(
        2,
        |options| {
            options.rules = force(true);
            options.timeouts.op = Duration::from_secs(1);
        },
        |world| {
            let mut window = world.alloc::<f32>(LONG).expect("alloc");
            if world.rank() == 1 {
                std::thread::sleep(Duration::from_secs(2));
                return;
            }
            let error = world.send(&window, 1).expect_err("nobody takes it");
            assert!(error.to_string().contains("rank 1"), "{error}");
            // It is this rank's own again.
            window.fill(1.0);
        },
    );
}

#[test]
fn a_message_of_another_length_is_a_mismatch() {
    threads(
        2,
        |options| options.rules = force(true),
        |world| {
            let mut window = world.alloc::<f32>(2 * LONG).expect("alloc");
            let error = match world.rank() {
                0 => world.send(&window[..LONG], 1),
                _ => world.recv(&mut window[..LONG + 1], 0),
            };
            let error = error.expect_err("they differ");
            assert!(matches!(error, Error::Mismatch(_)), "{error}");
        },
    );
}

/// Puts that lie where a message is said to lie, or are put in one go, say nothing of it.
#[test]
fn messages_in_tiny_puts_pass_slots() {
    for put_bytes in [16, 1000] {
        threads(
            2,
            move |options| options.rules = force_cut(false, Some(put_bytes)),
            |world| {
                let mut data = world.alloc::<f32>(LONG).expect("alloc");
                for round in 0..6 {
                    // Leaves words in the lines of the flags that come next.
                    for _ in 0..40 {
                        let mut few = [1_u64, 2, 3, 4];
                        world
                            .broadcast(&mut few, round as u32 % 2)
                            .expect("broadcast");
                    }
                    if round as u32 % 2 == world.rank() {
                        fill(&mut data, world.rank(), round);
                        world.send(&data, 1 - world.rank()).expect("send");
                        data.fill(-1.0);
                    } else {
                        world.recv(&mut data, 1 - world.rank()).expect("recv");
                        check(&data, 1 - world.rank(), round);
                    }
                }
                world.finalize().expect("finalize");
            },
        );
    }
}

/// While one copies from the other's window, or is about to.
#[test]
fn an_abort_ends_both_and_leaves_the_memory_alone() {
    for after in [3, 11, 20] {
        threads(
            2,
            |options| options.rules = force(true),
            move |world| {
                let mut window = world.alloc::<f32>(32 * LONG).expect("alloc");
                let handle = world.abort_handle();
                let aborts = world.rank() == 1;
                let aborter = std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(after));
                    if aborts {
                        handle.abort("enough");
                    }
                });
                let mut own = vec![0.0_f32; 32 * LONG];
                let error = loop {
                    let done = match world.rank() {
                        0 => world.send(&window, 1),
                        _ => world.recv(&mut own, 0),
                    };
                    if let Err(error) = done {
                        break error;
                    }
                };
                assert!(error.to_string().contains("enough"), "{error}");
                // Nobody reads or writes there any more.
                window.fill(7.0);
                own.fill(8.0);
                std::thread::sleep(Duration::from_millis(20));
                assert!(window.iter().all(|x| *x == 7.0) && own.iter().all(|x| *x == 8.0));
                aborter.join().expect("no panic");
            },
        );
    }
}
