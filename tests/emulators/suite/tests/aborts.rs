//! What an abort lets through is no data: no call goes well because of it.
#![allow(unsafe_code, reason = "calls take addresses of device memory")]

use std::time::Duration;

use unisono::plan::select::{Override, Overrides};
use unisono::plan::{Op, OpKind};
use unisono::{Algorithm, DataType, InitOptions, RawCall, Rules, Sizes};
use unisono_emulated_tests::{Emulated, Values, all_done, own_device};
use unisono_tests::Count;

const LEN: usize = 500;
/// What an abort released may touch the same bytes in any order.
const ABORTS: &str = "finds_races: false\n";

fn chained(options: &mut InitOptions) {
    options.rules = Rules::new(|_, _| Overrides {
        rules: vec![Override {
            op: Some(OpKind::Broadcast),
            bytes: 0..=u64::MAX,
            algorithm: Algorithm::Chain.into(),
            windowed: Some(false),
            put_bytes: None,
        }],
    });
}

/// The root of a chain never calls. The second rank, whose device waits for it and then hands on what came, aborts: its
/// waits end, and the others must not take what its device hands on for the root's data.
fn aborted_in_a_chain(test: &str, name: &str, plugin: &'static str) {
    let rounds = Count::new(10, 200);
    let Some(machine) = Emulated::new(test, name, |text| text + ABORTS) else {
        return;
    };
    let job = machine
        .job(test, 4)
        .env("TEST_ROUNDS", rounds.get())
        .env("TEST_PLUGIN", plugin);
    let ranks = job.start(|rank| {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let plugin: &str = variable("TEST_PLUGIN").leak();
        let rounds: u64 = variable("TEST_ROUNDS").parse().unwrap_or(1);
        let own = own_device(plugin);
        let world = rank.init(|options| {
            own(options);
            chained(options);
        });
        let data = Values::<i32>::new(world.device(), LEN);
        for round in 0..rounds {
            let part = world.split(Some(0), 0).expect("a part").expect("of all");
            world.barrier().expect("a barrier");
            let me = world.rank();
            if me == 1 {
                let handle = part.abort_handle();
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(5));
                    handle.abort("to see what comes through");
                });
            }
            if me != 0 {
                let call = RawCall {
                    op: Op::Broadcast { root: 0 },
                    input: data.address(),
                    output: data.address(),
                    sizes: Sizes::Equal(LEN as u64),
                    dtype: DataType::I32,
                    reduction: None,
                };
                // SAFETY: device memory that lives until the call is complete, and nobody else uses.
                let done = unsafe { part.call_raw(call) };
                assert!(done.is_err(), "round {round}: there is no data");
            }
            world.barrier().expect("a barrier");
        }
        world.finalize().expect("finalize");
        rank.say("done");
    });
    all_done(&ranks.finish());
}

#[test]
fn of_numbers_in_memory() {
    aborted_in_a_chain("of_numbers_in_memory", "ascend910bx8", "ascend");
}

#[test]
fn of_a_thread_that_does_what_streams_cannot() {
    let test = "of_a_thread_that_does_what_streams_cannot";
    aborted_in_a_chain(test, "ascend910ax8", "ascend");
}

#[test]
fn of_stream_memory_operations() {
    aborted_in_a_chain("of_stream_memory_operations", "h100x8", "cuda");
}

#[test]
fn of_signals_in_memory() {
    aborted_in_a_chain("of_signals_in_memory", "mi300x8", "rocm");
}
