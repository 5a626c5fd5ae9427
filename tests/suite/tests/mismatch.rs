//! A rank that calls another op, type, count, root or order than the rest: an error on every rank
//! that names both calls, within the deadline.

use std::time::{Duration, Instant};

use unisono::{Communicator, Error, InitOptions, ReduceOp, Result};
use unisono_tests::threads;

type Call = fn(&Communicator) -> Result<()>;

/// How the ranks reach each other, and who runs their calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Memory,
    /// Shared memory, and calls are run by streams: of all ranks, or of all but some.
    Streams,
    SomeStreams,
    Tcp,
}

fn all_reduce_f32(world: &Communicator) -> Result<()> {
    world.all_reduce_in_place(&mut [1.0_f32; 100], ReduceOp::Sum)
}

fn all_reduce_f64(world: &Communicator) -> Result<()> {
    world.all_reduce_in_place(&mut [1.0_f64; 100], ReduceOp::Sum)
}

fn all_reduce_max(world: &Communicator) -> Result<()> {
    world.all_reduce_in_place(&mut [1.0_f32; 100], ReduceOp::Max)
}

fn all_reduce_more(world: &Communicator) -> Result<()> {
    world.all_reduce_in_place(&mut [1.0_f32; 101], ReduceOp::Sum)
}

fn all_reduce_large(world: &Communicator) -> Result<()> {
    world.all_reduce_in_place(&mut vec![1.0_f32; 1 << 20], ReduceOp::Sum)
}

fn broadcast_0(world: &Communicator) -> Result<()> {
    world.broadcast(&mut [1.0_f32; 100], 0)
}

fn broadcast_1(world: &Communicator) -> Result<()> {
    world.broadcast(&mut [1.0_f32; 100], 1)
}

fn reduce_0(world: &Communicator) -> Result<()> {
    world.reduce(&[1.0_f32; 100], &mut [0.0; 100], ReduceOp::Sum, 0)
}

fn barrier(world: &Communicator) -> Result<()> {
    world.barrier()
}

fn order_a(world: &Communicator) -> Result<()> {
    all_reduce_f32(world)?;
    broadcast_0(world)
}

fn order_b(world: &Communicator) -> Result<()> {
    broadcast_0(world)?;
    all_reduce_f32(world)
}

/// All ranks but the last call `rest`, the last calls `odd`; `names` must stand in every error.
fn disagree(ranks: u32, over: Over, rest: Call, odd: Call, names: [&'static str; 2]) {
    disagree_after((0, barrier), ranks, over, rest, odd, names);
}

/// The same, after so many calls in which they agree, of which all were told.
fn disagree_after(
    (calls, before): (u32, Call),
    ranks: u32,
    over: Over,
    rest: Call,
    odd: Call,
    names: [&'static str; 2],
) {
    let adjust = move |options: &mut InitOptions| {
        options.timeouts.op = Duration::from_secs(5);
        match over {
            Over::Memory => {}
            Over::Streams => options.direct = false,
            Over::SomeStreams => options.direct = options.rank.is_multiple_of(2),
            Over::Tcp => options.without_links = vec!["shm".to_owned()],
        }
    };
    threads(ranks, adjust, move |world| {
        let since = Instant::now();
        let call = if world.rank() + 1 == world.size() {
            odd
        } else {
            rest
        };
        // A rank that is slow to leave the last of the calls that agree hears of it there already: the others are ahead.
        // One whose own part was done before the others noticed hears of it later: in the first barrier if it waits for
        // them there, else in the second.
        let agreed = || (0..calls).try_for_each(|_| before(&world));
        let later = || world.barrier().and_then(|()| world.barrier());
        let error = agreed()
            .and_then(|()| call(&world))
            .and_then(|()| later())
            .unwrap_err();
        assert!(since.elapsed() < Duration::from_secs(4), "{error}");
        let Error::Mismatch(mismatch) = &error else {
            panic!(
                "rank {} of {}: not a mismatch: {error}",
                world.rank(),
                world.size()
            );
        };
        let text = mismatch.to_string();
        for name in names {
            assert!(text.contains(name), "{name} is not in: {text}");
        }
        assert_eq!(world.barrier().unwrap_err().to_string(), error.to_string());
    });
}

fn all_kinds(ranks: u32, over: Over) {
    let sum = "all_reduce(count 100, f32, sum)";
    disagree(
        ranks,
        over,
        all_reduce_f32,
        all_reduce_f64,
        [sum, "all_reduce(count 100, f64, sum)"],
    );
    disagree(
        ranks,
        over,
        all_reduce_f32,
        all_reduce_max,
        [sum, "all_reduce(count 100, f32, max)"],
    );
    disagree(
        ranks,
        over,
        all_reduce_f32,
        all_reduce_more,
        [sum, "all_reduce(count 101, f32, sum)"],
    );
    disagree(
        ranks,
        over,
        all_reduce_f32,
        all_reduce_large,
        [sum, "all_reduce(count 1048576, f32, sum)"],
    );
    disagree(ranks, over, all_reduce_f32, barrier, [sum, "barrier()"]);
    disagree(ranks, over, broadcast_0, broadcast_1, ["root 0", "root 1"]);
    disagree(
        ranks,
        over,
        all_reduce_f32,
        broadcast_1,
        [sum, "broadcast(count 100, f32, root 1)"],
    );
    disagree(
        ranks,
        over,
        order_a,
        order_b,
        [sum, "broadcast(count 100, f32, root 0)"],
    );
}

/// Most short calls with a root are not answered: who only sends hears by the next call that something is wrong.
#[test]
fn who_gets_no_answer_hears_of_it_all_the_same() {
    let roots = ["root 0", "root 1"];
    let ops = [
        "broadcast(count 100, f32, root 0)",
        "reduce(count 100, f32, sum, root 0)",
    ];
    let sum = "all_reduce(count 100, f32, sum)";
    for calls in 1..10 {
        let agreed = (calls, barrier as Call);
        for (ranks, over) in [(2, Over::Memory), (3, Over::Memory), (3, Over::Tcp)] {
            disagree_after(agreed, ranks, over, broadcast_0, broadcast_1, roots);
            disagree_after(agreed, ranks, over, broadcast_0, reduce_0, ops);
            disagree_after(
                agreed,
                ranks,
                over,
                broadcast_0,
                all_reduce_f32,
                [ops[0], sum],
            );
            disagree_after(agreed, ranks, over, all_reduce_f32, reduce_0, [sum, ops[1]]);
        }
    }
}

/// Ranks that share cores, and have called the same for a while, spin for one that is about to come: not for ever, where it has
/// come with another call.
#[test]
fn who_repeats_a_call_hears_of_another() {
    let name = |count| format!("all_reduce(count {count}, f32, sum)").leak();
    let names = [&*name(100), &*name(101)];
    for ranks in [3, 4, 8] {
        for calls in [1, 2, 3, 20, 300] {
            let before = (calls, all_reduce_f32 as Call);
            disagree_after(
                before,
                ranks,
                Over::Memory,
                all_reduce_f32,
                all_reduce_more,
                names,
            );
        }
    }
}

/// Two ranks that each only send to the other wait for credits at last, which carry no words.
#[test]
fn two_ranks_that_only_send_hear_of_it() {
    for tcp in [false, true] {
        let adjust = move |options: &mut InitOptions| {
            options.timeouts.op = Duration::from_secs(20);
            if tcp {
                options.without_links = vec!["shm".to_owned()];
            }
        };
        threads(2, adjust, |world| {
            let root = 1 - world.rank();
            let since = Instant::now();
            let call = |_| world.reduce(&[1_u32], &mut [0], ReduceOp::Sum, root);
            let error = (0..10_000)
                .find_map(|round| call(round).err())
                .expect("an error");
            assert!(matches!(error, Error::Mismatch(_)), "{error:?}");
            assert!(
                since.elapsed() < Duration::from_secs(5),
                "{:?}",
                since.elapsed()
            );
        });
    }
}

#[test]
fn two_ranks_in_shared_memory() {
    all_kinds(2, Over::Memory);
}

#[test]
fn four_ranks_in_shared_memory() {
    all_kinds(4, Over::Memory);
}

#[test]
fn seven_ranks_in_shared_memory() {
    all_kinds(7, Over::Memory);
}

#[test]
fn four_ranks_whose_streams_run_all() {
    all_kinds(4, Over::Streams);
}

#[test]
fn four_ranks_of_which_some_have_streams_run_all() {
    all_kinds(4, Over::SomeStreams);
}

#[test]
fn three_ranks_over_tcp() {
    all_kinds(3, Over::Tcp);
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    let adjust = |options: &mut InitOptions| options.timeouts.op = Duration::from_millis(500);
    threads(3, adjust, |world| {
        world.barrier().expect("all are here");
        if world.rank() == 1 {
            while world.async_error().is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
        } else {
            all_reduce_f32(&world).unwrap_err();
        }
        let text = world.async_error().expect("an error").to_string();
        assert!(text.contains("missing ranks: 1"), "{text}");
        assert!(
            text.contains("rank 0 is in all_reduce(count 100, f32, sum)"),
            "{text}"
        );
        assert!(text.contains("rank 2 is in all_reduce"), "{text}");
        assert!(text.contains("waiting for rank"), "{text}");
    });
}

#[test]
fn an_abort_reaches_every_rank_from_any_thread() {
    threads(
        3,
        |_| {},
        |world| {
            let handle = world.abort_handle();
            let aborter = (world.rank() == 2).then(|| {
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(100));
                    handle.abort("the operator said so");
                })
            });
            let error = if world.rank() == 2 {
                aborter.map(std::thread::JoinHandle::join);
                world.barrier().unwrap_err()
            } else {
                world.barrier().unwrap_err()
            };
            let text = error.to_string();
            assert!(
                text.contains("by rank 2") && text.contains("the operator said so"),
                "{text}"
            );
        },
    );
}
