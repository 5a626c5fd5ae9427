//! Collectives on a program's own streams of the vendor's: what the program puts there before and
//! after runs before and after, and the host waits for nothing in between.
#![allow(
    unsafe_code,
    reason = "calls the driver, and hands addresses to collectives"
)]

use unisono::plan::Op;
use unisono::{DataType, PluginRequest, RawCall, ReduceOp, Sizes, group};
use unisono_emulated_tests::{Driver, Emulated, Values};

const LEN: usize = 3000;
const ROUNDS: usize = 50;
const RANKS: u32 = 3;

/// What a rank gives in a round.
fn given(rank: u32, round: usize, at: usize) -> i32 {
    (rank as usize * 1000 + round * 7 + at) as i32
}

#[test]
fn a_collective_runs_between_what_the_program_puts_on_its_stream() {
    let test = "a_collective_runs_between_what_the_program_puts_on_its_stream";
    let delays = |text: String| text + "delays: {one_in: 8, longest_us: 100}\n";
    let Some(machine) = Emulated::new(test, "h100x8", delays) else {
        return;
    };
    let ranks = machine.job(test, RANKS).start(|rank| {
        let world = rank.init(|options| {
            options.plugins = vec![PluginRequest::named("cuda")];
            options.device = Some(("cuda".to_owned(), options.rank));
        });
        let driver = Driver::open();
        driver.enter(world.rank() as i32);
        let native = driver.stream();
        // SAFETY: the stream lives as long as the process.
        let stream = unsafe { world.wrap_stream(native as u64) }.expect("a stream");
        assert_eq!(stream.native(), native as u64);
        let data = Values::<i32>::new(world.device(), LEN);
        let inputs: Vec<Vec<i32>> = (0..ROUNDS)
            .map(|round| (0..LEN).map(|at| given(world.rank(), round, at)).collect())
            .collect();
        let mut outputs = vec![vec![0_i32; LEN]; ROUNDS];
        let bytes = LEN * size_of::<i32>();
        for (input, output) in inputs.iter().zip(&mut outputs) {
            let call = RawCall {
                op: Op::AllReduce,
                input: data.address(),
                output: data.address(),
                sizes: Sizes::Equal(LEN as u64),
                dtype: DataType::I32,
                reduction: Some(ReduceOp::Sum.into()),
            };
            // SAFETY: memory that lives until the stream has been waited for, in this order.
            unsafe {
                driver.copy_in(native, data.address(), input.as_ptr().cast(), bytes);
                let started = world.on(&stream).start_raw(call);
                drop(started.expect("it starts"));
                driver.copy_out(native, output.as_mut_ptr().cast(), data.address(), bytes);
            }
        }
        // The program waits by its own means.
        driver.synchronise(native);
        for (round, output) in outputs.iter().enumerate() {
            for (at, value) in output.iter().enumerate() {
                let sum: i32 = (0..RANKS).map(|rank| given(rank, round, at)).sum();
                assert_eq!(*value, sum, "element {at} of round {round}");
            }
        }
        stream.synchronize().expect("no error");
        world.finalize().expect("finalize");
        rank.say("done");
    });
    for exit in ranks.finish() {
        assert!(exit.said("done"), "{exit:?}");
    }
}

#[test]
fn a_failure_lets_the_programs_stream_go_on() {
    let test = "a_failure_lets_the_programs_stream_go_on";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 2).start(|rank| {
        let world = rank.init(|options| {
            options.plugins = vec![PluginRequest::named("cuda")];
            options.device = Some(("cuda".to_owned(), options.rank));
        });
        if world.rank() == 1 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            world.abort_handle().abort("to see what happens");
            rank.say("done");
            return;
        }
        let driver = Driver::open();
        driver.enter(0);
        let native = driver.stream();
        // SAFETY: the stream lives as long as the process.
        let stream = unsafe { world.wrap_stream(native as u64) }.expect("a stream");
        let call = RawCall {
            op: Op::Barrier,
            input: 0,
            output: 0,
            sizes: Sizes::Equal(0),
            dtype: DataType::U8,
            reduction: None,
        };
        // SAFETY: a barrier has no buffers.
        let started = unsafe { world.on(&stream).start_raw(call.clone()) };
        drop(started.expect("it starts"));
        driver.synchronise(native);
        let error = stream.synchronize().expect_err("rank 1 does not come");
        assert!(error.to_string().contains("to see what happens"), "{error}");
        rank.say("done");
    });
    for exit in ranks.finish() {
        assert!(exit.said("done"), "{exit:?}");
    }
}

#[test]
fn events_and_groups_are_not_recorded() {
    let test = "events_and_groups_are_not_recorded";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 1).start(|rank| {
        let world = rank.init(|options| options.plugins = vec![PluginRequest::named("cuda")]);
        let driver = Driver::open();
        driver.enter(0);
        let native = driver.stream();
        // SAFETY: the stream lives as long as the process.
        let stream = unsafe { world.wrap_stream(native as u64) }.expect("a stream");
        let event = world.event().expect("an event");
        driver.begin(native);
        for refused in [
            stream.record(&event),
            stream.wait(&event),
            group(|group| {
                // SAFETY: nothing is called on it.
                unsafe { group.on(&world).on_stream(&stream) }
            }),
        ] {
            let refused = refused.expect_err("it records");
            assert!(refused.is_harmless(), "{refused}");
            assert!(refused.to_string().contains("records a graph"), "{refused}");
        }
        drop(event);
        let _ = driver.end(native);
        world.finalize().expect("finalize");
        rank.say("done");
    });
    assert!(ranks.finish()[0].said("done"));
}
