//! Collectives on streams of the user's: in order with what else a stream does, and never in the way
//! of a failure.

use std::time::{Duration, Instant};

use unisono::{Communicator, Error, Event, Op, RawCall, ReduceOp, Sizes, Stream, group};
use unisono_tests::{Count, Rng, threads, watchdog};

const LIMIT: Duration = Duration::from_secs(60);

/// How long something is held up that must not be done meanwhile.
const HELD: Duration = Duration::from_millis(100);

fn ones(world: &Communicator) -> unisono::Buffer<i64> {
    let mut buffer = world.buffer::<i64>(1000).expect("a buffer");
    buffer.fill(1 + i64::from(world.rank()));
    buffer
}

/// What all ranks' [`ones`] add up to.
fn sum(ranks: u32) -> i64 {
    i64::from(ranks * (ranks + 1) / 2)
}

#[test]
fn a_call_waits_for_the_stream_and_the_stream_for_the_call() {
    let _watchdog = watchdog("streams", LIMIT);
    for link in ["none", "shm"] {
        threads(
            3,
            move |options| options.without_links = vec![link.to_owned()],
            |world| {
                let stream = world.stream().expect("a stream");
                let (go, done) = (world.event().expect("one"), world.event().expect("one"));
                stream.wait(&go).expect("it waits");
                let since = Instant::now();
                let pending = world.on(&stream).all_reduce(ones(&world), ReduceOp::Sum);
                let pending = pending.expect("it starts");
                stream.record(&done).expect("it records");
                assert!(since.elapsed() < HELD, "it returns at once");
                std::thread::sleep(HELD);
                assert!(!done.is_complete().expect("no error"));
                assert!(!pending.is_done().expect("no error"));
                assert!(!stream.is_done().expect("no error"));
                go.signal().expect("the host opens it");
                stream.synchronize().expect("no error");
                assert!(stream.is_done().expect("no error"));
                assert!(done.is_complete().expect("no error"));
                let sums = pending.wait().expect("no error");
                assert!(sums.iter().all(|x| *x == sum(3)), "{}", sums[0]);
                world.finalize().expect("finalize");
            },
        );
    }
}

#[test]
fn every_form_runs_on_a_stream() {
    let _watchdog = watchdog("streams", LIMIT);
    threads(
        3,
        |_| {},
        |world| {
            let (rank, stream) = (i64::from(world.rank()), world.stream().expect("one"));
            let on = world.on(&stream);
            let buffer = |len: usize, first: i64| {
                let mut buffer = world.buffer::<i64>(len).expect("a buffer");
                (0..len).for_each(|at| buffer[at] = first + at as i64);
                buffer
            };
            let whole = || buffer(6, 10 * rank);
            let part = || buffer(2, 10 * rank);
            let empty = || buffer(2, 0);
            let reduced = on.reduce(whole(), ReduceOp::Sum, 1).expect("it starts");
            let scattered = on.reduce_scatter(whole(), empty(), ReduceOp::Max);
            let gathered = on.all_gather(part(), buffer(6, 0)).expect("it starts");
            let at_root = on.gather(part(), buffer(6, 0), 2).expect("it starts");
            let dealt = on.scatter(whole(), empty(), 2).expect("it starts");
            let exchanged = on.all_to_all(whole(), buffer(6, 0)).expect("it starts");
            let spread = on.broadcast(part(), 1).expect("it starts");
            let message = match rank {
                0 => Some(on.send(part(), 1)),
                1 => Some(on.recv(empty(), 0)),
                _ => None,
            };
            stream.synchronize().expect("no error");
            if rank == 1 {
                let sums = reduced.wait().expect("no error");
                assert_eq!(sums[..], [30, 33, 36, 39, 42, 45]);
            }
            let (_, most) = scattered.expect("it starts").wait().expect("no error");
            assert_eq!(most[..], [20 + 2 * rank, 21 + 2 * rank]);
            let all = [0, 1, 10, 11, 20, 21];
            assert_eq!(gathered.wait().expect("no error").1[..], all);
            if rank == 2 {
                assert_eq!(at_root.wait().expect("no error").1[..], all);
            }
            let (_, mine) = dealt.wait().expect("no error");
            assert_eq!(mine[..], [20 + 2 * rank, 21 + 2 * rank]);
            let (_, of_each) = exchanged.wait().expect("no error");
            let expected = (0..3).flat_map(|from| [0, 1].map(|at| 10 * from + 2 * rank + at));
            assert!(of_each.iter().copied().eq(expected), "{of_each:?}");
            assert_eq!(spread.wait().expect("no error")[..], [10, 11]);
            if let Some(message) = message {
                let message = message.expect("it starts").wait().expect("no error");
                assert_eq!(message[..], [0, 1]);
            }
            world.finalize().expect("finalize");
        },
    );
}

#[test]
fn many_calls_on_two_streams_keep_their_order() {
    let _watchdog = watchdog("streams", LIMIT);
    threads(
        2,
        |_| {},
        |world| {
            let copy = world.duplicate().expect("a copy");
            let (first, second) = (world.stream().expect("one"), world.stream().expect("one"));
            let mut pending = Vec::new();
            // Each stream begins with what the other ends.
            let handed = world.event().expect("an event");
            for _ in 0..500 {
                let one = world.on(&first).all_reduce(ones(&world), ReduceOp::Sum);
                pending.push(one.expect("it starts"));
            }
            first.record(&handed).expect("it records");
            second.wait(&handed).expect("it waits");
            for on in [&world, &copy] {
                let one = on.on(&second).all_reduce(ones(&world), ReduceOp::Max);
                pending.push(one.expect("it starts"));
            }
            second.synchronize().expect("no error");
            assert!(first.is_done().expect("no error"), "what it waited for is");
            for (at, one) in pending.into_iter().enumerate() {
                assert!(one.is_done().expect("no error"));
                let of = if at < 500 { 3 } else { 2 };
                assert_eq!(one.wait().expect("no error")[999], of);
            }
            drop(copy);
            world.finalize().expect("finalize");
        },
    );
}

#[test]
#[allow(
    unsafe_code,
    reason = "groups on streams return before their calls are done"
)]
fn a_group_runs_on_its_streams() {
    let _watchdog = watchdog("streams", LIMIT);
    threads(
        3,
        |_| {},
        |world| {
            let (rank, ranks) = (world.rank(), world.size());
            let streams = [world.stream().expect("one"), world.stream().expect("one")];
            let go = world.event().expect("one");
            streams[1].wait(&go).expect("it waits");
            let mine = [rank; 100];
            let (mut theirs, mut sums) = ([99; 100], [0_u32; 100]);
            let (to, from) = (theirs.as_mut_ptr(), sums.as_mut_ptr());
            // SAFETY: the arrays outlive the synchronisation below, and nothing touches them before.
            let (theirs_in, sums_in) = unsafe {
                let theirs = std::slice::from_raw_parts_mut(to, 100);
                (theirs, std::slice::from_raw_parts_mut(from, 100))
            };
            group(|group| {
                let mut on = group.on(&world);
                for stream in &streams {
                    // SAFETY: as above.
                    unsafe { on.on_stream(stream) }?;
                }
                on.send(&mine, (rank + 1) % ranks)?;
                on.recv(theirs_in, (rank + ranks - 1) % ranks)?;
                on.all_reduce(&mine, sums_in, ReduceOp::Sum)
            })
            .expect("it starts");
            std::thread::sleep(HELD);
            assert!(!streams[0].is_done().expect("no error"), "it waits too");
            go.signal().expect("the host opens it");
            for stream in &streams {
                stream.synchronize().expect("no error");
            }
            assert_eq!(theirs, [(rank + ranks - 1) % ranks; 100]);
            assert_eq!(sums, [3; 100]);
            world.finalize().expect("finalize");
        },
    );
}

#[test]
fn a_deadline_does_not_run_while_the_stream_has_not_come_to_the_call() {
    let _watchdog = watchdog("streams", LIMIT);
    let short = Duration::from_millis(400);
    threads(
        2,
        move |options| options.timeouts.op = short,
        move |world| {
            let stream = world.stream().expect("a stream");
            let go = world.event().expect("an event");
            stream.wait(&go).expect("it waits");
            let pending = world.on(&stream).all_reduce(ones(&world), ReduceOp::Sum);
            std::thread::sleep(short * 3);
            go.signal().expect("the host opens it");
            stream.synchronize().expect("no error");
            assert_eq!(pending.expect("it starts").wait().expect("none")[0], 3);
            world.finalize().expect("finalize");
        },
    );
}

#[test]
fn who_waits_for_a_rank_whose_stream_does_not_come_is_told_so() {
    let _watchdog = watchdog("streams", LIMIT);
    threads(
        2,
        |options| options.timeouts.op = Duration::from_millis(300),
        |world| {
            let mut data = ones(&world);
            let error = if world.rank() == 0 {
                let (stream, go) = (world.stream().expect("one"), world.event().expect("one"));
                stream.wait(&go).expect("it waits");
                let pending = world.on(&stream).all_reduce(data, ReduceOp::Sum);
                let error = pending.expect("it starts").wait().expect_err("it is late");
                go.signal().expect("the host opens it");
                assert!(stream.synchronize().is_err(), "and the stream goes on");
                error
            } else {
                let late = world.all_reduce_in_place(&mut data, ReduceOp::Sum);
                late.expect_err("rank 0 does not come")
            };
            let said = error.to_string();
            assert!(matches!(error, Error::Timeout(_)), "{said}");
            assert!(said.contains("rank 0 is in all_reduce"), "{said}");
            assert!(
                said.contains("waiting for the stream that it was called on"),
                "{said}"
            );
        },
    );
}

#[test]
fn a_failure_lets_the_stream_go_on_and_is_told() {
    let _watchdog = watchdog("streams", LIMIT);
    threads(
        2,
        |_| {},
        |world| {
            let (stream, done) = (world.stream().expect("one"), world.event().expect("one"));
            if world.rank() == 0 {
                let pending = world.on(&stream).all_reduce(ones(&world), ReduceOp::Sum);
                stream.record(&done).expect("it records");
                let error = stream.synchronize().expect_err("nobody else calls");
                assert!(matches!(error, Error::Aborted { by: 1, .. }), "{error}");
                assert!(world.async_error().is_some());
                while !done.is_complete().expect("the stream goes on") {
                    std::thread::yield_now();
                }
                assert!(pending.expect("it started").wait().is_err());
                let again = world.on(&stream).all_reduce(ones(&world), ReduceOp::Sum);
                assert!(again.is_err(), "the communicator is broken");
            } else {
                std::thread::sleep(HELD);
                world.abort_handle().abort("to see what happens");
            }
        },
    );
}

#[test]
#[allow(unsafe_code, reason = "raw calls")]
fn wrong_calls_and_handles_are_refused() {
    let _watchdog = watchdog("streams", LIMIT);
    threads(
        2,
        |_| {},
        |world| {
            let stream = world.stream().expect("a stream");
            let data = [1_u8; 3];
            let call = RawCall {
                op: Op::AllGather,
                input: data.as_ptr() as u64,
                output: data.as_ptr() as u64,
                sizes: Sizes::Equal(3),
                dtype: unisono::DataType::U8,
                reduction: None,
            };
            // SAFETY: it is refused before anything is touched.
            let refused = unsafe { world.on(&stream).start_raw(call) };
            assert!(refused.is_err_and(|error| error.is_harmless()));
            stream.synchronize().expect("nothing is on it");
            // SAFETY: no such stream is used.
            let wrapped = unsafe { world.wrap_stream(0x1234) };
            let error = wrapped.expect_err("this device has no streams of a vendor's");
            assert!(error.is_harmless(), "{error}");
            world.finalize().expect("finalize");
        },
    );
}

const CALLS: Count = Count::new(300, 5000);

/// What a rank has called on one stream, to look at when it is done.
struct Queue {
    stream: Stream,
    pending: Vec<(unisono::Pending<unisono::Buffer<i64>>, i64)>,
    event: Event,
}

/// The same random calls on every rank, on streams and without, in two communicators; streams wait
/// for each other.
fn random_calls(world: &Communicator, copy: &Communicator, calls: u64, seed: u64) {
    let ranks = world.size();
    // What all ranks do alike, and what each does as it likes.
    let (mut shared, mut own) = (Rng::new(seed), Rng::new(seed ^ u64::from(world.rank() + 1)));
    let mut queues: Vec<Queue> = (0..3)
        .map(|_| Queue {
            stream: world.stream().expect("a stream"),
            pending: Vec::new(),
            event: world.event().expect("an event"),
        })
        .collect();
    for _ in 0..calls {
        let on = if shared.below(2) == 0 { world } else { copy };
        let at = shared.below(3) as usize;
        match shared.below(8) {
            0 => {
                let mut data = ones(world);
                on.all_reduce_in_place(&mut data, ReduceOp::Sum)
                    .expect("no error");
                assert_eq!(data[0], sum(ranks));
            }
            1 => {
                let other = &queues[(at + 1) % 3];
                queues[at]
                    .stream
                    .record(&queues[at].event)
                    .expect("it records");
                other.stream.wait(&queues[at].event).expect("it waits");
            }
            2 => {
                let root = shared.below(u64::from(ranks)) as u32;
                let pending = on.on(&queues[at].stream).broadcast(ones(world), root);
                let expected = 1 + i64::from(root);
                queues[at]
                    .pending
                    .push((pending.expect("it starts"), expected));
            }
            _ => {
                let pending = on
                    .on(&queues[at].stream)
                    .all_reduce(ones(world), ReduceOp::Sum);
                queues[at]
                    .pending
                    .push((pending.expect("it starts"), sum(ranks)));
            }
        }
        if own.below(16) == 0 {
            let queue = &mut queues[own.below(3) as usize];
            queue.stream.synchronize().expect("no error");
            for (pending, expected) in queue.pending.drain(..) {
                assert!(pending.is_done().expect("no error"));
                assert_eq!(pending.wait().expect("no error")[500], expected);
            }
        }
    }
    for queue in &queues {
        queue.stream.synchronize().expect("no error");
    }
}

#[test]
fn random_calls_on_streams_that_wait_for_each_other() {
    let _watchdog = watchdog("streams", LIMIT * 5);
    let seed = Rng::seed();
    println!(
        "soak: {} random calls on 3 streams, seed {seed}",
        CALLS.get()
    );
    for link in ["none", "shm"] {
        threads(
            4,
            move |options| options.without_links = vec![link.to_owned()],
            move |world| {
                let copy = world.duplicate().expect("a copy");
                random_calls(&world, &copy, CALLS.get(), seed);
                copy.finalize().expect("finalize");
                world.finalize().expect("finalize");
            },
        );
    }
}
