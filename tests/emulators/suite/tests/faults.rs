//! What breaks: a rank, a device, a link, the memory. An error everywhere, and no hang.
#![allow(unsafe_code, reason = "calls take addresses of device memory")]

use std::time::{Duration, Instant};

use unisono::hal::{MemoryKind, MemoryRequest, Status};
use unisono::plan::Op;
use unisono::{Communicator, Error, InitOptions, PluginRequest, RawCall, ReduceOp, Sizes};
use unisono_emulated_tests::{Emulated, Values};
use unisono_tests::{Exit, Rank};

const LEN: usize = 50_000;

fn own_device(options: &mut InitOptions) {
    options.plugins = vec![PluginRequest::named("cuda")];
    options.device = Some(("cuda".to_owned(), options.rank));
    options.timeouts.op = Duration::from_secs(5);
}

fn all_reduce(world: &Communicator, data: &Values<f32>) -> Result<(), Error> {
    let at = data.address();
    let call = RawCall {
        op: Op::AllReduce,
        input: at,
        output: at,
        sizes: Sizes::Equal(LEN as u64),
        dtype: unisono::DataType::F32,
        reduction: Some(ReduceOp::Sum.into()),
    };
    // SAFETY: device memory that lives until the call is complete, and nobody else uses.
    unsafe { world.call_raw(call) }
}

/// Calls until something breaks, and says how long the last call took to say so.
fn until_it_breaks(rank: &Rank) {
    let world = rank.init(own_device);
    let data = Values::<f32>::new(world.device(), LEN);
    for _ in 0..1000 {
        let start = Instant::now();
        if let Err(error) = all_reduce(&world, &data) {
            assert!(
                start.elapsed() < Duration::from_secs(15),
                "{:?}",
                start.elapsed()
            );
            rank.say(&format!("error: {error}"));
            return;
        }
    }
    rank.say("nothing broke");
}

fn all_say_an_error(exits: &[Exit], but: Option<u32>) {
    for exit in exits.iter().filter(|exit| Some(exit.rank) != but) {
        let told = exit.lines.iter().any(|line| line.starts_with("error: "));
        assert!(told && !exit.late, "{exit:?}");
    }
}

#[test]
fn a_killed_rank_is_an_error_on_the_others() {
    let test = "a_killed_rank_is_an_error_on_the_others";
    let Some(machine) = Emulated::new(test, "h100x8", |text| text) else {
        return;
    };
    let ranks = machine.job(test, 3).start(|rank| {
        if rank.rank == 2 {
            std::thread::spawn(|| {
                std::thread::sleep(Duration::from_secs(3));
                std::process::abort();
            });
        }
        until_it_breaks(&rank);
    });
    all_say_an_error(&ranks.finish(), Some(2));
}

#[test]
fn a_lost_device_is_an_error_on_all() {
    let test = "a_lost_device_is_an_error_on_all";
    let lost = |text: String| text + "faults: [{kind: lost, device: 1, after: 400}]\n";
    let Some(machine) = Emulated::new(test, "h100x8", lost) else {
        return;
    };
    let ranks = machine.job(test, 3).start(|rank| until_it_breaks(&rank));
    let exits = ranks.finish();
    all_say_an_error(&exits, None);
    let told = exits[1].lines.concat();
    assert!(told.contains("CUDA_ERROR_DEVICE_UNAVAILABLE"), "{told}");
}

#[test]
fn a_link_that_fails_is_an_error_on_all() {
    let test = "a_link_that_fails_is_an_error_on_all";
    let fails =
        |text: String| text + "faults: [{kind: link, device: 0, peer: 1, after: 3000000}]\n";
    let Some(machine) = Emulated::new(test, "h100x8", fails) else {
        return;
    };
    let ranks = machine.job(test, 2).start(|rank| until_it_breaks(&rank));
    all_say_an_error(&ranks.finish(), None);
}

#[test]
fn what_a_device_has_not_is_an_error() {
    let test = "what_a_device_has_not_is_an_error";
    let small = |text: String| text.replace("85899345920", "268435456");
    let Some(machine) = Emulated::new(test, "h100x8", small) else {
        return;
    };
    let ranks = machine.job(test, 1).start(|rank| {
        let world = rank.init(own_device);
        for exportable in [false, true] {
            let mut request = MemoryRequest::new(MemoryKind::Data, 300 << 20);
            request.exportable = exportable;
            let error = world.device().alloc(&request).expect_err("too much");
            assert_eq!(error.status, Status::OutOfMemory, "{error}");
            assert!(
                error.message.contains("CUDA_ERROR_OUT_OF_MEMORY"),
                "{error}"
            );
        }
        rank.say("done");
    });
    let exits = ranks.finish();
    assert!(exits[0].said("done"), "{exits:?}");
}
