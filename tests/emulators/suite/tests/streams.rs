//! Collectives on a program's own streams of the vendor's: what the program puts there before and
//! after runs before and after, and the host waits for nothing in between.
#![allow(
    unsafe_code,
    reason = "calls the driver, and hands addresses to collectives"
)]

use unisono::hal::{Memory, MemoryKind, MemoryRequest};
use unisono::plan::Op;
use unisono::{Communicator, DataType, PluginRequest, RawCall, ReduceOp, Sizes, group};
use unisono_emulated_tests::{Driver, Emulated, Values, all_done, own_device};

const LEN: usize = 3000;
const ROUNDS: usize = 50;
const RANKS: u32 = 3;

/// What a rank gives in a round.
fn given(rank: u32, round: usize, at: usize) -> i32 {
    (rank as usize * 1000 + round * 7 + at) as i32
}

/// Boxes, and the plugins for them: streams that wait for numbers by themselves, and, on the last, by the
/// host's help.
const MACHINES: [(&str, &str); 4] = [
    ("h100x8", "cuda"),
    ("mi300x8", "rocm"),
    ("ascend910bx8", "ascend"),
    ("ascend910ax8", "ascend"),
];
/// Tells a rank's process whose devices it has.
const PLUGIN: &str = "TEST_PLUGIN";

fn plugin() -> String {
    std::env::var(PLUGIN).expect("a plugin")
}

/// Pinned memory, for which copies need not wait: what every round puts in, and gets out.
struct Pinned(Memory);

impl Pinned {
    fn new(world: &Communicator) -> Self {
        let bytes = (2 * ROUNDS * LEN * size_of::<i32>()) as u64;
        let request = MemoryRequest::new(MemoryKind::Staging, bytes).align(256);
        Self(world.device().alloc(&request).expect("memory"))
    }

    /// A round's numbers: those that go in, or those that come out.
    fn of(&self, round: usize, out: bool) -> *mut i32 {
        let start = self.0.host_ptr().expect("memory that the CPU sees");
        let number = if out { ROUNDS + round } else { round };
        start.cast::<i32>().wrapping_add(number * LEN)
    }
}

#[test]
fn a_collective_runs_between_what_the_program_puts_on_its_stream() {
    let test = "a_collective_runs_between_what_the_program_puts_on_its_stream";
    let delays = |text: String| text + "delays: {one_in: 8, longest_us: 100}\n";
    for (name, plugin_name) in MACHINES {
        let Some(machine) = Emulated::new(test, name, delays) else {
            return;
        };
        let job = machine.job(test, RANKS).env(PLUGIN, plugin_name);
        let ranks = job.start(|rank| {
            let world = rank.init(own_device(&plugin()));
            rounds(&world);
            world.finalize().expect("finalize");
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}

/// On a stream of the program's: numbers in, their sum, the sum out, and so on; the host looks at the end.
fn rounds(world: &Communicator) {
    let driver = Driver::of(&plugin());
    driver.enter(world.rank() as i32);
    let native = driver.stream();
    // SAFETY: the stream lives as long as the process.
    let stream = unsafe { world.wrap_stream(native as u64) }.expect("a stream");
    assert_eq!(stream.native(), native as u64);
    let data = Values::<i32>::new(world.device(), LEN);
    let (pinned, bytes) = (Pinned::new(world), LEN * size_of::<i32>());
    for round in 0..ROUNDS {
        for at in 0..LEN {
            let value = given(world.rank(), round, at);
            // SAFETY: a number of the pinned memory, which no copy uses yet.
            unsafe { pinned.of(round, false).add(at).write(value) };
        }
    }
    for round in 0..ROUNDS {
        let call = RawCall {
            op: Op::AllReduce,
            input: data.address(),
            output: data.address(),
            sizes: Sizes::Equal(LEN as u64),
            dtype: DataType::I32,
            reduction: Some(ReduceOp::Sum.into()),
        };
        let (input, output) = (pinned.of(round, false), pinned.of(round, true));
        // SAFETY: memory that lives until the stream has been waited for, in this order.
        unsafe {
            driver.copy_in(native, data.address(), input.cast(), bytes);
            drop(world.on(&stream).start_raw(call).expect("it starts"));
            driver.copy_out(native, output.cast(), data.address(), bytes);
        }
    }
    // The program waits by its own means.
    driver.synchronise(native);
    for round in 0..ROUNDS {
        for at in 0..LEN {
            // SAFETY: a number that the stream has written, which it has ended.
            let value = unsafe { pinned.of(round, true).add(at).read() };
            let sum: i32 = (0..RANKS).map(|rank| given(rank, round, at)).sum();
            assert_eq!(value, sum, "element {at} of round {round}");
        }
    }
    stream.synchronize().expect("no error");
}

#[test]
fn a_failure_lets_the_programs_stream_go_on() {
    let test = "a_failure_lets_the_programs_stream_go_on";
    for (name, plugin_name) in MACHINES {
        let Some(machine) = Emulated::new(test, name, |text| text) else {
            return;
        };
        let job = machine.job(test, 2).env(PLUGIN, plugin_name);
        let ranks = job.start(|rank| {
            let world = rank.init(own_device(&plugin()));
            if world.rank() == 1 {
                std::thread::sleep(std::time::Duration::from_millis(100));
                world.abort_handle().abort("to see what happens");
            } else {
                fails(&world);
            }
            rank.say("done");
        });
        all_done(&ranks.finish());
    }
}

/// A barrier on a stream of the program's, to which rank 1 does not come.
fn fails(world: &Communicator) {
    let driver = Driver::of(&plugin());
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
    let started = unsafe { world.on(&stream).start_raw(call) };
    drop(started.expect("it starts"));
    driver.synchronise(native);
    let error = stream.synchronize().expect_err("rank 1 does not come");
    assert!(error.to_string().contains("to see what happens"), "{error}");
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
